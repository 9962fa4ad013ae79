import type { IncomingMessage } from 'node:http';
import { basename } from 'node:path';
import type {
  DescMessage,
  DescMethod,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { custom, unrecognized, type Violation, violationsOf } from '../domain/errors/violations.ts';
import { isObject, ownValue } from '../domain/json/json.ts';
import { pageSizes } from '../domain/limits/limits.ts';
import { fieldNamed, messageFrom } from '../domain/messages.ts';
import { limitsOf } from '../domain/methods.ts';
import { type JsonBody, readJson } from '../http/body.ts';
import { contentError } from '../http/errors.ts';
import { sendChunks, sendJson, sendTagged } from '../http/reply.ts';
import { idempotencyKey, idempotencyKeyOf, nextCursor } from '../http/schemas.ts';
import { type Properties, type Shape, shape, textOrNullReply } from '../http/shape.ts';
import type { RouteContext } from './route-context.ts';

/**
 * A route that is one call of `rpc`. Its message has what path, query and body have by the names of its fields, but for
 * those `apart`, and what `input` makes.
 *
 * The RPC decides who may call. A query or a body that does not fit its schema is refused here, since a typed
 * message can't carry it; the router asks first whether the caller may call at all. Where the RPC takes an idempotency
 * key, the route takes it as a header.
 */
export function route<I extends DescMessage, O extends DescMessage, Query, Body, Reply extends z.ZodType>(
  method: Method,
  path: string,
  rpc: DescMethodUnary<I, O>,
  spec: RpcRoute<I, O, Query, Body, Reply>,
): Route {
  const { status = 200, body = spec.shape, check = checkWith(spec.body) } = spec;
  const messageOf = messageByNames(path, rpc.input, spec);
  const takesKey = rpc.input.field.idempotencyKey !== undefined;
  const operation = {
    ...spec,
    ...(body === undefined ? {} : { body }),
    ...(takesKey && {
      headers: { ...spec.headers, 'Idempotency-Key': idempotencyKey },
      errors: [409, ...(spec.errors ?? [])],
    }),
  };
  const handle = async (context: RouteContext) => {
    const { request, response } = context;
    // A route without a schema for its query does not read it.
    const query = (spec.query && readQuery(request, spec.query)) as Query;
    const { value: raw, problems } =
      body === undefined
        ? noBody
        : await readJson(request, limitsOf(rpc, { keyless: comesWithoutKey(request) }));
    const checked: Checked<Body> =
      problems.length > 0 ? { ok: false, violations: problems } : check(raw, context);
    if (!checked.ok) throw contentError(checked.violations, raw);
    const input = { id: context.id, query, body: checked.value };
    const key = takesKey ? { idempotencyKey: idempotencyKeyOf(request) } : {};
    const named = messageOf(request.params, query, checked.value);
    const output = await context.call(rpc, Object.assign(named, spec.input?.(input, context), key));
    const file = spec.file?.(output);
    if (file !== undefined) return void nameFile(response, file).end(file.content);
    const answer = spec.answer(output, context);
    if (spec.notModified === undefined) return sendJson(response, status, answer);
    response.setHeader('content-type', 'application/json; charset=utf-8');
    sendTagged(request, response, JSON.stringify(answer));
  };
  return customRoute(method, path, rpc, { ...operation, handle });
}

/**
 * Makes the message of a request by names; the `:id` below `webhooks` is `webhook_id`. Throws a `TypeError`, where the
 * route is made, for a name that is no field of the message.
 */
function messageByNames<I extends DescMessage>(path: string, message: I, { query, body, apart = [] }: Named) {
  const left = new Set(apart);
  const segments = path.split('/');
  const parameters = segments.flatMap((segment, at) => {
    const name = segment.slice(1);
    if (!segment.startsWith(':') || left.has(name)) return [];
    return [{ name, field: name === 'id' ? `${segments[at - 1]?.slice(0, -1)}_id` : name }];
  });
  const schemas = [query, body].flatMap((schema) => (schema instanceof z.ZodObject ? [schema] : []));
  const properties = schemas.flatMap(({ shape }) => Object.keys(shape)).filter((name) => !left.has(name));
  for (const name of [...parameters.map(({ field }) => field), ...properties]) fieldNamed(message, name);
  return (params: Request['params'], ...given: unknown[]): MessageInitShape<I> => {
    const path = parameters.map(({ name, field }) => [field, params[name]]);
    const named = Object.entries(Object.assign({}, ...given)).filter(([name]) => !left.has(name));
    return messageFrom(message, Object.fromEntries([...path, ...named]));
  };
}

type Named = { query?: z.ZodType; body?: z.ZodType; apart?: readonly string[] };

/**
 * The query of a request. Throws a failure with all that is wrong with it, unknown and repeated parameters included.
 * Those that begin with `utm_` or `_` are ignored: links that people share get them. `filter[a][gte]=3` is the property
 * `[a][gte]` of the parameter `filter`, where the schema has one.
 */
export function readQuery<Query>({ query: sent }: Pick<Request, 'query'>, schema: QuerySchema<Query>): Query {
  const known = Object.keys(schema.shape);
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(sent)) {
    if (/^(utm_|_)/.test(name)) continue;
    const [, object = '', property = ''] = /^(\w+)(\[.*\])$/s.exec(name) ?? [];
    const within = given[object];
    if (ownValue(schema.shape, object)?.meta()?.type !== 'object') given[name] = value;
    else if (isObject(within)) within[property] = value;
    else given[object] = { [property]: value };
  }
  const unknown = Object.keys(given).filter((name) => !known.includes(name));
  const query = schema.safeParse(given);
  if (query.success && unknown.length === 0) return query.data;
  // Every parameter is a text: one that came twice, an array, fits none of them.
  const misfits = (query.success ? [] : violationsOf(query.error, given)).map((violation) => {
    const path = violation.path.replace('.[', '[');
    return Array.isArray(sent[path]) ? custom(path, 'Given more than once') : { ...violation, path };
  });
  throw contentError([...misfits, ...unrecognized('', unknown, known)], given, Reason.BAD_REQUEST);
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

/** Says in the headers of a reply which generated file it is. */
export function nameFile(response: Response, { mediaType, path }: GeneratedFile): Response {
  response.setHeader('content-type', mediaType);
  return response.setHeader('content-disposition', `inline; filename="${basename(path)}"`);
}

type GeneratedFile = { mediaType: string; path: string };

/** The reply of a route by the properties that the response of its RPC has there. */
export function replyOf<O extends DescMessage, P extends Properties<MessageShape<O>>>(
  response: O,
  properties: P,
) {
  const { schema, of } = shape(response, '', properties);
  return { reply: schema, answer: of };
}

/** The reply of a route that has nothing to say. */
export const done = {
  reply: z.object({ ok: z.literal(true) }).meta({ id: 'Ok' }),
  answer: () => ({ ok: true as const }),
};

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
export function comesWithoutKey({ headers }: IncomingMessage): boolean {
  return !/^bearer /i.test(headers.authorization ?? '');
}

/** The parameters of a query by name. */
export type QuerySchema<Query> = z.ZodType<Query> & z.ZodObject;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** A route as the router serves it and the API description describes it. */
export type Route = {
  method: Method;
  /** As Express writes it: `/v1/forms/:id`. */
  path: string;
  operation: Operation;
  handle: (context: RouteContext) => Promise<void>;
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
  query?: z.ZodObject;
  headers?: Record<string, z.ZodType>;
  body?: z.ZodType;
  /** Whether the body may be empty. */
  bodyOptional?: boolean;
  /** The media types of a body that is not JSON at all. */
  bodyTypes?: readonly string[];
  /** A credential beside the header `Authorization`, which goes before it. */
  credential?: (request: Request) => string | undefined;
  /** Further media types of the body. */
  forms?: readonly string[];
  status?: number;
  reply?: z.ZodType;
  /** The reply of a request with `check=true`, which stores nothing; its status is 200. */
  checked?: z.ZodType;
  /** Whether the reply has an `ETag`, so that it can be 304. */
  notModified?: true;
  /** The media types of a reply that is not JSON. */
  replyTypes?: readonly string[];
  /** The statuses of errors that the other parts do not imply. */
  errors?: readonly number[];
};

type OwnOperation = Omit<Operation, 'name' | 'tag' | 'rpc'> & { name?: string };

type CustomRoute = OwnOperation & { handle: (context: RouteContext) => Promise<void> };

type RpcRoute<I extends DescMessage, O extends DescMessage, Query, Body, Reply extends z.ZodType> = Omit<
  OwnOperation,
  'query' | 'body' | 'reply'
> & {
  query?: QuerySchema<Query>;
  body?: z.ZodType<Body>;
  /** In place of `body` where a schema can't say everything: it only describes what `check` reads. */
  shape?: z.ZodType;
  check?: (raw: unknown, context: RouteContext) => Checked<Body>;
  /** Parameters of the path, the query and the body that are no fields by their names. */
  apart?: readonly string[];
  input?(request: { id: string; query: Query; body: Body }, context: RouteContext): MessageInitShape<I>;
  reply: Reply;
  answer(output: MessageShape<O>, context: RouteContext): z.input<Reply>;
  /** What is sent in place of the answer, if there is any. */
  file?(output: MessageShape<O>): (GeneratedFile & { content: Uint8Array }) | undefined;
};

/** A body as the route reads it, or all that is wrong with it. */
export type Checked<Body> = { ok: true; value: Body } | { ok: false; violations: readonly Violation[] };

/**
 * A route that lists things by `rpc`, a page at a time: `{[name]: [...], next_cursor}`.
 *
 * The RPC ends a page early where it would be too large for one message. Then as many further pages are asked for
 * as make up the `limit` of the request, each when the reader has taken the one before.
 */
export function listRoute<I extends DescMessage, O extends DescMessage, Query, Name extends string>(
  path: string,
  rpc: DescMethodUnary<I, O>,
  spec: ListRoute<I, MessageShape<O>, Query, Name>,
): Route {
  const { summary, name, query, item, beside } = spec;
  const reply = z.object({ [name]: z.array(item.schema), next_cursor: nextCursor, ...beside?.shape });
  const messageOf = messageByNames(path, rpc.input, {
    ...spec,
    apart: [...pageNames, ...(spec.apart ?? [])],
  });
  const handle = (context: RouteContext) => sendList(context, rpc, spec, messageOf);
  return customRoute('get', path, rpc, { summary, query, reply, handle });
}

const pageNames = ['limit', 'cursor'];

async function sendList<I extends DescMessage, O extends DescMessage, Query, Name extends string>(
  context: RouteContext,
  rpc: DescMethodUnary<I, O>,
  { query: schema, pageSize, name, input, item, beside }: ListRoute<I, MessageShape<O>, Query, Name>,
  messageOf: (params: Request['params'], query: Query) => MessageInitShape<I>,
): Promise<void> {
  const { request, response } = context;
  const query = readQuery(request, schema);
  const { limit, cursor = '' } = query;
  const wanted = limit ?? pageSize ?? pageSizes.default;
  const first = await read({ pageSize: wanted, pageToken: cursor }, false);
  if (first.isLast || first.items.length >= wanted) {
    const next = textOrNullReply(first.nextPageToken);
    if (next !== null) linkToNext(context, next);
    return sendJson(response, 200, { [name]: first.items, next_cursor: next, ...first.facts });
  }

  response.setHeader('content-type', 'application/json; charset=utf-8');
  await sendChunks(response, texts());

  async function read(page: PageRequest, continued: boolean) {
    const named = Object.assign(messageOf(request.params, query), page);
    const output: unknown = await context.call(rpc, Object.assign(named, input?.({ query, continued })));
    // The type of `name` holds only for responses that have these fields.
    const { [name]: given, nextPageToken } = output as Page<Name, ItemOf<MessageShape<O>, Name>>;
    const isLast = nextPageToken === '' || beside?.isLast(output as MessageShape<O>) === true;
    const facts = beside?.of(output as MessageShape<O>) ?? {};
    return { items: given.map((each) => item.of(each)), nextPageToken, isLast, facts };
  }

  async function* texts(): AsyncGenerator<string> {
    yield `{${JSON.stringify(name)}:[`;
    let { items, nextPageToken, isLast, facts } = first;
    for (let sent = 0; ; ) {
      for (const each of items) yield `${sent++ > 0 ? ',' : ''}${JSON.stringify(each)}`;
      if (sent >= wanted || isLast) break;
      const page = { pageSize: wanted - sent, pageToken: nextPageToken };
      ({ items, nextPageToken, isLast, facts } = await read(page, true));
    }
    const rest = { next_cursor: textOrNullReply(nextPageToken), ...first.facts, ...facts };
    yield `],${JSON.stringify(rest).slice(1)}`;
  }
}

/**
 * Says in the header `Link` where the next page is: the same query with `cursor`, which takes the place of `offset`.
 */
function linkToNext({ request, response }: RouteContext, cursor: string): void {
  const [, query = ''] = request.originalUrl.split('?', 2);
  const next = new URLSearchParams(query);
  next.delete('offset');
  next.set('cursor', cursor);
  // Relative to the address that was asked for, which a proxy may have moved.
  response.setHeader('link', `<?${next.toString()}>; rel="next"`);
}

type ListRoute<I extends DescMessage, Output, Query, Name extends string> = {
  summary: string;
  /** The property of the reply that has the items, which is the field of the RPC's response. */
  name: Output extends Page<Name, unknown> ? Name : never;
  query: QuerySchema<Query & { limit?: number; cursor?: string }>;
  /** Without a `limit` in the query; as in every list unless given. */
  pageSize?: number;
  /** Parameters of the query that are no fields by their names. */
  apart?: readonly string[];
  /** `continued`: it follows a page that ended early. What is skipped was skipped then. */
  input?: (request: { query: Query; continued: boolean }) => MessageInitShape<I>;
  item: Shape<ItemOf<Output, Name>, z.ZodObject>;
  /** What the reply has beside the items. `isLast`: no further page is asked for, though there is one. */
  beside?: {
    shape: z.ZodRawShape;
    of: (output: Output) => Record<string, unknown>;
    isLast: (output: Output) => boolean;
  };
};

type PageRequest = { pageSize: number; pageToken: string };

type Page<Name extends string, Item> = Record<Name, readonly Item[]> & { nextPageToken: string };

type ItemOf<Output, Name extends string> = Output extends Page<Name, infer Item> ? Item : never;
