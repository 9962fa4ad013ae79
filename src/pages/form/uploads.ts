import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { readBytes } from '../../http/body.ts';
import { type ErrorDetail, httpErrorOf } from '../../http/errors.ts';
import type { ReceivedFile } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { openSession, refuseForeign, sessionIdOf } from './open-session.ts';

const { createUpload } = UploadsService.method;

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query. Answers 201 with what the answer is to name.
 */
export async function postUpload(exchange: PageExchange): Promise<void> {
  const { call, request, response } = exchange;
  refuseForeign(exchange, await openSession(exchange));
  const { upload } = await call(createUpload, {
    target: { case: 'sessionId', value: sessionIdOf(exchange) },
    fieldId: textOf(request.query.field),
    filename: textOf(request.query.filename),
    content: await readBytes(request, MAX_FILE_BYTES),
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

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What became of the files of a post. */
export class PostedFiles {
  readonly stored: { fieldId: string; uploadId: string; filename: string }[] = [];
  readonly problems: ErrorDetail[] = [];

  /** Stores a file as soon as it has come. What the field does not take becomes a problem of the field. */
  async take(
    exchange: PageExchange,
    fields: readonly Field[],
    { name, filename, content }: ReceivedFile,
  ): Promise<void> {
    if (!fields.some(({ id, type }) => id === name && type === 'file')) return;
    if (content === undefined) return this.#refuse(name, 'too_big', 'The file is too large');
    try {
      const target = { case: 'sessionId', value: sessionIdOf(exchange) } as const;
      const { upload } = await exchange.call(createUpload, { target, fieldId: name, filename, content });
      if (upload !== undefined)
        this.stored.push({ fieldId: name, uploadId: upload.id, filename: upload.filename });
    } catch (error) {
      const { reason, details } = httpErrorOf(error);
      if (reason !== 'invalid' && reason !== 'too_large') throw error;
      const [first] = details;
      this.#refuse(name, first?.code ?? 'too_big', first?.message ?? 'The file is refused');
    }
  }

  #refuse(fieldId: string, code: string, message: string): void {
    this.problems.push({ path: `answers.${fieldId}.file`, code, message });
  }
}
