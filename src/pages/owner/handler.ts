import type { Request, RequestHandler, Response } from 'express';
import { type Call, callsFor, type Receive, receivesFor, requestIdOf } from '../../http/call.ts';
import { type HttpError, httpErrorOf } from '../../http/errors.ts';
import { type FormInputs, noFiles, readForm } from '../../http/multipart.ts';
import { sendPage } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { fill } from '../../text/words/language.ts';
import { chooseOwnerLanguage, type OwnerLanguage } from '../../text/words/owner/index.ts';
import { type PageExchange, type PageOptions, serve } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { renderOwnerPage } from './layout.ts';
import {
  type CookieOptions,
  checkCsrf,
  checkOrigin,
  csrfToken,
  rememberPage,
  sessionOf,
  setSession,
} from './session.ts';
import { renderSignIn } from './sign-in-page.ts';

/**
 * Serves a page to an owner who is signed in; others are asked to sign in. A post has to come from a page of this
 * service and of the session.
 */
export function ownerPage(options: OwnerPageOptions, handle: HandleOwner): RequestHandler {
  return openPage(options, async (open) => {
    const { request, response, inputs } = open;
    const session = sessionOf(request, options);
    if (session === undefined) return askToSignIn(options, open);
    if (inputs !== undefined) checkCsrf(inputs, session);
    const { transport } = options;
    try {
      await handle({
        ...open,
        inputs: inputs ?? new Map(),
        call: callsFor(transport, request, response, 'page', session),
        receive: receivesFor(transport, request, response, 'page', session),
        csrf: csrfToken(session),
      });
    } catch (error) {
      if (httpErrorOf(error).reason !== 'invalid_key') throw error;
      setSession(request, response, options);
      await askToSignIn(options, open);
    }
  });
}

/** Serves a page for owners to everybody. A post has to come from a page of this service. */
export function openPage(options: OwnerPageOptions, handle: HandleOpen): RequestHandler {
  const ownOrigins = [options.baseUrl, options.hostedUrl].map((url) => new URL(url).origin);
  return serve(
    options,
    async ({ request, response, call }) => {
      const isPost = request.method === 'POST';
      if (isPost) checkOrigin(request, ownOrigins);
      const inputs = isPost ? await readForm(request, noFiles) : undefined;
      await handle({ request, response, call, language: languageOf(request), inputs });
    },
    sendFailure,
  );
}

async function askToSignIn(options: OwnerPageOptions, open: OpenExchange): Promise<void> {
  const { request, response, language } = open;
  rememberPage(request, response, options);
  // The first page is open to everybody.
  const status = request.method !== 'POST' && request.path === '/owner' ? 200 : 401;
  await sendPage(request, response, status, renderSignIn(request, language));
}

async function sendFailure(failed: HttpError, { request, response }: PageExchange): Promise<void> {
  const language = languageOf(request);
  const [title, text] = wordsFor(failed, language);
  const body = html`<h1>${title}</h1>
<p class="lead">${fill(text, { id: requestIdOf(request) })}</p>
<p class="actions"><a class="button" href="${rootOf(request)}owner">${language.owner.title}</a></p>`;
  const page = renderOwnerPage({ request, language, title, body });
  await sendPage(request, response, failed.status, page);
}

function wordsFor({ status }: HttpError, { owner }: OwnerLanguage): [title: string, text: string] {
  if (status === 400 || status === 404) return [owner.notFoundTitle, owner.notFoundText];
  if (status === 401) return [owner.refusedTitle, owner.refusedText];
  if (status === 429 || status === 503) return [owner.limitedTitle, owner.limitedText];
  return [owner.failedTitle, owner.failedText];
}

function languageOf(request: Request): OwnerLanguage {
  return chooseOwnerLanguage(request.headers['accept-language']);
}

/** One request for a page that anybody may see; `inputs` are those of a post. */
type OpenExchange = {
  request: Request;
  response: Response;
  /** Calls an RPC without a credential. */
  call: Call;
  language: OwnerLanguage;
  inputs: FormInputs | undefined;
};

/** One request of an owner who is signed in; `inputs` are empty unless it is a post. */
export type OwnerExchange = Omit<OpenExchange, 'inputs'> & {
  /** Calls an RPC as the owner. */
  call: Call;
  receive: Receive;
  inputs: FormInputs;
  /** What the page's forms have to send. */
  csrf: string;
};

export type HandleOpen = (exchange: OpenExchange) => Promise<void>;
export type HandleOwner = (exchange: OwnerExchange) => Promise<void>;

export type OwnerPageOptions = PageOptions & CookieOptions;
