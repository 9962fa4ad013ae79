import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { FailureSchema, ViolationCode } from '../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SessionStatus, SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { ExportFormat, SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import type { Given } from './given.ts';

const DEADLINE_MS = 400;

/**
 * Does all that clients do by a transport that sends a key, in Node as in a browser, and says how it went. The transport
 * `lossy` loses replies, and repeats calls.
 */
export async function everyOperation(transport: Transport, lossy: Transport, given: Given) {
  const { formId, largeFormId, uploadId } = given;
  const forms = createClient(FormsService, transport);
  const submissions = createClient(SubmissionsService, transport);
  const sessions = createClient(SessionsService, transport);
  const uploads = createClient(UploadsService, transport);

  const fields = [{ id: 'email', type: FormFieldType.EMAIL, required: true }];
  const delivery = { channel: { case: 'email' as const, value: {} } };
  const made = await forms.createForm({ definition: { name: 'Contact', slug: 'contact', fields, delivery } });
  const ownId = made.form?.id ?? '';
  await forms.activateForm({
    formId: ownId,
    activationToken: made.activationToken,
    email: 'owner@example.com',
  });
  await submissions.createSubmission({ formId: ownId, answers: { email: 'ada@example.com' } });
  const refused = await submissions
    .createSubmission({ formId: ownId, answers: { email: 'ada', phone: '1' } })
    .then(
      () => undefined,
      (error: unknown) => ConnectError.from(error),
    );
  const own = await submissions.listSubmissions({ formId: ownId });
  const opened = await sessions.createSession({ subject: { case: 'formId', value: ownId } });
  const answers = { email: 'bob@example.com' };
  const ended = await sessions.submitSession({ sessionId: opened.session?.id ?? '', answers });

  const note = 'x'.repeat(20_000);
  const long = await submissions.createSubmission({ formId, answers: { email: 'ada@example.com', note } });
  const read = await submissions.getSubmission({ submissionId: long.submissionId });

  let late: ConnectError | undefined;
  try {
    for await (const _ of submissions.watchSubmissions({ formId }, { timeoutMs: DEADLINE_MS }));
  } catch (error) {
    late = ConnectError.from(error);
  }

  let listed = 0;
  let pageToken = '';
  do {
    const page = await submissions.listSubmissions({ formId: largeFormId, pageSize: 100, pageToken });
    listed += page.submissions.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== '');

  let lines = 0;
  for await (const { data } of submissions.exportSubmissions({
    formId: largeFormId,
    format: ExportFormat.NDJSON,
  })) {
    lines += data.filter((byte) => byte === 10).length;
  }
  let downloaded = 0;
  for await (const { content } of uploads.getUpload({ uploadId })) downloaded += content.length;
  const content = new Uint8Array(1_500_000);
  const target = { case: 'formId' as const, value: largeFormId };
  const uploaded = await uploads.createUpload({ target, fieldId: 'cv', content });

  const mark = crypto.randomUUID();
  await createClient(SubmissionsService, lossy).createSubmission({
    formId,
    answers: { email: 'ada@example.com', note: mark },
  });
  const found = await submissions.listSubmissions({
    formId,
    filters: [{ fieldId: 'note', condition: { case: 'eq', value: mark } }],
    includeTotal: true,
  });

  const { token } = await submissions.createStreamToken({ formId });
  const headers = { authorization: `Bearer ${token}` };
  const hasBegun = new AbortController();
  let watched = 0;
  try {
    for await (const _ of submissions.watchSubmissions({ formId }, { headers, signal: hasBegun.signal })) {
      watched += 1;
      hasBegun.abort();
    }
  } catch (error) {
    if (!hasBegun.signal.aborted) throw error;
  }

  return {
    refused: refused
      ?.findDetails(FailureSchema)
      .flatMap(({ violations }) => violations.map(({ path, code }) => `${path}: ${ViolationCode[code]}`)),
    own: own.submissions.map((submission) => submission.answers),
    session: SessionStatus[ended.session?.status ?? 0],
    read: read.submission?.answers?.note === note,
    late: late && Code[late.code],
    listed,
    lines,
    downloaded,
    uploaded: uploaded.upload?.size,
    found: Number(found.totalSize),
    watched,
  };
}

/** What `everyOperation` gives. */
export const everyResult = {
  refused: ['answers.email: INVALID_STRING', 'answers.phone: UNRECOGNIZED_KEYS'],
  own: [{ email: 'ada@example.com' }],
  session: 'SUBMITTED',
  read: true,
  late: 'DeadlineExceeded',
  listed: 24,
  lines: 24,
  downloaded: 10 * 1024 * 1024,
  uploaded: 1_500_000,
  found: 1,
  watched: 1,
};
