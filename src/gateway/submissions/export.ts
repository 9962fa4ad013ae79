import { createClient } from '@connectrpc/connect';
import { z } from 'zod';
import { ExportFormat, SubmissionsService } from '../../../gen/forms/v1/submissions_pb.js';
import { callOptions } from '../../http/call.ts';
import { sendPieces } from '../../http/reply.ts';
import { customRoute, type Exchange, idOf, type Route, readQuery, tagged } from '../route.ts';

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
async function sendExport({ transport, request, response }: Exchange): Promise<void> {
  const formId = idOf(request);
  const query = readQuery(request, exportQuery);
  const { format, type } = formats[query.format];
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const options = { ...callOptions(request, response, 'api'), signal: gone.signal };
  const chunks = createClient(SubmissionsService, transport)
    .exportSubmissions({ formId, format }, options)
    [Symbol.asyncIterator]();
  // A refusal comes before the first chunk, while there is still a status to send.
  const first = await chunks.next();
  response.setHeader('content-type', type);
  response.setHeader('content-disposition', `attachment; filename="${filenameOf(formId, query.format)}"`);
  try {
    if (request.method === 'HEAD') response.end();
    else await sendPieces(response, dataOf(first, chunks));
  } finally {
    gone.abort();
  }
}

async function* dataOf(first: Chunk, rest: AsyncIterator<{ data: Uint8Array }>): AsyncGenerator<Uint8Array> {
  for (let chunk = first; !chunk.done; chunk = await rest.next()) yield chunk.value.data;
}

function filenameOf(formId: string, format: string): string {
  return `${formId.replaceAll(/[^\w-]/g, '')}.${format}`;
}

const formats = {
  csv: { format: ExportFormat.CSV, type: 'text/csv; charset=utf-8' },
  ndjson: { format: ExportFormat.NDJSON, type: 'application/x-ndjson; charset=utf-8' },
};

type Chunk = IteratorResult<{ data: Uint8Array }>;
