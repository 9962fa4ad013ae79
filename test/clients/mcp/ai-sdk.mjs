import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp';
import { generateText, isStepCount } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { headers, nextStep, url } from './model.mjs';

// ANSWER is what the person does in the client's dialog; without it the client has none.
const answer = process.env.ANSWER && JSON.parse(process.env.ANSWER);
const client = await createMCPClient({
  transport: { type: 'http', url, headers },
  ...(answer && { capabilities: { elicitation: {} } }),
});
if (answer)
  client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => {
    const asked = Object.values(params.requestedSchema.properties);
    console.log('asked', ...asked.map(({ title }) => title));
    return answer;
  });
const tools = await client.tools();
console.log('listed', Object.keys(tools).length);

const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
const model = new MockLanguageModelV4({
  async doGenerate({ prompt }) {
    const parts = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    const { name, input, text } = nextStep(parts.map(({ output }) => output));
    return {
      content: [
        name
          ? {
              type: 'tool-call',
              toolCallId: `call_${parts.length}`,
              toolName: name,
              input: JSON.stringify(input),
            }
          : { type: 'text', text },
      ],
      finishReason: { unified: name ? 'tool-calls' : 'stop', raw: undefined },
      usage: { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: 0 } },
      warnings: [],
    };
  },
});
const { text } = await generateText({ model, tools, prompt: 'Deploy 4.2.', stopWhen: isStepCount(5) });
console.log(text);
await client.close();
