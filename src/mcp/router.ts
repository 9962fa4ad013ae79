import type { ContextValues, Transport } from '@connectrpc/connect';
import cors from 'cors';
import express, { type NextFunction, type Request, type Response, type Router } from 'express';
import { z } from 'zod';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { withOneLoopback } from '../domain/addresses/ip-address.ts';
import { failed } from '../domain/errors/failure.ts';
import { isObject } from '../domain/json/json.ts';
import { type Access, isWithinScopes, limitsOf, policyOf } from '../domain/methods.ts';
import { readJson } from '../http/body.ts';
import { contentError, type RestError } from '../http/errors.ts';
import { type ErrorLog, sendChunks, sendError, sendJson } from '../http/reply.ts';
import { RpcClient, requestIdOf } from '../http/rpc-client.ts';
import {
  describeResource,
  insufficientToken,
  metadataPaths,
  type TokenIssuer,
  withMetadata,
} from './authorization/token-scopes.ts';
import { modesOfSession, sessionIdFor } from './elicitation-modes.ts';
import type { Reactions, RequestContext, Sealer } from './tool.ts';

/**
 * The MCP server at `/mcp`, as a client of the RPCs, and what describes it to those who look for it. Requests to other
 * paths pass.
 *
 * Each request stands for itself: the key or access token in its header decides what it may do.
 */
export function createMcp(options: McpOptions): Router {
  const { transport, identify, sealer, baseUrl, allowPrivateUrls, ownOrigins, tokens, version, log } =
    options;
  const refuse = refusing(options);
  const router = express.Router();

  router
    .route('/mcp')
    .all(refuseOtherOrigins(ownOrigins))
    .all(
      cors({
        origin: true,
        methods: ['POST'],
        exposedHeaders: ['www-authenticate', 'mcp-session-id'],
        maxAge: 7200,
      }),
    )
    .post((request, response) => answer(request, response).catch((error) => refuse(error, request, response)))
    .all((_request, response) => {
      // Without streams and sessions there is nothing to GET or DELETE.
      response.setHeader('allow', 'POST, OPTIONS');
      sendRefusal(response, 405, { message: 'This path answers POST' });
    });
  router.get('/llms.txt', (_request, response) =>
    sendPublic(response, 'text/plain; charset=utf-8', describeForModels(options)),
  );
  if (tokens !== undefined) {
    router.get(metadataPaths, (_request, response) =>
      sendPublic(response, 'application/json', JSON.stringify(describeResource(baseUrl, tokens))),
    );
  }
  return router;

  async function answer(request: Request, response: Response): Promise<void> {
    const client = new RpcClient(transport, { request, response }, 'management');
    const caller = await client.identify(identify);
    // The largest message that any tool takes.
    const { value: body, problems } = await readJson(request, limitsOf(FormsService.method.createForm));
    // Tells `refuse` that the body was JSON.
    request.body = body;
    if (problems.length > 0) throw contentError(problems, undefined, Reason.BAD_REQUEST);
    if (Array.isArray(body)) throw failed(Reason.BAD_REQUEST, 'Expected one message, not a list of them');
    // Some clients send null for what is left out.
    if (isObject(body) && body.params === null) body.params = undefined;
    // A request to the client needs a stream. Without one it is as a client that can't ask its user.
    const takesStreams = request.accepts(EVENT_STREAM) !== false;
    const exchange: RequestContext = {
      call: client.call.bind(client),
      mayCall: (rpc) => mayCall(policyOf(rpc), caller),
      keyId: caller.keyId ?? '',
      sealer,
      reactions: options.reactions,
      olderClient: takesStreams ? modesOfSession(request.get('mcp-session-id'), sealer) : undefined,
      baseUrl,
      allowPrivateUrls,
      logFault(error) {
        const requestId = requestIdOf(request);
        log.error({ err: error, requestId }, 'a tool failed');
        return requestId;
      },
    };
    // The library takes 30 MiB and a fifth of a second to load, which a service without such clients saves.
    const { answerMcp, lackedScopes, takeResponse } = await import('./server.ts');
    const { data: answered } = clientResponse.safeParse(body);
    if (answered !== undefined) {
      await takeResponse(answered, exchange);
      response.status(202).end();
      return;
    }
    const lacked = caller.byToken === true && tokens ? lackedScopes(body, exchange) : [];
    const insufficient = tokens && insufficientToken(lacked, caller.scopes, tokens);
    if (insufficient !== undefined) throw insufficient;
    const sessionId = sessionIdFor(body, sealer);
    if (sessionId !== undefined) response.setHeader('mcp-session-id', sessionId);
    const reply = await answerMcp(webRequestOf(request, baseUrl), body, { exchange, version });
    await sendWeb(response, takesStreams ? reply : await withoutStream(reply));
  }
}

/** Answers an error of a call. */
function refusing({ baseUrl, tokens, log }: McpOptions) {
  return (error: unknown, request: Request, response: Response): Promise<void> => {
    const send = ({ status, reason, headers, body }: RestError) => {
      const { message, ...data } = body.error;
      const challenge = headers['www-authenticate'];
      if (challenge !== undefined && tokens) {
        response.setHeader('www-authenticate', withMetadata(challenge, baseUrl));
      }
      const code = request.body === undefined && reason === 'bad_request' ? NOT_JSON : REFUSED;
      // As clients of OAuth expect it (RFC 6750, section 3.1).
      sendRefusal(response, reason === 'insufficient_scope' ? 403 : status, { code, message, data });
    };
    return sendError(error, { request, response, log, send });
  };
}

