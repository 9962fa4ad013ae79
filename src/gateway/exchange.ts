import type { DescMethod } from '@bufbuild/protobuf';
import type { CallOptions, Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import {
  type Call,
  callOptions,
  callsFor,
  type Receive,
  receivesFor,
  type Stream,
  streamsFor,
} from '../http/call.ts';
import { type Exchange, idOf, type Pages, type Route } from './route.ts';

/** What a handler gets for one request. Its calls are made when they are asked for. */
export class RouteExchange implements Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly #served: Route;
  readonly #options: ExchangeOptions;
  #asked = false;
  #admitted = false;

  constructor(request: Request, response: Response, served: Route, options: ExchangeOptions) {
    this.request = request;
    this.response = response;
    this.#served = served;
    this.#options = options;
  }

  get call(): Call {
    const calls = callsFor(...this.#client());
    return (method, input, further) => {
      this.#asked = true;
      return calls(method, input, this.#admitted ? { ...further, continued: true } : further);
    };
  }

  get stream(): Stream {
    const streams = streamsFor(...this.#client());
    return (method, inputs) => {
      this.#asked = true;
      return streams(method, inputs);
    };
  }

  get receive(): Receive {
    const receives = receivesFor(...this.#client());
    return (method, input) => {
      this.#asked = true;
      return receives(method, input);
    };
  }

  get admit(): () => Promise<void> {
    return async () => {
      if (this.#asked) return;
      this.#asked = true;
      const { rpc } = this.#served.operation;
      // What rates and access may depend on. An RPC without such a field ignores it.
      const input = { formId: idOf(this.request) };
      const [, request, response, tier] = this.#client();
      if (rpc !== undefined) await this.#options.admit(rpc, input, callOptions(request, response, tier));
      // What has been counted as a call is not counted again when the call is made.
      this.#admitted = true;
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

  #client() {
    const tier = this.#served.path.startsWith('/v1/') ? 'management' : 'api';
    return [this.#options.transport, this.request, this.response, tier] as const;
  }
}

/** What an exchange needs of the gateway. */
export type ExchangeOptions = {
  /** Leads to the services, in this process or another. */
  transport: Transport;
  /**
   * Throws what refuses a call before its service sees it: authentication, authorization and rate limits. The
   * call is not made.
   */
  admit: (rpc: DescMethod, input: Record<string, unknown>, options: CallOptions) => Promise<void>;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** The pages that answer form posts. */
  pages: Pages;
};
