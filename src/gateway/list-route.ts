import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { z } from 'zod';
import { pageSizes } from '../domain/limits/limits.ts';
import { sendChunks, sendJson } from '../http/reply.ts';
import { type Shape, textOrNull } from '../http/shape.ts';
import { customRoute, type QuerySchema, type Route, readQuery } from './route.ts';
import type { RouteContext } from './route-context.ts';
import { nextCursor } from './schemas.ts';

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
  const { summary, name, query, item } = spec;
  const reply = z.object({ [name]: z.array(item.schema), next_cursor: nextCursor });
  const handle = (context: RouteContext) => sendList(context, rpc, spec);
  return customRoute('get', path, rpc, { summary, query, reply, handle });
}

async function sendList<I extends DescMessage, O extends DescMessage, Query, Name extends string>(
  context: RouteContext,
  rpc: DescMethodUnary<I, O>,
  { query: schema, pageSize, name, input, item }: ListRoute<I, MessageShape<O>, Query, Name>,
): Promise<void> {
  const { request, response, id } = context;
  const query = readQuery(request, schema);
  const wanted = query.limit ?? pageSize ?? pageSizes.default;
  const first = await read({ pageSize: wanted, pageToken: query.cursor ?? '' }, false);
  if (first.nextPageToken === '' || first.items.length >= wanted) {
    const next = textOrNull(first.nextPageToken);
    return sendJson(response, 200, { [name]: first.items, next_cursor: next });
  }

  response.setHeader('content-type', 'application/json; charset=utf-8');
  await sendChunks(response, texts());

  async function read(page: PageRequest, continued: boolean) {
    const output: unknown = await context.call(rpc, input({ id, query, page, continued }));
    // The type of `name` holds only for responses that have these fields.
    const { [name]: given, nextPageToken } = output as Page<Name, ItemOf<MessageShape<O>, Name>>;
    return { items: given.map((each) => item.of(each)), nextPageToken };
  }

  async function* texts(): AsyncGenerator<string> {
    yield `{${JSON.stringify(name)}:[`;
    let { items, nextPageToken } = first;
    for (let sent = 0; ; ) {
      for (const each of items) yield `${sent++ > 0 ? ',' : ''}${JSON.stringify(each)}`;
      if (sent >= wanted || nextPageToken === '') break;
      ({ items, nextPageToken } = await read({ pageSize: wanted - sent, pageToken: nextPageToken }, true));
    }
    yield `],"next_cursor":${JSON.stringify(textOrNull(nextPageToken))}}`;
  }
}

type ListRoute<I extends DescMessage, Output, Query, Name extends string> = {
  summary: string;
  /** The property of the reply that has the items, which is the field of the RPC's response. */
  name: Output extends Page<Name, unknown> ? Name : never;
  query: QuerySchema<Query & { limit?: number; cursor?: string }>;
  /** Without a `limit` in the query; as in every list unless given. */
  pageSize?: number;
  /** `continued`: it follows a page that ended early. What is skipped was skipped then. */
  input: (request: {
    id: string;
    query: Query;
    page: PageRequest;
    continued: boolean;
  }) => MessageInitShape<I>;
  item: Shape<ItemOf<Output, Name>, z.ZodObject>;
};

type PageRequest = { pageSize: number; pageToken: string };

type Page<Name extends string, Item> = Record<Name, readonly Item[]> & { nextPageToken: string };

type ItemOf<Output, Name extends string> = Output extends Page<Name, infer Item> ? Item : never;
