import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { uploadLimits } from '../../domain/fields/upload-limits.ts';
import { readParts } from '../../http/body.ts';
import { type ErrorDetail, httpErrorOf } from '../../http/errors.ts';
import { fileParts } from '../../http/file-parts.ts';
import type { ReceivedFile } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { readOpen, refuseForeign, type Visit } from './visit.ts';
import { visitOf } from './visit-of.ts';

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query, and on a form's own page what tells the page apart in headers. Answers 201 with what the
 * answer is to name.
 */
export async function postUpload(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const visit = visitOf(exchange);
  const shown = await readOpen(visit);
  refuseForeign(exchange, shown);
  const headers = [['_session', 'x-form-session'] as const, ['_issued', 'x-form-issued'] as const];
  await visit.resume(
    new Map(headers.map(([input, header]) => [input, [textOf(request.headers[header])]])),
    shown,
  );
  const upload = await uploadFile(exchange, visit, {
    name: textOf(request.query.field),
    filename: textOf(request.query.filename),
    content: readParts(request, MAX_FILE_BYTES),
  });
  sendJson(response, 201, {
    upload: {
      upload_id: upload?.id,
      filename: upload?.filename,
      content_type: upload?.contentType,
      size: upload?.size,
    },
    ...(visit.sessionId() !== '' && { session_id: visit.sessionId() }),
  });
}

/** Passes a file on as it arrives. */
async function uploadFile({ stream }: PageExchange, visit: Visit, { name, filename, content }: ReceivedFile) {
  const parts = fileParts({ target: await visit.uploadTarget(), fieldId: name, filename }, content);
  return (await stream(UploadsService.method.uploadFile, parts)).upload;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What became of the files of a post. */
export class PostedFiles {
  readonly stored: { fieldId: string; uploadId: string; filename: string; size: number }[] = [];
  readonly problems: ErrorDetail[] = [];

  /** Stores a file as soon as it has come. What the field does not take becomes a problem of the field. */
  async take(
    exchange: PageExchange,
    visit: Visit,
    fields: readonly Field[],
    file: ReceivedFile,
  ): Promise<void> {
    const { name } = file;
    if (!fields.some((field) => field.id === name && uploadLimits(field) !== undefined)) return;
    try {
      const upload = await uploadFile(exchange, visit, file);
      if (upload === undefined) return;
      const { id: uploadId, filename, size } = upload;
      this.stored.push({ fieldId: name, uploadId, filename, size });
    } catch (error) {
      const { reason, details } = httpErrorOf(error);
      if (reason !== 'invalid' && reason !== 'too_large') throw error;
      const [first] = details;
      const { code, message } = first ?? { code: 'too_big', message: 'The file is too large' };
      this.problems.push({ path: `answers.${name}.file`, code, message });
    }
  }
}
