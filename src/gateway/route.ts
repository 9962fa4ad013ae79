import type { CallOptions } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { RefusalDetail, RefusalWord } from '../domain/refusal.ts';
import type { Scope } from '../domain/scopes.ts';
import { violationsOf } from '../domain/violations.ts';
import { type JsonBody, readJson } from './body.ts';
import type { Clients } from './clients.ts';
import { Refusal, refusalOf } from './errors.ts';
import type { Pages } from './pages.ts';
import { callOptions, sendJson } from './reply.ts';

/**
 * A route that is one call of one RPC.
 *
 * What does not fit the schemas of query and body is refused here, since a typed message can't
 * carry it. But who may not call, or names what is not there, is to hear that first: so before such
 * a refusal `refused` makes a call of the same access that no service accepts, and what it fails
 * with for another reason than its content goes first.
 */
export function route<Query, Body, Input, Output, Reply extends z.ZodType>(
  method: Method,
  path: string,
  spec: RpcRoute<Query, Body, Input, Output, Reply>,
): Route {
  const { status = 200, body = spec.shape, check = checkWith(spec.body) } = spec;
  return {
    method,
    path,
    operation: { ...spec, ...(body === undefined ? {} : { body }) },
    async handle(exchange) {
      const { clients, request, response } = exchange;
      const options = callOptions(request, response);
      const id = idOf(request);
      const query = spec.query?.safeParse(request.query);
      if (query?.error) {
        const violations = violationsOf(query.error, request.query);
        throw await refuse('bad_request', violations, () => spec.refused?.(clients, id, options));
      }
      const { value: raw, problems } = body === undefined ? noBody : await readJson(request);
      const checked: Checked<Body> =
        problems.length > 0 ? { ok: false, violations: problems } : check(raw, exchange);
      if (!checked.ok) {
        throw await refuse('invalid', checked.violations, () => spec.refused?.(clients, id, options));
      }
      // A route without a query's schema has no use for one.
      const input = spec.input({ id, query: query?.data as Query, body: checked.value });
      const output = await spec.call(clients)(input, options);
      sendJson(response, status, spec.answer(output, exchange));
    },
  };
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
 * The refusal of what the gateway itself can't read, unless the service refuses the caller before
 * it would look at the content.
 *
 * With `ownAnswers` the refused call carries the caller's answers, and what the service says of them
 * is told along.
 */
export async function refuse(
  reason: RefusalWord,
  violations: readonly RefusalDetail[],
  refusedCall: () => Promise<unknown> | undefined,
  { ownAnswers = false } = {},
): Promise<Refusal> {
  let others: readonly RefusalDetail[] = [];
  try {
    await refusedCall();
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal.reason !== 'invalid' && refusal.reason !== 'bad_request') return refusal;
    if (ownAnswers) others = refusal.details.filter(({ path }) => /^answers\../.test(path));
  }
  return refusalOfContent(reason, [...violations, ...others]);
}

/** A refusal that lists what is wrong, with the first of it as its message. */
function refusalOfContent(reason: RefusalWord, details: readonly RefusalDetail[]): Refusal {
  const [first] = details;
  const place = first === undefined || first.path === '' ? '' : `${first.path}: `;
  const rest = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
  return new Refusal(reason, `${place}${first?.message ?? 'The request is not valid'}${rest}`, { details });
}

/** The id in a route's path; every path has one at most. */
export function idOf(request: Request): string {
  const { id } = request.params;
  return typeof id === 'string' ? id : '';
}

export type Method = 'get' | 'post' | 'patch' | 'delete';

/** A route as the router serves it and the API description tells it. */
export type Route = {
  method: Method;
  /** As Express writes it: `/v1/forms/:id`. */
  path: string;
  operation: Operation;
  handle(exchange: Exchange): Promise<void>;
};

/** What the API description tells of a route. */
export type Operation = {
  /** A name in the API description, and of the method that generators make of it. */
  name: string;
  tag: string;
  summary: string;
  /** Who may call: anybody; anybody, or a key with the scope; only a key with the scope. */
  access: 'public' | { optional: Scope } | Scope;
  query?: z.ZodType;
  headers?: Record<string, z.ZodType>;
  body?: z.ZodType;
  /** Whether an empty body does as well. */
  bodyOptional?: boolean;
  /** The media types of a body that is not JSON at all. */
  bodyTypes?: readonly string[];
  /** Further media types of the body. */
  forms?: readonly string[];
  status?: number;
  reply?: z.ZodType;
  /** The media types of a reply that is not JSON. */
  replyTypes?: readonly string[];
  /** Refusals that only this route has, by status. */
  errors?: readonly number[];
};

type RpcOf<Input, Output> = (clients: Clients) => (input: Input, options?: CallOptions) => Promise<Output>;

type RpcRoute<Query, Body, Input, Output, Reply extends z.ZodType> = Omit<
  Operation,
  'query' | 'body' | 'reply'
> & {
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  /** In place of `body` where a schema can't say everything: it only describes what `check` reads. */
  shape?: z.ZodType;
  check?: (raw: unknown, exchange: Exchange) => Checked<Body>;
  call: RpcOf<Input, Output>;
  input(request: { id: string; query: Query; body: Body }): Input;
  /** A call of the same access that no service accepts. */
  refused?(clients: Clients, id: string, options: CallOptions): Promise<unknown>;
  reply: Reply;
  answer(output: Output, exchange: Exchange): z.input<Reply>;
};

/** A body that fits, as the route reads it, or all that is wrong with it. */
export type Checked<Body> = { ok: true; value: Body } | { ok: false; violations: readonly RefusalDetail[] };

/** One request on its way. */
export type Exchange = {
  clients: Clients;
  request: Request;
  response: Response;
  pages: Pages;
  /** The address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
};
