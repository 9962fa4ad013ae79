import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { TestService } from '../support/server.ts';

/** An MCP client, as agents have it, connected to a service with a key. It speaks the newest revision unless told. */
export async function startAgent(
  service: Pick<TestService, 'url' | 'key'>,
  { key = service.key, ...options }: AgentOptions = {},
): Promise<Agent> {
  const client = new Client(
    { name: 'agent', version: '1' },
    { versionNegotiation: { mode: 'auto' }, ...options },
  );
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', service.url), {
    requestInit: { headers: key === null ? {} : { authorization: `Bearer ${key}` } },
  });
  await client.connect(transport);
  return agentOf(client);
}

/** What tests do with a client that is connected. */
function agentOf(client: Client): Agent {
  return {
    client,
    async use(name, args = {}) {
      const { content, structuredContent, isError } = await client.callTool({ name, arguments: { ...args } });
      const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      const failure = isError === true ? JSON.parse(texts[0] ?? '').error : undefined;
      return { facts: structuredContent, failure, texts };
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

export type Agent = AsyncDisposable & {
  client: Client;
  /** Calls a tool. `failure` is what it says of an error. */
  use: (name: string, args?: object) => Promise<Used>;
};

type Used = { facts: Parsed; failure: Parsed; texts: string[] };

/** Tests look into results, and fail on what is not there. */
type Parsed = ReturnType<typeof JSON.parse>;

/** Null: it shows no key. */
type AgentOptions = ClientOptions & { key?: string | null };
