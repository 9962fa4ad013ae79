import { once } from 'node:events';
import { ExportFormat } from '../../gen/forms/v1/submissions_pb.js';
import { violationsOf } from '../domain/violations.ts';
import { callOptions } from './reply.ts';
import { type Exchange, idOf, type Route, refuse } from './route.ts';
import { exportQuery } from './schemas/submissions.ts';

/** All submissions of a form as one file. */
export const exportRoutes: Route[] = [
  {
    method: 'get',
    path: '/v1/forms/:id/submissions/export',
    operation: {
      name: 'exportSubmissions',
      tag: 'Submissions',
      summary: 'All accepted submissions of a form as one file, oldest first',
      access: 'submissions:read',
      query: exportQuery,
      replyTypes: ['text/csv', 'application/x-ndjson'],
    },
    handle: sendExport,
  },
];

/** Streams the file as fast as it is read, and stops the service's work when the reader goes. */
async function sendExport({ clients, request, response }: Exchange): Promise<void> {
  const gone = new AbortController();
  const options = callOptions(request, response);
  const formId = idOf(request);
  const query = exportQuery.safeParse(request.query);
  if (query.error) {
    throw await refuse('bad_request', violationsOf(query.error, request.query), () =>
      clients.submissions.listSubmissions({ formId, pageSize: -1 }, options),
    );
  }
  const { format, type } = formats[query.data.format];
  response.once('close', () => gone.abort());
  const pieces = clients.submissions
    .exportSubmissions({ formId, format }, { ...options, signal: gone.signal })
    [Symbol.asyncIterator]();
  // What refuses the export does so before its first piece, while there is still a status to send.
  let piece = await pieces.next();
  response.setHeader('content-type', type);
  response.setHeader(
    'content-disposition',
    `attachment; filename="${filenameOf(formId, query.data.format)}"`,
  );
  try {
    for (; !piece.done && request.method !== 'HEAD'; piece = await pieces.next()) {
      if (!response.write(piece.value.data)) await once(response, 'drain', { signal: gone.signal });
    }
    response.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    gone.abort();
  }
}

function filenameOf(formId: string, format: string): string {
  return `${formId.replaceAll(/[^\w-]/g, '')}.${format}`;
}

const formats = {
  csv: { format: ExportFormat.CSV, type: 'text/csv; charset=utf-8' },
  ndjson: { format: ExportFormat.NDJSON, type: 'application/x-ndjson; charset=utf-8' },
};
