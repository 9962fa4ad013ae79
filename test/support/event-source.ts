import { until } from './until.ts';

/**
 * Opens a stream of server-sent events, as browsers do, and collects what comes until it is disposed of. Rejects
 * with the reply's text if it is refused.
 */
export async function openEventSource(url: string, headers: Record<string, string>): Promise<EventSource> {
  const closed = new AbortController();
  const response = await fetch(url, { headers, signal: closed.signal });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  let text = '';
  let ended = false;
  let broken = false;
  const reading = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
  })();
  reading.then(
    () => {
      ended = true;
    },
    () => {
      broken = true;
    },
  );
  const blocks = () => text.split('\n\n').slice(0, -1).map(parse);
  const events = () => blocks().filter(({ data }) => data !== undefined);
  await until(() => blocks().length > 0);
  return {
    headers: response.headers,
    text: () => text,
    events,
    ended: () => ended,
    broken: () => broken,
    lastId: () => blocks().findLast(({ id }) => id !== undefined)?.id ?? '',
    async expectEvents(count) {
      await until(
        () => events().length >= count,
        undefined,
        () => `${events().length} of ${count} events came`,
      );
      return events();
    },
    async [Symbol.asyncDispose]() {
      closed.abort();
      await reading.catch(() => undefined);
    },
  };
}

/** What follows the first colon of each line, by what goes before it; comments begin with it. */
function parse(block: string): ServerSentEvent {
  return Object.fromEntries(
    block.split('\n').map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at), line.slice(at + 1).trimStart()];
    }),
  );
}

export type ServerSentEvent = { id?: string; event?: string; data?: string; retry?: string; ''?: string };

export type EventSource = AsyncDisposable & {
  headers: Headers;
  text(): string;
  /** Those with data. */
  events(): ServerSentEvent[];
  /** The last id, be it that of a comment. */
  lastId(): string;
  ended(): boolean;
  /** Whether it ended without its last message. */
  broken(): boolean;
  expectEvents(count: number): Promise<ServerSentEvent[]>;
};
