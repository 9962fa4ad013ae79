import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, RunState, run, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';
import { ask, ended } from './forms.ts';
import { openaiModel as model } from './models.ts';

// node openai-agents.ts: asks at the first run, and resumes at the next. The run is text in a file.
setTracingDisabled(true);
const file = process.argv[2] ?? 'openai-agents.json';
const deploy = tool({
  name: 'deploy',
  description: 'Deploys a version.',
  parameters: z.object({ version: z.string() }),
  needsApproval: true,
  execute: ({ version }) => `deployed ${version}`,
});
const agent = new Agent({ name: 'Release', model, tools: [deploy] });

if (existsSync(file)) {
  const { id, text } = JSON.parse(readFileSync(file, 'utf8'));
  const state = await RunState.fromString(agent, text);
  const { outcome, yes } = await ended(id);
  for (const call of state.getInterruptions()) {
    if (outcome === 'submitted' && yes) state.approve(call);
    else state.reject(call, { message: `not deployed: ${outcome}` });
  }
  console.log((await run(agent, state)).finalOutput);
} else {
  const { interruptions, state } = await run(agent, 'Deploy 4.2.');
  const [call] = interruptions;
  const { id, url } = await ask(`openai ${file}`, `May I ${call?.name} ${call?.arguments}?`);
  writeFileSync(file, JSON.stringify({ id, text: state.toString() }));
  console.log(url);
}
