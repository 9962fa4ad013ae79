import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { readParts } from '../../http/body.ts';
import { type ErrorDetail, httpErrorOf } from '../../http/errors.ts';
import { fileParts } from '../../http/file-parts.ts';
import type { ReceivedFile } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { openSession, refuseForeign, sessionIdOf } from './open-session.ts';

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query. Answers 201 with what the answer is to name.
 */
export async function postUpload(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  refuseForeign(exchange, await openSession(exchange));
  const upload = await uploadFile(exchange, {
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
  });
}

/** Passes a file on as it arrives. */
async function uploadFile(exchange: PageExchange, { name, filename, content }: ReceivedFile) {
  const target = { case: 'sessionId' as const, value: sessionIdOf(exchange) };
  const parts = fileParts({ target, fieldId: name, filename }, content);
  return (await exchange.stream(UploadsService.method.uploadFile, parts)).upload;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What became of the files of a post. */
export class PostedFiles {
  readonly stored: { fieldId: string; uploadId: string; filename: string }[] = [];
  readonly problems: ErrorDetail[] = [];

  /** Stores a file as soon as it has come. What the field does not take becomes a problem of the field. */
  async take(exchange: PageExchange, fields: readonly Field[], file: ReceivedFile): Promise<void> {
    const { name } = file;
    if (!fields.some(({ id, type }) => id === name && type === 'file')) return;
    try {
      const upload = await uploadFile(exchange, file);
      if (upload !== undefined)
        this.stored.push({ fieldId: name, uploadId: upload.id, filename: upload.filename });
    } catch (error) {
      const { reason, details } = httpErrorOf(error);
      if (reason !== 'invalid' && reason !== 'too_large') throw error;
      const [first] = details;
      const { code, message } = first ?? { code: 'too_big', message: 'The file is too large' };
      this.problems.push({ path: `answers.${name}.file`, code, message });
    }
  }
}
