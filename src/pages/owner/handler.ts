import type { Request, RequestHandler, Response } from 'express';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, noFiles, readForm } from '../../http/multipart.ts';
import { sendPage } from '../../http/reply.ts';
import { type Call, RpcClient } from '../../http/rpc-client.ts';
import type { Language } from '../../text/words.ts';
import { type PageOptions, servePage } from '../handler.ts';
import { languageOf } from '../messages.ts';
import { type OwnerContent, renderOwnerPage, signInAgainPage, signInPage } from './layout.ts';
import {
  type CookieOptions,
  checkCsrf,
  checkOrigin,
  csrfToken,
  rememberPage,
  sessionOf,
  setSession,
} from './session.ts';

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
    const client = new RpcClient(options.transport, { request, response }, 'page', session);
    const call: Call = client.call.bind(client);
    const csrf = csrfToken(session);
    let asked: Promise<{ address: string }> | undefined;
    const addressOf = async () => {
      asked ??= call(OwnersService.method.getOwner, {});
      return (await asked).address;
    };
    try {
      const content = await handle({
        ...open,
        inputs: inputs ?? new Map(),
        call,
        receive: client.receive.bind(client),
        addressOf,
        csrf,
      });
      if (content === undefined || content.signedOut === true) return content;
      return { ...content, signedIn: { address: await addressOf(), csrf } };
    } catch (error) {
      const { reason } = restErrorOf(error);
      if (reason === 'sign_in_again') {
        rememberPage(request, response, options);
        const address = await addressOf();
        return { ...signInAgainPage(open.request, open.language, address), signedIn: { address, csrf } };
      }
      if (reason !== 'invalid_key') throw error;
      setSession(request, response, options);
      return askToSignIn(options, open);
    }
  });
}

/** Serves a page for owners to everybody. A post has to come from a page of this service. */
export function openPage(options: OwnerPageOptions, handle: HandleOpen): RequestHandler {
  const ownOrigins = [options.baseUrl, options.hostedUrl].map((url) => new URL(url).origin);
  return servePage(options, async (exchange) => {
    exchange.isOwners = true;
    const { request, response, call } = exchange;
    const isPost = request.method === 'POST';
    if (isPost) checkOrigin(request, ownOrigins);
    const inputs = isPost ? await readForm(request, noFiles) : undefined;
    const language = languageOf(request);
    const content = await handle({ request, response, call, language, inputs });
    if (content === undefined) return;
    await sendPage(request, response, content.status ?? 200, renderOwnerPage(request, language, content));
  });
}

function askToSignIn(options: OwnerPageOptions, { request, response, language }: OpenExchange): OwnerContent {
  rememberPage(request, response, options);
  // The first page is open to everybody.
  const status = request.method !== 'POST' && request.path === '/owner' ? 200 : 401;
  return { ...signInPage(request, language), status };
}

/** One request for a page that anybody may see; `inputs` are those of a post. */
type OpenExchange = {
  request: Request;
  response: Response;
  /** Calls an RPC without a credential. */
  call: Call;
  language: Language;
  inputs: FormInputs | undefined;
};

/** One request of an owner who is signed in; `inputs` are empty unless it is a post. */
export type OwnerExchange = Omit<OpenExchange, 'inputs'> & {
  /** Calls an RPC as the owner. */
  call: Call;
  receive: RpcClient['receive'];
  inputs: FormInputs;
  /** The address that has signed in. */
  addressOf: () => Promise<string>;
  /** What the page's forms have to send. */
  csrf: string;
};

/** Returns what the page shows; undefined if it has replied itself. */
export type HandleOpen = (exchange: OpenExchange) => Promise<OwnerContent | undefined>;
export type HandleOwner = (exchange: OwnerExchange) => Promise<OwnerContent | undefined>;

export type OwnerPageOptions = PageOptions & CookieOptions;

/** Leads to another page after a post. */
export function redirect(response: Response, url: string): undefined {
  response.redirect(303, url);
}

/** The id that the path names. */
export function idIn({ params }: Request): string {
  const { id } = params;
  return typeof id === 'string' ? id : '';
}

/** A query parameter as one text; empty if it is not given. */
export function queryOf({ query }: Request, name: string): string {
  const value = query[name];
  return typeof value === 'string' ? value : '';
}
