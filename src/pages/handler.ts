import type { Transport } from '@connectrpc/connect';
import type { Request, RequestHandler, Response } from 'express';
import type { HostedSession } from '../../gen/forms/internal/v1/hosted_pb.js';
import {
  type Call,
  callsFor,
  type Receive,
  receivesFor,
  requestIdOf,
  type Stream,
  streamsFor,
} from '../http/call.ts';
import type { HttpError } from '../http/errors.ts';
import { type ErrorLog, prefersJson, sendError, sendJson, sendPage } from '../http/reply.ts';
import { preferNamedLanguage } from './form/languages.ts';
import { renderError } from './messages.ts';

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

/** Serves a page whose errors `fail` answers. */
export function serve(
  { transport, hostedUrl, log }: PageOptions,
  handle: HandlePage,
  fail: SendFailure,
): RequestHandler {
  return async (request, response) => {
    // Pages bring headers of their own beside these.
    response.setHeader('cache-control', 'no-store');
    response.setHeader('x-content-type-options', 'nosniff');
    preferNamedLanguage(request);
    const exchange: PageExchange = {
      call: callsFor(transport, request, response, 'page'),
      stream: streamsFor(transport, request, response, 'page'),
      receive: receivesFor(transport, request, response, 'page'),
      request,
      response,
      hostedUrl,
      session: undefined,
    };
    try {
      await handle(exchange);
    } catch (error) {
      await sendError(error, { request, response, log, send: (failed) => fail(failed, exchange) });
    }
  };
}

function sendFailure(failed: HttpError, exchange: PageExchange): Promise<void> | void {
  const { request, response, session } = exchange;
  if (prefersJson(request)) return sendJson(response, failed.status, failed.body);
  const { formName, locale, theme, embedOrigins } = session ?? noForm;
  const page = renderError(failed, request, {
    requestId: requestIdOf(request),
    formName,
    locale,
    theme,
    embedOrigins,
  });
  return sendPage(request, response, failed.status, page);
}

const noForm = { formName: '', locale: '', theme: undefined, embedOrigins: [] };

/** One request for a page. */
export type PageExchange = {
  /** Calls an RPC on behalf of the request. */
  call: Call;
  /** Does the same with a stream of messages. */
  stream: Stream;
  /** Does the same with a stream of answers. */
  receive: Receive;
  request: Request;
  response: Response;
  /** The address of the pages, without a slash at the end. */
  hostedUrl: string;
  /**
   * The session, or the form for its visitors, that the page belongs to, once it is known: error pages look like its
   * form.
   */
  session: HostedSession | undefined;
};

export type SendFailure = (failed: HttpError, exchange: PageExchange) => Promise<void> | void;

export type HandlePage = (exchange: PageExchange) => Promise<void> | void;

export type PageOptions = {
  /** Leads to the services. */
  transport: Transport;
  /** The address of the pages, without a slash at the end. */
  hostedUrl: string;
  log: ErrorLog;
};
