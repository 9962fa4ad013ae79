import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { isObject } from '../domain/json/json.ts';
import { reasonInWords } from './terminal.ts';

/**
 * Serves MCP on `input` and `output` by passing each message on to the service's `/mcp` with a key, for clients that
 * start a program in place of calling an address. Ends with `input`, once everything is answered.
 *
 * A message that the service does not answer is answered with its error, so that no client waits forever.
 */
export async function bridgeMcp({ server, key, input, output }: BridgeOptions): Promise<void> {
  const underWay = new Map<unknown, AbortController>();
  const answers = new Set<Promise<void>>();
  let version: string | undefined;

  for await (const line of createInterface({ input })) {
    if (line.trim() === '') continue;
    const message = parse(line);
    if (message === undefined) {
      write({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'The line is not a JSON object' } });
      continue;
    }
    if (message.method === 'notifications/cancelled') underWay.get(paramsOf(message).requestId)?.abort();
    const answer = pass(message);
    answers.add(answer);
    void answer.then(() => answers.delete(answer));
  }
  await Promise.all(answers);

  async function pass(message: Message): Promise<void> {
    const { id } = message;
    const controller = new AbortController();
    if (id !== undefined) underWay.set(id, controller);
    try {
      for (const reply of await post(message, controller.signal)) write(reply);
    } catch (error) {
      if (controller.signal.aborted || id === undefined) return;
      write({
        jsonrpc: '2.0',
        id,
        error: { code: -32_000, message: `The service can't be reached: ${reasonInWords(error)}` },
      });
    } finally {
      underWay.delete(id);
    }
  }

  /** The service's replies. One to a request as a whole gets the request's id. */
  async function post(message: Message, signal: AbortSignal): Promise<Message[]> {
    const response = await fetch(`${server.replace(/(?<!\/)\/+$/, '')}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headersOf(message, version),
      },
      body: JSON.stringify(message),
      signal,
    });
    const replies = messagesIn(await response.text());
    for (const { result } of replies) {
      if (message.method === 'initialize' && isObject(result)) version = textOf(result.protocolVersion);
    }
    if (message.id === undefined) return [];
    return replies.map((reply) => (reply.id === null ? { ...reply, id: message.id } : reply));
  }

  function write(message: Message): void {
    output.write(`${JSON.stringify(message)}\n`);
  }
}

/** What a message says of itself, as the headers of streamable HTTP repeat it. `negotiated` is of older clients. */
function headersOf(message: Message, negotiated: string | undefined): Record<string, string> {
  const { _meta: meta, name, uri } = paramsOf(message);
  const own = isObject(meta) ? textOf(meta['io.modelcontextprotocol/protocolVersion']) : undefined;
  const version = own ?? negotiated;
  const target = textOf(name) ?? textOf(uri);
  return {
    ...(version !== undefined && { 'mcp-protocol-version': version }),
    ...(own !== undefined && typeof message.method === 'string' && { 'mcp-method': message.method }),
    ...(own !== undefined && target !== undefined && { 'mcp-name': headerText(target) }),
  };
}

/** Text that no header can hold goes in base64, as the specification has it. */
function headerText(text: string): string {
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

/** The messages of a reply: JSON, or server-sent events. */
function messagesIn(text: string): Message[] {
  const bodies = text.trimStart().startsWith('{')
    ? [text]
    : [...text.matchAll(/^data: ?(.+)$/gm)].map(([, data = '']) => data);
  return bodies.map(parse).filter((message) => message !== undefined);
}

function parse(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function paramsOf({ params }: Message): Record<string, unknown> {
  return isObject(params) ? params : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A message of JSON-RPC. */
type Message = Record<string, unknown>;

type BridgeOptions = {
  /** The address of the service. */
  server: string;
  key: string;
  input: Readable;
  output: Writable;
};
