import { create } from '@bufbuild/protobuf';
import { EndingSchema, HostedService } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import { HttpError, httpErrorOf } from '../../http/errors.ts';
import { fileParts } from '../../http/file-parts.ts';
import { readForm } from '../../http/multipart.ts';
import { prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { type Exchange, idOf } from '../route.ts';
import { idempotencyKeyOf } from '../schemas.ts';

/**
 * Accepts the post of somebody's own HTML form: its inputs are the answers, its files are uploaded first.
 * Answers with a page or a redirect, unless JSON is preferred.
 */
export async function acceptFormPost({ call, stream, request, response, pages }: Exchange): Promise<void> {
  const formId = idOf(request);
  const key = idempotencyKeyOf(request);
  const inputs = await readForm(request, async ({ name, filename, content }) => {
    const target = { case: 'formId' as const, value: formId };
    const parts = fileParts({ target, fieldId: name, filename }, content);
    const stored = await stream(UploadsService.method.uploadFile, parts).catch((error: unknown) => {
      throw errorAt(`answers.${name}`, error);
    });
    return stored.upload?.id;
  });
  const { submissionId, ending } = await call(HostedService.method.submitPostedForm, {
    formId,
    inputs: [...inputs].filter(([name]) => !controls.has(name)).map(([name, values]) => ({ name, values })),
    source: inputs.get('_source')?.[0] ?? '',
    honeypot: inputs.get('_gotcha')?.join('') ?? '',
    nextUrl: inputs.get('_next')?.[0] ?? '',
    idempotencyKey: key,
  });
  if (prefersJson(request)) return sendJson(response, 201, { ok: true, submission_id: submissionId });
  if (ending?.redirectUrl) {
    response.statusCode = 303;
    response.setHeader('location', ending.redirectUrl);
    response.end();
    return;
  }
  await sendPage(request, response, 201, pages.renderCompletion(ending ?? create(EndingSchema), request));
}

/** Control names of an HTML form; no field can have them, since an id begins with a letter. */
const controls: ReadonlySet<string> = new Set(['_next', '_gotcha', '_source']);

/** The error of one file of a form's post, named by the input it came in. */
function errorAt(path: string, error: unknown): HttpError {
  const failed = httpErrorOf(error);
  if (failed.reason !== 'invalid') return failed;
  const { message, headers } = failed;
  return new HttpError('invalid', message, {
    details: failed.details.map((detail) => ({ ...detail, path })),
    headers,
  });
}
