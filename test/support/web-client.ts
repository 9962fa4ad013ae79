import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** The generated clients and those of Connect for browsers, as a script that sets `rpc` of the page. */
export async function bundleWebClient(): Promise<string> {
  return bundle('client', 'rpc');
}

/** A file of this repository with all it imports, as a script that gives a page its exports by this name. */
export async function bundle(input: string, name: string): Promise<string> {
  const built = await rolldown({ input, cwd: root, plugins: [entry], logLevel: 'silent' });
  const { output } = await built.generate({ format: 'iife', name });
  await built.close();
  return output[0].code;
}

const root = join(import.meta.dirname, '../..');
const gen = join(root, 'gen/headlessforms/v1');

const entry = {
  name: 'entry',
  resolveId: (id: string) => (id === 'client' ? join(import.meta.dirname, 'client.js') : null),
  load: (id: string) =>
    id === join(import.meta.dirname, 'client.js')
      ? `export { createClient, ConnectError } from '@connectrpc/connect';
         export { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web';
         export { FailureSchema } from '${gen}/errors_pb.js';
         export { FormsService } from '${gen}/forms_pb.js';
         export { SubmissionsService } from '${gen}/submissions_pb.js';`
      : null,
};
