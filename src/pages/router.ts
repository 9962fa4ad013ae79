import type { Transport } from '@connectrpc/connect';
import { type ErrorRequestHandler, type RequestHandler, type Response, Router } from 'express';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import type { HostedSession } from '../../gen/forms/v1/hosted_pb.js';
import { createActivationPage } from './activation/activation-pages.ts';
import { errorBody, failureOf, Refused } from './failure.ts';
import { createSessionPages } from './form/session-pages.ts';
import { createUploadRoute } from './form/uploads.ts';
import { assets } from './layout.ts';
import { createMailPages } from './links/mail-link-pages.ts';
import { renderError } from './message-pages.ts';
import { prefersJson, requestIdOf, sendAsset, sendJson, sendPage } from './reply.ts';

/**
 * The pages people see: a session's form, activation, the links in mails; and the files they need.
 *
 * It belongs before the REST routes, of which it leaves all others alone; of the activation link it
 * takes GET only.
 */
export function createHostedPages({ transport, log }: HostedOptions): Router {
  const router = Router();
  const session = createSessionPages(transport);
  const mail = createMailPages(transport);
  const onPage = failurePage(log);

  for (const path of ['/f/:sessionId', '/s/:sessionId']) {
    router.route(path).get(session.show).post(session.take).all(otherMethod, onPage);
    router.post(`${path}/uploads`, createUploadRoute(transport), failureJson(log));
  }
  router.get('/api/forms/:id/activate', createActivationPage(transport), onPage);
  router.route('/mail/:token').get(mail.show).post(mail.follow).all(otherMethod, onPage);
  router.get(`/${assets.folder}/*file`, sendFile);
  router.get('/embed.js', (request, response) => sendAsset(request, response, assets.embed, 'max-age=3600'));
  return router;
}

const sendFile: RequestHandler = (request, response, next) => {
  const asset = assets.files.get(request.path);
  if (asset === undefined) next();
  else sendAsset(request, response, asset, 'public, max-age=31536000, immutable');
};

const otherMethod: RequestHandler = (_request, response) => {
  response.set('allow', 'GET, HEAD, POST');
  throw new Refused(Reason.METHOD, 'The path does not know this method');
};

function failurePage(log: Log): ErrorRequestHandler {
  return async (error, request, response, next) => {
    if (response.headersSent) return next(error);
    if (prefersJson(request)) return failureJson(log)(error, request, response, next);
    const { status, reason } = report(error, response, log);
    const { formName, locale, theme, embedOrigins } = looksOf(response);
    const requestId = requestIdOf(response);
    const page = renderError(status, reason, request, { formName, locale, theme, embedOrigins, requestId });
    await sendPage(request, response, status, page);
  };
}

function failureJson(log: Log): ErrorRequestHandler {
  return (error, _request, response, next) => {
    if (response.headersSent) return next(error);
    const failed = report(error, response, log);
    const message =
      failed.status === 500
        ? `Internal error; the log has it under ${requestIdOf(response)}`
        : wordsOf(error);
    sendJson(response, failed.status, errorBody(failed, message));
  };
}

/** Puts what goes with a failure onto the reply, and what only we may know into the log. */
function report(error: unknown, response: Response, log: Log) {
  const failed = failureOf(error);
  response.set(failed.headers);
  // An unread body would otherwise have to be received to its end.
  if (!response.req.complete) response.set('connection', 'close');
  if (failed.status === 500) log.error({ err: error, requestId: requestIdOf(response) }, 'page failed');
  return failed;
}

/** The looks of the form that a failed page belongs to. */
function looksOf(response: Response): Pick<HostedSession, 'formName' | 'locale' | 'theme' | 'embedOrigins'> {
  return response.locals.session ?? { formName: '', locale: '', theme: undefined, embedOrigins: [] };
}

/** A ConnectError's message begins with its code, which says nothing to people. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Refused';
  return 'rawMessage' in error && typeof error.rawMessage === 'string' ? error.rawMessage : error.message;
}

export type HostedOptions = {
  /** Leads to the services. */
  transport: Transport;
  log: Log;
};

/** The part of a pino logger that the pages use. */
type Log = { error(facts: object, message: string): void };
