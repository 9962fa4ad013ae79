import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { headers, nextStep, url } from './model.mjs';

const client = new MultiServerMCPClient({ mcpServers: { forms: { transport: 'http', url, headers } } });
const tools = await client.getTools();
console.log('listed', tools.length);

class Model extends BaseChatModel {
  _llmType() {
    return 'scripted';
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    const results = messages.filter((message) => message.getType() === 'tool');
    const { name, input, text = '' } = nextStep(results.map(({ content }) => content));
    const calls = name ? [{ name, args: input, id: `call_${results.length}`, type: 'tool_call' }] : [];
    const message = new AIMessage({ content: text, tool_calls: calls });
    return { generations: [{ text, message }] };
  }
}
const agent = createReactAgent({ llm: new Model({}), tools });
const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'Deploy 4.2.' }] });
console.log(messages.at(-1).content);
await client.close();
