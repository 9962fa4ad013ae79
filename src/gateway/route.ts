import type { IncomingMessage } from 'node:http';
import type {
  DescMessage,
  DescMethod,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { Ending, HostedSession } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { ConfirmationState, FormShare } from '../../gen/headlessforms/v1/forms_pb.js';
import type { Violation } from '../domain/errors/violations.ts';
import { violationsOf } from '../domain/errors/violations.ts';
import { limitsOf } from '../domain/methods.ts';
import { type JsonBody, readJson } from '../http/body.ts';
import type { Call, Receive, Stream } from '../http/call.ts';
import { contentError, type RestError } from '../http/errors.ts';
import type { FormInputs } from '../http/multipart.ts';
import { type Page, sendJson } from '../http/reply.ts';

/**
 * A route that is one call of `rpc`.
 *
 * The RPC decides who may call. A query or a body that does not fit its schema is refused here, since a typed
 * message can't carry it; the router asks first whether the caller may call at all.
 */
export function route<I extends DescMessage, O extends DescMessage, Query, Body, Reply extends z.ZodType>(
  method: Method,
  path: string,
  rpc: DescMethodUnary<I, O>,
  spec: RpcRoute<I, O, Query, Body, Reply>,
): Route {
  const { status = 200, body = spec.shape, check = checkWith(spec.body) } = spec;
  const operation = { ...spec, ...(body === undefined ? {} : { body }) };
  const handle = async (exchange: Exchange) => {
    const { request, response } = exchange;
    // A route without a schema for its query does not read it.
    const query = (spec.query && readQuery(request, spec.query)) as Query;
    const { value: raw, problems } =
      body === undefined ? noBody : await readJson(request, limitsOf(rpc, { keyless: isKeyless(request) }));
    const checked: Checked<Body> =
      problems.length > 0 ? { ok: false, violations: problems } : check(raw, exchange);
    if (!checked.ok) throw contentError(checked.violations, raw);
    const input = { id: idOf(request), query, body: checked.value };
    const output = await exchange.call(rpc, spec.input(input, exchange));
    sendJson(response, status, spec.answer(output, exchange));
  };
  return customRoute(method, path, rpc, { ...operation, handle });
}

/** The query of a request. Throws a failure with all that is wrong with it. */
export function readQuery<Query>(request: Request, schema: z.ZodType<Query>): Query {
  const query = schema.safeParse(request.query);
  if (query.error)
    throw contentError(violationsOf(query.error, request.query), request.query, Reason.BAD_REQUEST);
  return query.data;
}

/** A route with a handler of its own. The access and the limits are those of `rpc`. */
export function customRoute(
  method: Method,
  path: string,
  rpc: DescMethod | undefined,
  { name = rpc?.localName ?? '', handle, ...operation }: CustomRoute,
): Route {
  return { method, path, operation: { ...operation, name, ...(rpc && { rpc }) }, handle };
}

/** Routes that the API description lists under one heading. */
export function tagged(tag: string, routes: Route[]): Route[] {
  return routes.map((one) => ({ ...one, operation: { ...one.operation, tag } }));
}

const noBody: JsonBody = { value: undefined, problems: [] };

/** The check of a body by its schema; without one there is nothing to check. */
function checkWith<Body>(schema: z.ZodType<Body> | undefined): (raw: unknown) => Checked<Body> {
  return (raw) => {
    const parsed = schema?.safeParse(raw);
    if (parsed?.error) return { ok: false, violations: violationsOf(parsed.error, raw) };
    return { ok: true, value: parsed?.data as Body };
  };
}

/**
 * Whether a request comes without a key. The services decide that, and what it means: this serves to read no more
 * than they would take, and to name all problems at once.
 */
export function isKeyless({ headers }: IncomingMessage): boolean {
  return !/^bearer /i.test(headers.authorization ?? '');
}

/** The id in a route's path; every path has one at most. */
export function idOf(request: Request): string {
  const { id } = request.params;
  return typeof id === 'string' ? id : '';
}

export type Method = 'get' | 'post' | 'patch' | 'delete';

/** A route as the router serves it and the API description describes it. */
export type Route = {
  method: Method;
  /** As Express writes it: `/v1/forms/:id`. */
  path: string;
  operation: Operation;
  handle: (exchange: Exchange) => Promise<void>;
};

/** What the API description says of a route. */
export type Operation = {
  /** The operation's id, from which generators make a method's name; the RPC's own unless given. */
  name: string;
  tag?: string;
  summary: string;
  /** The RPC whose policy says who may call; none: anybody. */
  rpc?: DescMethod;
  /** The schemas of segments of the path that are not ids, by name. */
  segments?: Record<string, z.ZodType>;
  query?: z.ZodType;
  headers?: Record<string, z.ZodType>;
  body?: z.ZodType;
  /** Whether the body may be empty. */
  bodyOptional?: boolean;
  /** The media types of a body that is not JSON at all. */
  bodyTypes?: readonly string[];
  /** Further media types of the body. */
  forms?: readonly string[];
  status?: number;
  reply?: z.ZodType;
  /** The media types of a reply that is not JSON. */
  replyTypes?: readonly string[];
  /** The statuses of errors that the other parts do not imply. */
  errors?: readonly number[];
};

type OwnOperation = Omit<Operation, 'name' | 'tag' | 'rpc'> & { name?: string };

type CustomRoute = OwnOperation & { handle: (exchange: Exchange) => Promise<void> };

type RpcRoute<I extends DescMessage, O extends DescMessage, Query, Body, Reply extends z.ZodType> = Omit<
  OwnOperation,
  'query' | 'body' | 'reply'
> & {
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  /** In place of `body` where a schema can't say everything: it only describes what `check` reads. */
  shape?: z.ZodType;
  check?: (raw: unknown, exchange: Exchange) => Checked<Body>;
  input(request: { id: string; query: Query; body: Body }, exchange: Exchange): MessageInitShape<I>;
  reply: Reply;
  answer(output: MessageShape<O>, exchange: Exchange): z.input<Reply>;
};

/** A body as the route reads it, or all that is wrong with it. */
type Checked<Body> = { ok: true; value: Body } | { ok: false; violations: readonly Violation[] };

/**
 * The pages that answer a browser's form post in place of JSON. The gateway decides the status; the request is
 * there for its `Accept-Language`.
 */
export type Pages = {
  /** Thanks a person for a submission. */
  renderCompletion(ending: Ending, request: IncomingMessage): Page;
  /** Names the refused answers, or says why the post was refused. The log has a fault under `requestId`. */
  renderError(error: RestError, request: IncomingMessage, requestId: string): Page;
  /** Shows the form in place of a site's own one whose post was refused, with what was posted and what is wrong. */
  renderRefusedPost(session: HostedSession, post: RefusedPost): Page;
  /**
   * Says that the form is published, and how to share it. `webhookSecret` is empty unless one was made; if
   * `answersWait`, answers are mailed once the address has confirmed.
   */
  renderActivated(activated: Activated, request: IncomingMessage): Page;
};

type RefusedPost = {
  request: IncomingMessage;
  inputs: FormInputs;
  details: readonly Violation[];
  /** The address of the page that has the form, http or https; empty if it is not known. */
  site: string;
};

type Activated = {
  formId: string;
  formName: string;
  email: string;
  webhookSecret: string;
  /** What becomes of the mail that asks the owner to confirm. */
  confirmation: ConfirmationState;
  answersWait: boolean;
  /** Absent if there is nothing to share. */
  share: FormShare | undefined;
};

/** What a handler gets for one request. */
export type Exchange = {
  /** Calls an RPC as the caller of this request. */
  call: Call;
  /** Does the same with a stream of messages. */
  stream: Stream;
  /** Does the same with an RPC that answers with a stream. */
  receive: Receive;
  /**
   * Throws what would refuse the caller before a service looks at the content: key, scope and rate. It counts as
   * a call, so it does nothing after `call` or a second time.
   */
  admit: () => Promise<void>;
  request: Request;
  response: Response;
  pages: Pages;
  /** The address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
};
