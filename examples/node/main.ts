// A form's whole life by gRPC: made, activated, answered, read, and its webhook checked.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { FormFieldType } from './gen/headlessforms/v1/definition_pb.js';
import { FailureSchema, ViolationCode } from './gen/headlessforms/v1/errors_pb.js';
import { FormsService } from './gen/headlessforms/v1/forms_pb.js';
import { SessionStatus, SessionsService } from './gen/headlessforms/v1/sessions_pb.js';
import { ExportFormat, SubmissionsService } from './gen/headlessforms/v1/submissions_pb.js';
import { WebhookEvent, WebhooksService } from './gen/headlessforms/v1/webhooks_pb.js';

const SECRET = 'a secret of sixteen';

const transport = createGrpcTransport({ baseUrl: `http://${process.env.GRPC_TARGET ?? 'localhost:8081'}` });
const owner = { headers: { authorization: `Bearer ${process.env.API_KEY}` } };
const forms = createClient(FormsService, transport);
const submissions = createClient(SubmissionsService, transport);
const sessions = createClient(SessionsService, transport);
const webhooks = createClient(WebhooksService, transport);

const definition = {
  name: 'Contact',
  slug: 'contact',
  fields: [
    { id: 'email', type: FormFieldType.EMAIL, required: true },
    { id: 'note', type: FormFieldType.TEXTAREA, maxLength: 100 },
  ],
  delivery: { channel: { case: 'email' as const, value: {} } },
};
const made = await forms.createForm({ definition }, owner);
const formId = made.form?.id ?? '';
await forms.activateForm({ formId, activationToken: made.activationToken, email: 'owner@example.com' });
console.log(`activated ${formId}`);

const receiver = createServer().listen(0, '127.0.0.1');
await once(receiver, 'listening');
const { port } = receiver.address() as AddressInfo;
const received = once(receiver, 'request', { signal: AbortSignal.timeout(30_000) });
const events = [WebhookEvent.SUBMISSION_CREATED];
await webhooks.createWebhook({ url: `http://127.0.0.1:${port}/`, events, secret: SECRET, formId }, owner);

const { submissionId } = await submissions.createSubmission({
  formId,
  answers: { email: 'ada@example.com' },
});
console.log(`submitted ${submissionId}`);
try {
  await submissions.createSubmission({ formId, answers: { email: 'ada', phone: '1' } });
} catch (error) {
  for (const { path, code } of ConnectError.from(error).findDetails(FailureSchema)[0]?.violations ?? []) {
    console.log(`refused ${path}: ${ViolationCode[code]}`);
  }
}

const page = await submissions.listSubmissions({ formId }, owner);
console.log('listed', ...page.submissions.map(({ answers }) => answers));

const { session: opened } = await sessions.createSession(
  { subject: { case: 'formId', value: formId } },
  owner,
);
const answers = { email: 'bob@example.com' };
const { session: ended } = await sessions.submitSession({ sessionId: opened?.id ?? '', answers }, owner);
console.log(`session ${SessionStatus[ended?.status ?? 0]}`);

let file = '';
const decoder = new TextDecoder();
for await (const { data } of submissions.exportSubmissions({ formId, format: ExportFormat.NDJSON }, owner)) {
  file += decoder.decode(data, { stream: true });
}
console.log(`exported ${file.trimEnd().split('\n').length} lines`);

const [request, response] = await received;
const body = await text(request);
response.writeHead(204).end();
console.log(
  `webhook signature ${isSigned(request.headers['x-service-signature'], body) ? 'valid' : 'INVALID'}`,
);
receiver.closeAllConnections();
receiver.close();

/** `t=<seconds>, v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`. A real receiver also refuses old times. */
function isSigned(header: string, body: string): boolean {
  const [, seconds = '', hex = ''] = /^t=(\d+), v1=([0-9a-f]{64})$/.exec(header) ?? [];
  const mac = createHmac('sha256', SECRET).update(`${seconds}.${body}`).digest();
  return hex !== '' && timingSafeEqual(mac, Buffer.from(hex, 'hex'));
}
