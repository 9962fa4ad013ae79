import type { Request, RequestHandler, Response } from 'express';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, noFiles, readFormInputs } from '../../http/multipart.ts';
import { sendPage } from '../../http/reply.ts';
import { type Call, RpcClient } from '../../http/rpc-client.ts';
import type { Language } from '../../text/words.ts';
import { type PageExchange, type PageOptions, servePage } from '../handler.ts';
import { languageOf } from '../messages.ts';
import { type Done, type OwnerContent, renderOwnerPage, signInAgainPage, signInPage } from './layout.ts';
import { checkCsrf, csrfToken, OwnerCookies, requireOwnPost } from './session.ts';

/**
 * Serves a page to an owner who is signed in; others are asked to sign in. A post has to come from a page of this
 * service and of the session.
 */
export function ownerPage(options: OwnerPageOptions, handle: HandleOwner): RequestHandler {
  return openPage(options, async (open) => {
    const { request, response, inputs, cookies } = open;
    const session = cookies.session();
    if (session === undefined) return askToSignIn(open);
    if (request.method === 'POST') checkCsrf(inputs, session);
    const client = new RpcClient(options.transport, { request, response }, 'page', session);
    const call: Call = client.call.bind(client);
    const receive: RpcClient['receive'] = client.receive.bind(client);
    const csrf = csrfToken(session);
    let asked: Promise<{ address: string }> | undefined;
    const addressOf = async () => {
      asked ??= call(OwnersService.method.getOwner, {});
      return (await asked).address;
    };
    try {
      const content = await handle({ ...open, call, receive, addressOf, csrf });
      if (content === undefined || content.signedOut === true) return content;
      return { ...content, signedIn: { address: await addressOf(), csrf } };
    } catch (error) {
      const { reason } = restErrorOf(error);
      if (reason === 'sign_in_again') {
        cookies.rememberPage();
        const address = await addressOf();
        return { ...signInAgainPage(request, open.language, address), signedIn: { address, csrf } };
      }
      if (reason !== 'invalid_key') throw error;
      cookies.setSession();
      return askToSignIn(open);
    }
  });
}

/** Serves a page for owners to everybody. A post has to come from a page of this service. */
export function openPage(options: OwnerPageOptions, handle: HandleOpen): RequestHandler {
  return servePage(options, async (exchange) => {
    exchange.isOwners = true;
    const { request, response, call } = exchange;
    const isPost = request.method === 'POST';
    if (isPost) requireOwnPost(exchange);
    const inputs = isPost ? await readFormInputs(request, noFiles) : new Map();
    const language = languageOf(request);
    const cookies = new OwnerCookies(request, response, options.baseUrl);
    const { now } = options;
    const content = await handle({ request, response, call, language, inputs, cookies, now });
    if (content === undefined) return;
    sendPage(response, content.status ?? 200, renderOwnerPage(request, language, content));
  });
}

function askToSignIn({ request, language, cookies }: OpenExchange): OwnerContent {
  cookies.rememberPage();
  // The first page is open to everybody.
  const status = request.method !== 'POST' && request.path === '/owner' ? 200 : 401;
  return { ...signInPage(request, language, cookies.rememberedAddress()), status };
}

/** One request for a page that anybody may see; `inputs` are empty unless it is a post. */
type OpenExchange = Pick<PageExchange, 'request' | 'response' | 'call'> & {
  language: Language;
  inputs: FormInputs;
  cookies: OwnerCookies;
  /** Milliseconds. */
  now: () => number;
};

/** One request of an owner who is signed in; calls are the owner's. */
export type OwnerExchange = OpenExchange & {
  receive: RpcClient['receive'];
  /** The address that has signed in. */
  addressOf: () => Promise<string>;
  /** What the page's forms have to send. */
  csrf: string;
};

/** Returns what the page shows; undefined if it has replied itself. */
export type HandleOpen = (exchange: OpenExchange) => Promise<OwnerContent | undefined>;
export type HandleOwner = (exchange: OwnerExchange) => Promise<OwnerContent | undefined>;

export type OwnerPageOptions = PageOptions & { now: () => number };

/** Leads to the page that says what a post has done, where it says so. */
export function answerAt(
  { response, cookies }: Pick<OwnerExchange, 'response' | 'cookies'>,
  url: string,
  done: Done,
): undefined {
  cookies.announce(done);
  return redirect(response, `${url}#done`);
}

/** Leads to another page after a post. */
export function redirect(response: Response, url: string): undefined {
  response.redirect(303, url);
}

/** The id that the path names. */
export function idIn({ params }: Request): string {
  return String(params.id);
}

/** A query parameter as one text; empty if it is not given. */
export function queryOf({ query }: Request, name: string): string {
  const value = query[name];
  return typeof value === 'string' ? value : '';
}
