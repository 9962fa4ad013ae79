import { z } from 'zod';
import {
  ExportFormat,
  SubmissionStatus,
  SubmissionsService,
  type WatchSubmissionsResponse,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { enumValue } from '../../domain/enums.ts';
import { optional } from '../../domain/json/optional.ts';
import { sendChunks, sendMessages } from '../../http/reply.ts';
import { timeReply } from '../../http/shape.ts';
import { customRoute, type Route, readQuery, replyOf, route, tagged } from '../route.ts';
import type { RouteContext } from '../route-context.ts';
import { filterQuery, submission } from './submissions.ts';

const exportQuery = z.object({ format: z.enum(['csv', 'ndjson']).default('csv') });

/** All submissions of a form as one file. */
export const exportRoutes: Route[] = tagged('Submissions', [
  customRoute('get', '/v1/forms/:id/submissions/export', SubmissionsService.method.exportSubmissions, {
    summary: 'All accepted submissions of a form as one file, oldest first',
    query: exportQuery,
    replyTypes: ['text/csv', 'application/x-ndjson'],
    handle: sendExport,
  }),
]);

/** Streams the file as fast as it is read, and stops the service's work when the reader goes. */
async function sendExport(context: RouteContext): Promise<void> {
  const { id: formId, request, response } = context;
  const query = readQuery(request, exportQuery);
  const { format, type } = formats[query.format];
  const chunks = context.receive(SubmissionsService.method.exportSubmissions, { formId, format });
  // A refusal comes before the first chunk, while there is still a status to send.
  const first = await chunks.next();
  response.setHeader('content-type', type);
  response.setHeader('content-disposition', `attachment; filename="${filenameOf(formId, query.format)}"`);
  await sendMessages(response, first, chunks, ({ data }) => data);
}

function filenameOf(formId: string, format: string): string {
  return `${formId.replaceAll(/[^\w-]/g, '')}.${format}`;
}

const formats = {
  csv: { format: ExportFormat.CSV, type: 'text/csv; charset=utf-8' },
  ndjson: { format: ExportFormat.NDJSON, type: 'application/x-ndjson; charset=utf-8' },
};

const streamQuery = z.object({
  ...filterQuery,
  cursor: optional(z.string().min(1), 'The last `id` of an earlier stream.'),
  token: optional(
    z.string(),
    'Of `POST /v1/streams/token`, in place of the header `Authorization`: `EventSource` sends none.',
  ),
});

/** The submissions of a form as they come. */
export const streamRoutes: Route[] = tagged('Submissions', [
  customRoute('get', '/v1/forms/:id/submissions/stream', SubmissionsService.method.watchSubmissions, {
    summary: 'The submissions of a form as they come, as server-sent events',
    query: streamQuery,
    headers: {
      'Last-Event-ID': z
        .string()
        .describe('As `cursor`, which it goes before: clients send it by themselves.'),
    },
    replyTypes: ['text/event-stream'],
    // Of a token nothing is encoded; of anything else, what no header can hold.
    credential: ({ query: { token } }) => (typeof token === 'string' ? encodeURIComponent(token) : undefined),
    handle: sendStream,
  }),
  route('post', '/v1/streams/token', SubmissionsService.method.createStreamToken, {
    summary: 'Make a token that opens the stream of one form for 10 minutes, for `EventSource`',
    body: z.strictObject({ form_id: z.string().describe('The form whose submissions may be watched.') }),
    status: 201,
    errors: [404],
    ...replyOf(SubmissionsService.method.createStreamToken.output, {
      token: z.string(),
      expires_at: timeReply,
    }),
  }),
]);

/** Sends each submission when the reader has taken the one before. The last event of a stop says so. */
async function sendStream(context: RouteContext): Promise<void> {
  const { id: formId, request, response } = context;
  const { source = '', status, cursor = '' } = readQuery(request, streamQuery);
  const { 'last-event-id': lastId } = request.headers;
  const messages = context.receive(SubmissionsService.method.watchSubmissions, {
    formId,
    source,
    status: enumValue(SubmissionStatus, status),
    cursor: typeof lastId === 'string' && lastId !== '' ? lastId : cursor,
  });
  async function* texts(): AsyncGenerator<string> {
    yield `retry: ${RETRY_MS}\n`;
    if (!first.done) yield eventOf(first.value);
    for await (const message of messages) yield eventOf(message);
    yield 'event: bye\ndata: {}\n\n';
  }
  // A refusal comes before the first message, while there is still a status to send.
  const first = await messages.next();
  response.setHeader('content-type', 'text/event-stream; charset=utf-8');
  // Proxies such as nginx would gather what is sent.
  response.setHeader('x-accel-buffering', 'no');
  try {
    await sendChunks(response, texts());
  } finally {
    await messages.return(undefined);
  }
}

/** Without a submission it is a comment, which moves the id on all the same. */
function eventOf({ cursor, submission: next }: WatchSubmissionsResponse): string {
  if (next === undefined) return `id: ${cursor}\n: listening\n\n`;
  const data = JSON.stringify({ submission: submission.of(next) });
  return `id: ${cursor}\nevent: submission\ndata: ${data}\n\n`;
}

/** How long clients wait before they connect again. */
const RETRY_MS = 2_000;
