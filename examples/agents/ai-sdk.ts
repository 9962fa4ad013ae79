import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { generateText, isStepCount, type ModelMessage, tool } from 'ai';
import { z } from 'zod';
import { ask, ended } from './forms.ts';
import { aiModel as model } from './models.ts';

// node ai-sdk.ts: asks at the first run, and resumes at the next. The messages are in a file.
const file = process.argv[2] ?? 'ai-sdk.json';
const deploy = tool({
  description: 'Deploys a version.',
  inputSchema: z.object({ version: z.string() }),
  needsApproval: true,
  execute: async ({ version }) => `deployed ${version}`,
});
const generate = (messages: ModelMessage[]) =>
  generateText({ model, messages, tools: { deploy }, stopWhen: isStepCount(5) });

if (existsSync(file)) {
  const { id, approvalId, messages } = JSON.parse(readFileSync(file, 'utf8'));
  const { outcome, yes } = await ended(id);
  const approved = outcome === 'submitted' && yes;
  const reason = approved ? outcome : `not deployed: ${outcome}`;
  const answer = { type: 'tool-approval-response' as const, approvalId, approved, reason };
  console.log((await generate([...messages, { role: 'tool', content: [answer] }])).text);
} else {
  const asked: ModelMessage = { role: 'user', content: 'Deploy 4.2.' };
  const { content, responseMessages } = await generate([asked]);
  const request = content.find((part) => part.type === 'tool-approval-request');
  const { id, url } = await ask(`ai ${file}`, `May I deploy ${JSON.stringify(request?.toolCall.input)}?`);
  const messages = [asked, ...responseMessages];
  writeFileSync(file, JSON.stringify({ id, approvalId: request?.approvalId, messages }));
  console.log(url);
}