/** What a client of before 2026-07-28 answers to a request within a call, whose id is a text that the service made. */
const clientResponse = z.object({
  id: z.string(),
  method: z.undefined().optional(),
  /** Absent where the client failed. */
  result: z.unknown().optional(),
});

/** Refuses a request as a whole, as JSON-RPC has it. */
function sendRefusal(response: Response, status: number, error: Refusal): void {
  sendJson(response, status, { jsonrpc: '2.0', id: null, error: { code: REFUSED, ...error } });
}

type Refusal = { code?: number; message: string; data?: object };

/** The code of JSON-RPC for errors of a server's own. */
const REFUSED = -32_000;

/** The code of JSON-RPC for what can't be parsed. */
const NOT_JSON = -32_700;

/** Browsers say which page a request comes from. Those of others may not use a key that the browser has. */
function refuseOtherOrigins(ownOrigins: readonly string[]) {
  const own = new Set(ownOrigins.map(withOneLoopback));
  return ({ headers: { origin } }: Request, response: Response, next: NextFunction) => {
    if (origin === undefined || own.has(withOneLoopback(origin))) return next();
    const message = 'Pages of this origin may not call: RPC_ALLOWED_ORIGINS does not name it';
    sendRefusal(response, 403, { message });
  };
}

function mayCall(access: Access, { keyId, scopes }: Caller): boolean {
  if (keyId === undefined && access.key === 'required') return access.openWithoutKeys === true;
  return keyId === undefined || isWithinScopes(access, scopes);
}

/** The head of a request as the library takes it; the body is read apart. */
function webRequestOf({ method, originalUrl, headers }: Request, baseUrl: string): globalThis.Request {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && name !== 'content-length')
      web.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  // The library refuses requests that do not accept both.
  web.set('accept', `application/json, ${EVENT_STREAM}`);
  return new globalThis.Request(new URL(originalUrl, baseUrl), { method, headers: web });
}

/** The same answer as JSON, if it is a stream: of the one message that it then holds. */
async function withoutStream(answered: globalThis.Response): Promise<globalThis.Response> {
  if (answered.headers.get('content-type')?.startsWith(EVENT_STREAM) !== true) return answered;
  const [, message] = /^data: (.+)$/m.exec(await answered.text()) ?? [];
  return new globalThis.Response(message, { headers: { 'content-type': 'application/json' } });
}

const EVENT_STREAM = 'text/event-stream';

async function sendWeb(response: Response, { status, headers, body }: globalThis.Response): Promise<void> {
  response.status(status);
  for (const [name, value] of headers) {
    // The library would let caches keep a stream if they ask again.
    if (name !== 'cache-control') response.setHeader(name, value);
  }
  if (body === null) response.end();
  else await sendChunks(response, body);
}

/** Sends what everybody may read, on any page. */
function sendPublic(response: Response, type: string, text: string): void {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('cache-control', 'public, max-age=3600');
  response.setHeader('content-type', type);
  response.end(text);
}

/** What a model that finds the service at `baseUrl` needs to know (llmstxt.org). */
function describeForModels({ baseUrl, guides }: McpOptions): string {
  const listed = guides.map(
    ({ name, title, about }) => `- [${title}](${baseUrl}/docs/${name}.md): ${about}\n`,
  );
  return `# ${TITLE}

> ${ABOUT}

An agent makes a form, fills in what it knows, hands the rest to a person by a link, and gets the answers with who gave
each. Every call needs an API key of the service in \`Authorization: Bearer <key>\`, but for making and activating
forms and for submitting answers by REST.

## Interfaces

- [MCP](${baseUrl}/mcp): streamable HTTP. Tools for forms, sessions and submissions; \`ask_person\` hands over to a person.
- [OpenAPI](${baseUrl}/openapi.json): the REST interface
- [Protocol buffers](${baseUrl}/descriptor.binpb): the RPCs, as a descriptor set

## In short

1. \`create_form\`, then \`activate_form\` with the owner's email address. Fields have \`answeredBy\`: anyone, human, agent.
2. \`get_form\` tells what is asked. \`submit_answers\` submits what you know.
3. \`ask_person\` opens a session with your answers as prefill and returns a link for the person.
4. \`wait_for_session\` waits for the person and returns the answers.
${listed.length === 0 ? '' : `\n## Guides\n\n${listed.join('')}`}`;
}

const TITLE = 'Headless form service';
const ABOUT = 'Makes forms, and collects validated answers from people and agents.';

export type McpOptions = {
  /** Leads to the services. */
  transport: Transport;
  /** Whose access tokens `identify` knows, if there is an issuer. */
  tokens: TokenIssuer | undefined;
  /** Tells whose key a request has, for all its calls. Throws as a call does without a valid one. */
  identify: (header: Headers, values: ContextValues) => Promise<Caller>;
  sealer: Sealer;
  reactions: Reactions;
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** The documents that are served as Markdown at `/docs/<name>.md`. */
  guides: readonly { name: string; title: string; about: string }[];
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** The origins whose pages may call. */
  ownOrigins: readonly string[];
  /** The version of the software. */
  version: string;
  log: ErrorLog;
};

/** `keyId` is undefined for calls without a key, where none is required. */
type Caller = { project: string; keyId: string | undefined; byToken?: true; scopes: readonly string[] };
