import type { Transport } from '@connectrpc/connect';
import type { Request, RequestHandler, Response } from 'express';
import type { HostedSession } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import type { Html } from '../domain/text/html.ts';
import { dropUndecodableQuery } from '../http/charset.ts';
import type { RestError } from '../http/errors.ts';
import { type ErrorLog, prefersJson, sendError, sendJson, sendPage } from '../http/reply.ts';
import { RpcClient, requestIdOf } from '../http/rpc-client.ts';
import { preferNamedLanguage, renderError } from './messages.ts';

/**
 * Serves a page. What `handle` throws is answered as a page in the looks of the form, or as the JSON of the
 * documented interface where the caller prefers that.
 */
export function servePage(options: PageOptions, handle: HandlePage): RequestHandler {
  return serve(options, handle, sendFailure);
}

/** Serves what the script of a page asks for: errors are JSON. */
export function serveScript(options: PageOptions, handle: HandlePage): RequestHandler {
  return serve(options, handle, (failed, { response }) => sendJson(response, failed.status, failed.body));
}

/** Serves what `fail` answers the errors of. */
function serve(
  { transport, baseUrl, hostedUrl, log }: PageOptions,
  handle: HandlePage,
  fail: SendFailure,
): RequestHandler {
  const ownOrigins = [baseUrl, hostedUrl].map((url) => new URL(url).origin);
  return async (request, response) => {
    dropUndecodableQuery(request);
    preferNamedLanguage(request);
    const client = new RpcClient(transport, { request, response }, 'page');
    const exchange: PageExchange = {
      call: client.call.bind(client),
      stream: client.stream.bind(client),
      receive: client.receive.bind(client),
      request,
      response,
      hostedUrl,
      ownOrigins,
      session: undefined,
      isOwners: false,
      typed: () => false,
    };
    try {
      await handle(exchange);
    } catch (error) {
      await sendError(error, { request, response, log, send: (failed) => fail(failed, exchange) });
    }
  };
}

function sendFailure(failed: RestError, exchange: PageExchange): Promise<void> | void {
  const { request, response, session, isOwners } = exchange;
  if (prefersJson(request)) return sendJson(response, failed.status, failed.body);
  const { formName, locale, theme, embedOrigins } = session ?? noForm;
  const typed = exchange.typed();
  const page = renderError(failed, request, {
    requestId: requestIdOf(request),
    formName,
    locale,
    theme,
    embedOrigins,
    more: typed,
    script: typed !== false,
    isOwners,
  });
  return sendPage(response, failed.status, page);
}

const noForm = { formName: '', locale: '', theme: undefined, embedOrigins: [] };

/** One request for a page. */
export type PageExchange = Pick<RpcClient, 'call' | 'stream' | 'receive'> & {
  request: Request;
  response: Response;
  /** The address of the pages, without a slash at the end. */
  hostedUrl: string;
  /** Those of the service's public addresses. */
  ownOrigins: readonly string[];
  /**
   * The session, or the form for its visitors, that the page belongs to, once it is known: error pages look like its
   * form.
   */
  session: HostedSession | undefined;
  /** Whether it is a page for owners of forms. */
  isOwners: boolean;
  /** What was typed into the page that is posted, for an error page to show: the person may have it nowhere else. */
  typed: () => Html | false;
};

type SendFailure = (failed: RestError, exchange: PageExchange) => Promise<void> | void;

export type HandlePage = (exchange: PageExchange) => Promise<void> | void;

export type PageOptions = {
  /** Leads to the services. */
  transport: Transport;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** The address of the pages, without a slash at the end. */
  hostedUrl: string;
  log: ErrorLog;
};
