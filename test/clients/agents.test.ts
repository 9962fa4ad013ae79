import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'examples/agents');

/** Each asks at its first run, and resumes in another process. */
const recipes = [
  { name: 'langgraph', command: [process.execPath, 'langgraph.ts'] },
  { name: 'openai-agents', command: [process.execPath, 'openai-agents.ts'] },
  { name: 'ai-sdk', command: [process.execPath, 'ai-sdk.ts'] },
  { name: 'plain', command: ['python3', 'plain.py'] },
];

const isInstalled = existsSync(join(folder, 'node_modules'));
const isWanted = process.env.CLIENTS?.split(',').includes('agents') ?? isInstalled;
if (!isWanted) console.warn('Left out: agents. They need: npm ci --ignore-scripts --prefix examples/agents');

it('shows the recipes in some 20 lines each, and names them in the documents', () => {
  const document = readFileSync(join(root, 'docs/agents.md'), 'utf8');
  const files = globSync('{langgraph,openai-agents,ai-sdk,temporal/*}.ts', { cwd: folder });
  const lengths = [...files, 'plain.py'].map((file) => {
    const lines = readFileSync(join(folder, file), 'utf8').split('\n');
    return lines.filter((line) => line.trim() !== '' && !/^(import|\/\/|\/\*\*|#)/.test(line)).length;
  });

  expect(files).toHaveLength(6);
  expect(Math.max(...lengths)).toBeLessThan(32);
  expect(files.filter((file) => !document.includes(file.replace('temporal/', '')))).toEqual([]);
});

if (isWanted)
  describe('recipes for agents', () => {
    const opened = new AsyncDisposableStack();
    let service: TestService;
    let databaseUrl: string;
    let place: string;
    beforeAll(async () => {
      if (!isInstalled)
        await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
      const postgres = await startPostgres();
      opened.defer(() => postgres.stop());
      databaseUrl = postgres.url;
      service = opened.use(await startService());
      place = opened.use(temporaryFolder()).path;
    }, 300_000);
    afterAll(() => opened.disposeAsync());

    it.each(recipes)(
      '$name resumes in another process with the answer of a person',
      async ({ name, command }) => {
        const state = join(place, `${name}-approved.json`);
        const url = await outputOf(command, state);
        const session = url.split('/').at(-1);
        const resumed = outputOf(command, state);
        await service.post(`/v1/sessions/${session}/submit`, { answers: { yes: true } });

        expect(url).toMatch(/\/f\/sess_\w+$/);
        expect(await resumed).toMatch(/deployed( 4\.2)?/);
        expect(await resumed).not.toContain('not deployed');
      },
    );

    it.each(recipes)('$name does nothing where the person declines', async ({ name, command }) => {
      const state = join(place, `${name}-declined.json`);
      const session = (await outputOf(command, state)).split('/').at(-1);
      await service.post(`/v1/sessions/${session}/decline`, {});

      expect(await outputOf(command, state)).toContain('not deployed: declined');
    });

    it('types all of them, and bundles the workflow of Temporal', async () => {
      await run('npx', ['tsc', '-p', '.'], { cwd: folder });
      const bundle = `import { bundleWorkflowCode } from '@temporalio/worker';
      const { code } = await bundleWorkflowCode({ workflowsPath: '${join(folder, 'temporal/workflow.ts')}' });
      console.log(code.includes('askPerson'));`;
      const { stdout } = await run(process.execPath, ['--input-type=module', '-e', bundle], { cwd: folder });

      expect(stdout.trim().split('\n').at(-1)).toBe('true');
    });

    /** What a recipe says at last. */
    async function outputOf([command = '', ...args]: string[], state: string): Promise<string> {
      const env = { ...process.env, URL: service.url, KEY: service.key, DATABASE_URL: databaseUrl };
      const { stdout } = await run(command, [...args, state], { cwd: folder, env });
      return stdout.trim();
    }
  });

const run = promisify(execFile);
