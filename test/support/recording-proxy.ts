import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

/**
 * Opens a TCP proxy before a PostgreSQL server on a free port of 127.0.0.1, which keeps the text of every
 * statement that clients send: of queries, and of those that they prepare, once for each connection.
 */
export async function openRecordingProxy(databaseUrl: string): Promise<RecordingProxy> {
  const to = new URL(databaseUrl);
  const statements: string[] = [];
  const server = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    const read = statementReader((statement) => statements.push(statement));
    near.on('data', read);
    near.pipe(far).pipe(near);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      socket.on('error', () => other.destroy());
      socket.on('close', () => other.destroy());
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const through = new URL(databaseUrl);
  const { port } = server.address() as AddressInfo;
  through.host = `127.0.0.1:${port}`;
  return { databaseUrl: through.href, statements, [Symbol.dispose]: () => void server.close() };
}

/** Reads what a client sends, in pieces of any size, by PostgreSQL's protocol 3. */
function statementReader(onStatement: (text: string) => void): (piece: Buffer) => void {
  let rest = Buffer.alloc(0);
  let isStarted = false;
  return (piece) => {
    rest = Buffer.concat([rest, piece]);
    for (;;) {
      // The first message has no letter.
      const start = isStarted ? 1 : 0;
      if (rest.length < start + 4) return;
      const end = start + rest.readUInt32BE(start);
      if (rest.length < end) return;
      const kind = isStarted ? String.fromCharCode(rest[0] ?? 0) : '';
      const texts = rest
        .subarray(start + 4, end)
        .toString('utf8')
        .split('\0');
      if (kind === 'Q') onStatement(texts[0] ?? '');
      if (kind === 'P') onStatement(texts[1] ?? '');
      isStarted = true;
      rest = rest.subarray(end);
    }
  };
}

export type RecordingProxy = Disposable & {
  /** The server's URL by way of the proxy. */
  databaseUrl: string;
  /** What was sent so far, in order. */
  statements: string[];
};
