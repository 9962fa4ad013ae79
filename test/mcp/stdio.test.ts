import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, it } from 'vitest';
import { program } from '../support/programs.ts';
import { startService } from '../support/server.ts';

const root = join(import.meta.dirname, '../..');

it.each(['auto', 'legacy'] as const)('serves MCP by standard input and output (%s)', async (mode) => {
  await using service = await startService();
  await service.givenPublishedForm();
  const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode } });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...program('cli'), 'mcp', '--server', service.url],
    env: { KEY: service.key },
    cwd: root,
  });

  await client.connect(transport);
  const { tools } = await client.listTools();
  const listed = await client.callTool({ name: 'list_forms', arguments: {} });
  const { contents } = await client.readResource({ uri: 'schema://form-definition' });
  await client.close();

  expect(tools).toHaveLength(13);
  expect(listed.structuredContent).toMatchObject({ forms: [{ name: 'Contact' }] });
  expect(contents).toHaveLength(1);
});

it('answers what it can’t pass on, and ends with its input', () => {
  const input = `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })}\nnonsense\n`;

  const ended = spawnSync(process.execPath, [...program('cli'), 'mcp', '--server', 'http://127.0.0.1:9'], {
    cwd: root,
    env: { KEY: 'hfs_none' },
    input,
    encoding: 'utf8',
  });

  const replies = ended.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(replies).toContainEqual(expect.objectContaining({ id: 7, error: expect.anything() }));
  expect(replies).toContainEqual(
    expect.objectContaining({ id: null, error: expect.objectContaining({ code: -32_700 }) }),
  );
  expect(ended.status).toBe(0);
});
