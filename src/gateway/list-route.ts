import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { z } from 'zod';
import { pageSizes } from '../domain/limits/limits.ts';
import { sendJson, sendPieces } from '../http/reply.ts';
import { textOrNull } from '../http/values.ts';
import { customRoute, type Exchange, idOf, type Route, readQuery } from './route.ts';
import { nextCursor } from './schemas.ts';

/**
 * A route that lists things by `rpc`, a page at a time: `{[name]: [...], next_cursor}`.
 *
 * The RPC ends a page early where it would be too large for one message. Then as many further pages are asked for
 * as make up the `limit` of the request, each when the reader has taken the one before.
 */
export function listRoute<I extends DescMessage, O extends DescMessage, Query, Item extends z.ZodType>(
  path: string,
  rpc: DescMethodUnary<I, O>,
  spec: ListRoute<I, O, Query, Item>,
): Route {
  const { summary, name, query, item } = spec;
  const reply = z.object({ [name]: z.array(item), next_cursor: nextCursor });
  const handle = (exchange: Exchange) => sendList(exchange, rpc, spec);
  return customRoute('get', path, rpc, { summary, query, reply, handle });
}

async function sendList<I extends DescMessage, O extends DescMessage, Query, Item extends z.ZodType>(
  exchange: Exchange,
  rpc: DescMethodUnary<I, O>,
  { query: schema, pageSize, name, input, answer }: ListRoute<I, O, Query, Item>,
): Promise<void> {
  const { call, request, response } = exchange;
  const query = readQuery(request, schema);
  const wanted = query.limit ?? pageSize ?? pageSizes.default;
  const id = idOf(request);
  const first = { pageSize: wanted, pageToken: query.cursor ?? '' };
  const page = answer(await call(rpc, input({ id, query, page: first, continued: false })));
  if (page.nextPageToken === '' || page.items.length >= wanted) {
    const next = textOrNull(page.nextPageToken);
    return sendJson(response, 200, { [name]: page.items, next_cursor: next });
  }

  response.setHeader('content-type', 'application/json; charset=utf-8');
  await sendPieces(response, pieces(page));

  async function* pieces(begin: ListPage<Item>): AsyncGenerator<string> {
    yield `{${JSON.stringify(name)}:[`;
    let { items, nextPageToken } = begin;
    for (let sent = 0; ; ) {
      for (const each of items) yield `${sent++ > 0 ? ',' : ''}${JSON.stringify(each)}`;
      if (sent >= wanted || nextPageToken === '') break;
      const next = { pageSize: wanted - sent, pageToken: nextPageToken };
      const output = await call(rpc, input({ id, query, page: next, continued: true }), { continued: true });
      ({ items, nextPageToken } = answer(output));
    }
    yield `],"next_cursor":${JSON.stringify(textOrNull(nextPageToken))}}`;
  }
}

type ListRoute<I extends DescMessage, O extends DescMessage, Query, Item extends z.ZodType> = {
  summary: string;
  /** The property of the reply that has the items. */
  name: string;
  query: z.ZodType<Query & { limit?: number; cursor?: string }>;
  /** Without a `limit` in the query; as in every list unless given. */
  pageSize?: number;
  /** `continued`: it follows a page that ended early. What is skipped was skipped then. */
  input: (request: {
    id: string;
    query: Query;
    page: { pageSize: number; pageToken: string };
    continued: boolean;
  }) => MessageInitShape<I>;
  /** The schema of an item. */
  item: Item;
  answer: (output: MessageShape<O>) => ListPage<Item>;
};

type ListPage<Item extends z.ZodType> = { items: readonly z.input<Item>[]; nextPageToken: string };
