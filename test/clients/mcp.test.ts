import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgent } from '../mcp/agent.ts';
import { startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';

const folder = join(import.meta.dirname, 'mcp');

/** That of a question, for the person. */
const link: unknown = expect.stringMatching(/\/f\/sess_\w+$/);

const isInstalled = existsSync(join(folder, 'node_modules'));
const isWanted = process.env.CLIENTS?.split(',').includes('mcp') ?? isInstalled;
if (!isWanted)
  console.warn('Left out: MCP clients. They need: npm ci --ignore-scripts --prefix test/clients/mcp');

if (isWanted)
  describe('MCP clients of others', () => {
    const opened = new AsyncDisposableStack();
    let service: TestService;
    beforeAll(async () => {
      if (!isInstalled)
        await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
      service = opened.use(await startService());
    }, 300_000);
    afterAll(() => opened.disposeAsync());

    it.each(['ai-sdk', 'langchain', 'openai-agents'])(
      '%s lists the tools, gives the model the link, and reads the answer',
      async (name) => {
        const lines = await linesOf(name);

        expect(lines).toEqual([await listed(), link, 'submitted {"go":true}']);
      },
    );

    it.each([
      [{ action: 'accept', content: { go: true } }, ['submitted {"go":true}']],
      [{ action: 'accept', content: { go: false } }, ['submitted {"go":false}']],
      [{ action: 'decline' }, ['declined']],
      [{ action: 'cancel' }, [link, 'submitted {"go":true}']],
    ])('ai-sdk asks in its own dialog, and reads what a person does there: %j', async (answer, said) => {
      const lines = await linesOf('ai-sdk', { ANSWER: JSON.stringify(answer) });

      expect(lines).toEqual([await listed(), 'asked May I deploy 4.2?', ...said]);
    });

    it.each(['legacy', 'modern'])(
      'the inspector lists the tools, asks, and reads the answer, by the protocol it calls %s',
      async (era) => {
        const tools = await inspect(era, 'tools/list');
        const questions = [{ id: 'go', label: 'May I deploy 4.2?', type: 'boolean', required: true }];
        const asked = await call(era, 'ask_person', { questions });
        await submit(asked.session_id);
        const answered = await call(era, 'wait_for_session', { session_id: asked.session_id });

        expect(`listed ${tools.tools.length}`).toBe(await listed());
        expect(asked).toMatchObject({ status: 'open', url: expect.stringContaining(asked.session_id) });
        expect(answered).toMatchObject({ status: 'submitted', answers: { go: true } });
      },
    );

    const submit = (id: string) => service.post(`/v1/sessions/${id}/submit`, { answers: { go: true } });

    /** What those say that list all tools. */
    async function listed(): Promise<string> {
      await using agent = await startAgent(service);
      return `listed ${(await agent.client.listTools()).tools.length}`;
    }

    /** What a program prints, line by line. A person consents at each link that it prints. */
    async function linesOf(name: string, env: Record<string, string> = {}): Promise<string[]> {
      const child = spawn(process.execPath, [`${name}.mjs`], {
        cwd: folder,
        env: { PATH: process.env.PATH, URL: service.url, KEY: service.key, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const lines: string[] = [];
      createInterface({ input: child.stdout }).on('line', (line) => {
        lines.push(line);
        const [, id] = /\/f\/(sess_\w+)$/.exec(line) ?? [];
        if (id !== undefined) void submit(id);
      });
      const [code] = await once(child, 'close');
      expect([code, lines]).toEqual([0, lines]);
      return lines;
    }

    async function inspect(era: string, method: string, ...args: string[]) {
      using home = temporaryFolder();
      const inspector = join(folder, 'node_modules/.bin/inspector');
      const header = `Authorization: Bearer ${service.key}`;
      const where = ['--cli', `${service.url}/mcp`, '--transport', 'http', '--header', header];
      const what = ['--protocol-era', era, '--format', 'json', '--method', method, ...args];
      const { stdout } = await run(process.execPath, [inspector, ...where, ...what], {
        env: { PATH: process.env.PATH, HOME: home.path },
      });
      return JSON.parse(stdout).result;
    }

    async function call(era: string, tool: string, args: object) {
      const given = ['--tool-name', tool, '--tool-args-json', JSON.stringify(args)];
      return (await inspect(era, 'tools/call', ...given)).structuredContent;
    }
  });

const run = promisify(execFile);
