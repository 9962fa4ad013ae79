import { HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { type UploadFileRequest, UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import type { Violation } from '../../domain/errors/violations.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { uploadLimits } from '../../domain/fields/index.ts';
import { readParts } from '../../http/body.ts';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, fileParts, lastOf, type ReceivedFile } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { fieldsOf, type PageSource, readOpen, sourceOf } from './page-source.ts';

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query, and on a form's own page what tells the page apart in headers. Answers 201 with what the
 * answer is to name.
 */
export async function postUpload(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const source = sourceOf(exchange);
  const issueToken = textOf(request.headers['x-form-issued']);
  await readOpen(source, new Map([['_session', [textOf(request.headers['x-form-session'])]]]));
  const upload = await uploadFile(exchange, await source.uploadTarget(issueToken), {
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
    ...(source.sessionId() !== '' && { session_id: source.sessionId() }),
  });
}

/** Passes a file on as it arrives. */
async function uploadFile(
  { stream }: PageExchange,
  target: UploadFileRequest['target'],
  { name, filename, content }: ReceivedFile,
) {
  const parts = fileParts({ target, fieldId: name, filename }, content);
  return (await stream(UploadsService.method.uploadFile, parts)).upload;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What became of the files of a post. */
export class PostedFiles {
  /** `isOnly`: its field takes one file. */
  readonly stored: { fieldId: string; uploadId: string; filename: string; size: number; isOnly: boolean }[] =
    [];
  readonly problems: Violation[] = [];

  /**
   * Stores a file as soon as it has come, `before` being the inputs that came before it. What the field does not take
   * becomes a problem of the field, and what the page does not take any more is dropped.
   */
  async take(
    exchange: PageExchange,
    source: PageSource,
    file: ReceivedFile,
    before: FormInputs,
  ): Promise<undefined> {
    const session = exchange.session ?? (await source.read({ inputs: before }));
    const field = fieldsOf(session).find(({ id }) => id === file.name);
    if (session.state !== HostedState.OPEN || field === undefined || uploadLimits(field) === undefined)
      return;
    try {
      const target = await source.uploadTarget(lastOf(before, '_issued'));
      const upload = await uploadFile(exchange, target, file);
      if (upload === undefined) return;
      const { id: uploadId, filename, size } = upload;
      this.stored.push({ fieldId: field.id, uploadId, filename, size, isOnly: (field.maxFiles ?? 1) === 1 });
    } catch (error) {
      const { reason, details } = restErrorOf(error);
      if (reason !== 'invalid' && reason !== 'too_large') throw error;
      const [first] = details;
      const { code, message } = first ?? { code: 'too_big', message: 'The file is too large' };
      this.problems.push({ path: `answers.${field.id}.file`, code, message });
    }
  }
}
