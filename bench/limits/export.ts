import { Client, Query } from 'pg';
import { serve } from '../support/serve.ts';

/** The least that an export can cost: `COPY (SELECT …) TO STDOUT` through `pg`, its bytes counted only. */
serve(async ({ databaseUrl }: { databaseUrl: string }) => {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  return { ready: {}, answer: ({ sql }: { sql: string }) => copyOut(client, sql) };
});

async function copyOut(client: Client, sql: string): Promise<{ bytes: number }> {
  const copy = new CopyOut(sql);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  copy.on('end', () => resolve());
  copy.on('error', reject);
  client.query(copy);
  await promise;
  return { bytes: copy.bytes };
}

class CopyOut extends Query {
  bytes = 0;

  /** What `pg` calls with each piece of a copy. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.bytes += chunk.length;
  }
}
