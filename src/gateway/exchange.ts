import type { Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { type Admit, RpcClient } from '../http/call.ts';
import { type Exchange, idOf, type Pages, type Route } from './route.ts';

/** What a handler gets for one request. Its calls are made when they are asked for. */
export class RouteExchange extends RpcClient implements Exchange {
  readonly #served: Route;
  readonly #options: ExchangeOptions;

  constructor(request: Request, response: Response, served: Route, options: ExchangeOptions) {
    const tier = served.path.startsWith('/v1/') ? 'management' : 'api';
    super(options.transport, { request, response }, tier);
    this.#served = served;
    this.#options = options;
  }

  get admit(): () => Promise<void> {
    return async () => {
      const { rpc } = this.#served.operation;
      // What rates and access may depend on. An RPC without such a field ignores it.
      if (rpc !== undefined) await this.ask(this.#options.admit, rpc, idOf(this.request));
    };
  }

  get pages(): Pages {
    return this.#options.pages;
  }
  get baseUrl(): string {
    return this.#options.baseUrl;
  }
  get allowPrivateUrls(): boolean {
    return this.#options.allowPrivateUrls;
  }
}

/** What an exchange needs of the gateway. */
export type ExchangeOptions = {
  /** Leads to the services, in this process or another. */
  transport: Transport;
  /** Asks whether a call may be made, and makes none. */
  admit: Admit;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** The pages that answer form posts. */
  pages: Pages;
};
