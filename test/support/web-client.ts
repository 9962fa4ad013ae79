import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** The generated clients and those of Connect for browsers, as a script that sets `rpc` of the page. */
export async function bundleWebClient(): Promise<string> {
  const bundle = await rolldown({ input: 'client', plugins: [entry], logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'iife', name: 'rpc' });
  await bundle.close();
  return output[0].code;
}

const gen = join(import.meta.dirname, '../../gen/forms/v1');

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
