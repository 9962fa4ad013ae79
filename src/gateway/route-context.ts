import type { IncomingMessage } from 'node:http';
import type { DescMethod } from '@bufbuild/protobuf';
import type { Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import type { Ending, HostedSession } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import type { ActivateFormResponse } from '../../gen/headlessforms/v1/forms_pb.js';
import type { RestError } from '../http/errors.ts';
import type { HtmlPage, RefusedPost } from '../http/reply.ts';
import { type Admit, RpcClient } from '../http/rpc-client.ts';

/** What a handler gets for one request. Its calls are made as the caller of the request. */
export class RouteContext extends RpcClient {
  readonly options: RouteOptions;
  readonly #route: DescribedRoute;

  constructor(request: Request, response: Response, route: DescribedRoute, options: RouteOptions) {
    // By the route's own path: Express finds it whatever the case of that of the request.
    const tier = route.path.startsWith('/v1/') ? 'management' : 'api';
    super(options.transport, { request, response }, tier, route.operation.credential?.(request));
    this.options = options;
    this.#route = route;
  }

  /** The id in the path, which has one at most. */
  get id(): string {
    const { id } = this.request.params;
    return typeof id === 'string' ? id : '';
  }

  /**
   * Throws what would refuse the caller before a service looks at the content: key, scope and rate. It counts as
   * a call, so it does nothing after `call` or a second time.
   */
  async admit(): Promise<void> {
    const { rpc } = this.#route.operation;
    // The id is what rates and access may depend on. An RPC without such a field ignores it.
    if (rpc !== undefined) await this.ask(this.options.admit, rpc, this.id);
  }
}

/** `rpc` is that whose access the route has, `credential` what may stand in place of `Authorization`. */
type DescribedRoute = {
  path: string;
  operation: { rpc?: DescMethod; credential?: (request: Request) => string | undefined };
};

/** What routes need of the service. */
export type RouteOptions = {
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

/**
 * The pages that answer a browser's form post in place of JSON. The gateway decides the status; the request is
 * there for its `Accept-Language`.
 */
type Pages = {
  /** Thanks a person for a submission. */
  renderCompletion(ending: Ending, request: IncomingMessage): HtmlPage;
  /** Names the refused answers, or says why the post was refused. The log has a fault under `requestId`. */
  renderError(error: RestError, request: IncomingMessage, requestId: string): HtmlPage;
  /** Shows the form in place of a site's own one whose post was refused, with what was posted and what is wrong. */
  renderRefusedPost(session: HostedSession, post: RefusedPost): HtmlPage;
  /** Says that the form is published by the owner with this address, and how to share it. */
  renderActivated(activated: ActivateFormResponse, email: string, request: IncomingMessage): HtmlPage;
  /** What only the browser has that posts; empty where it has called another address than emailed links lead to. */
  browserOf(request: Request, response: Response): string;
};
