// Stand-ins for models, so that the recipes run without one: put yours in their place. They call `deploy`, and then say
// what came of it.
import { type Model, Usage } from '@openai/agents';
import type { LanguageModel } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';

export const openaiModel: Model = {
  async getResponse({ input }) {
    const result =
      typeof input === 'string' ? undefined : input.find(({ type }) => type === 'function_call_result');
    const output = result === undefined ? toolCall : saying(JSON.stringify(result));
    return { usage: new Usage(), output: [output] };
  },
  getStreamedResponse() {
    throw new Error('Not streamed');
  },
};

const toolCall = {
  type: 'function_call' as const,
  callId: 'call_1',
  name: 'deploy',
  status: 'completed' as const,
  arguments: JSON.stringify({ version: '4.2' }),
};

function saying(text: string) {
  const content = [{ type: 'output_text' as const, text }];
  return { type: 'message' as const, role: 'assistant' as const, status: 'completed' as const, content };
}

export const aiModel: LanguageModel = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const results = prompt.flatMap((message) =>
      message.role === 'tool' ? message.content.filter(({ type }) => type === 'tool-result') : [],
    );
    const call = {
      type: 'tool-call' as const,
      toolCallId: 'call_1',
      toolName: 'deploy',
      input: toolCall.arguments,
    };
    const isAsked = results.length > 0;
    return {
      content: isAsked ? [{ type: 'text' as const, text: JSON.stringify(results) }] : [call],
      finishReason: { unified: isAsked ? ('stop' as const) : ('tool-calls' as const), raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      warnings: [],
    };
  },
});
