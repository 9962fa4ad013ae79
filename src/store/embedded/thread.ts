import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { openFiles } from './files.ts';
import type { DatabaseAnswer, DatabaseCall, DatabaseRequest, ThreadInput } from './messages.ts';
import { createRequestQueue } from './request-queue.ts';
import { createStatements } from './statements.ts';

/** The program of the thread that has the embedded database, and runs what a session asks of it. */
const port = parentPort as MessagePort;
const { place, dump }: ThreadInput = workerData;
const pglite = await openFiles({ place, dump: dump && new Blob([dump]) });
const runPrepared = createStatements(pglite);
const requests = createRequestQueue();
const stops = new Map<number, () => Promise<void>>();
let isRunning = false;

async function runAll(): Promise<void> {
  if (isRunning) return;
  isRunning = true;
  for (let request = next(); request !== undefined; request = next()) await answer(request);
  isRunning = false;
}

/** Of those that have come by now. */
function next(): DatabaseRequest | undefined {
  for (let came = receiveMessageOnPort(port); came !== undefined; came = receiveMessageOnPort(port))
    requests.add(came.message);
  return requests.take();
}

async function answer(request: DatabaseRequest): Promise<void> {
  const { id } = request;
  try {
    send({ id, result: await run(id, request) });
    requests.end(request, true);
  } catch (error) {
    send({ id, error: fieldsOf(error) });
    requests.end(request, false);
  }
  if (request.what === 'close') port.close();
}

async function run(id: number, call: DatabaseCall): Promise<unknown> {
  switch (call.what) {
    case 'statement': {
      const { sql, params = [], prepared = false } = call;
      if (prepared) return { rows: await runPrepared(sql, params) };
      const { rows, affectedRows } = await pglite.query(sql, params);
      return { rows, affectedRows };
    }
    case 'listen':
      stops.set(id, await pglite.listen(call.channel, () => send({ id })));
      return undefined;
    case 'unlisten':
      return stops.get(call.listener)?.();
    case 'dump':
      return pglite.dumpDataDir('none');
    case 'close':
      return pglite.close();
  }
}

function send(answer: DatabaseAnswer): void {
  port.postMessage(answer);
}

/** An error as it can be sent: without the statement and its parameters, which PGlite adds. */
function fieldsOf(error: unknown): { message: string } {
  if (!(error instanceof Error)) return { message: String(error) };
  const fields = Object.entries(error).filter(([name]) => name !== 'query' && name !== 'params');
  return { ...Object.fromEntries(fields), message: error.message };
}

port.on('message', (request: DatabaseRequest) => {
  requests.add(request);
  void runAll();
});
port.postMessage('open');
