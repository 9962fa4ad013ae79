import { z } from 'zod';
import { ExportFormat, SubmissionsService } from '../../../gen/forms/v1/submissions_pb.js';
import { sendMessages } from '../../http/reply.ts';
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
async function sendExport({ receive, request, response }: Exchange): Promise<void> {
  const formId = idOf(request);
  const query = readQuery(request, exportQuery);
  const { format, type } = formats[query.format];
  const chunks = receive(SubmissionsService.method.exportSubmissions, { formId, format });
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
