import { Annotation, Command, interrupt, START, StateGraph } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { ask, type Ended, ended, type Session } from './forms.ts';

// node langgraph.ts: asks at the first run, and resumes at the next. Checkpoints are in PostgreSQL, at DATABASE_URL.
const saver = PostgresSaver.fromConnString(process.env.DATABASE_URL ?? '');
await saver.setup();
const state = Annotation.Root({ session: Annotation<Session>, result: Annotation<string> });
const graph = new StateGraph(state)
  .addNode('ask', async (_, { configurable }) => ({
    session: await ask(`langgraph ${configurable?.thread_id}`, 'May I deploy 4.2?'),
  }))
  .addNode('deploy', ({ session }) => {
    const { outcome, yes } = interrupt<Session, Ended>(session);
    return { result: outcome === 'submitted' && yes ? 'deployed' : `not deployed: ${outcome}` };
  })
  .addEdge(START, 'ask')
  .addEdge('ask', 'deploy')
  .compile({ checkpointer: saver });

const config = { configurable: { thread_id: process.argv[2] ?? 'release-4.2' } };
const { values, next } = await graph.getState(config);
const input = next.length > 0 ? new Command({ resume: await ended(values.session.id) }) : {};
const { session, result } = await graph.invoke(input, config);
console.log(result ?? session.url);
await saver.end();
