import { Agent, MCPServerStreamableHttp, run, setTracingDisabled, Usage } from '@openai/agents';
import { headers, nextStep, url } from './model.mjs';

setTracingDisabled(true);
const server = new MCPServerStreamableHttp({ url, requestInit: { headers } });
await server.connect();
console.log('listed', (await server.listTools()).length);

const model = {
  async getResponse({ input }) {
    const results = [input].flat().filter(({ type }) => type === 'function_call_result');
    const { name, input: args, text } = nextStep(results.map(({ output }) => output));
    const output = name
      ? {
          type: 'function_call',
          callId: `call_${results.length}`,
          name,
          status: 'completed',
          arguments: JSON.stringify(args),
        }
      : { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] };
    return { usage: new Usage(), output: [output] };
  },
};
const agent = new Agent({ name: 'Release', model, mcpServers: [server] });
console.log((await run(agent, 'Deploy 4.2.')).finalOutput);
await server.close();
