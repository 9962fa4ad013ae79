import { once } from 'node:events';
import { createClient } from '@connectrpc/connect';
import { z } from 'zod';
import { ExportFormat, SubmissionsService } from '../../../gen/forms/v1/submissions_pb.js';
import { violationsOf } from '../../domain/violations.ts';
import { callOptions } from '../../http/call.ts';
import { contentError } from '../../http/errors.ts';
import { customRoute, type Exchange, idOf, type Route, tagged } from '../route.ts';

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
  const query = exportQuery.safeParse(request.query);
  if (query.error) throw contentError(violationsOf(query.error, request.query), 'bad_request');
  const { format, type } = formats[query.data.format];
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const options = { ...callOptions(request, response, 'api'), signal: gone.signal };
  const chunks = createClient(SubmissionsService, transport)
    .exportSubmissions({ formId, format }, options)
    [Symbol.asyncIterator]();
  // A refusal comes before the first chunk, while there is still a status to send.
  let chunk = await chunks.next();
  response.setHeader('content-type', type);
  response.setHeader(
    'content-disposition',
    `attachment; filename="${filenameOf(formId, query.data.format)}"`,
  );
  try {
    for (; !chunk.done && request.method !== 'HEAD'; chunk = await chunks.next()) {
      if (!response.write(chunk.value.data)) await once(response, 'drain', { signal: gone.signal });
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
