import { z } from 'zod';
import { type Upload, type UploadFileResponse, UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { required, violationsOf } from '../domain/errors/violations.ts';
import { MAX_FILE_BYTES } from '../domain/fields/file.ts';
import { readParts } from '../http/body.ts';
import { contentError } from '../http/errors.ts';
import { type FilePart, fileParts } from '../http/file-parts.ts';
import { isFormPost, type ReceivedFile, readForm } from '../http/multipart.ts';
import { sendJson } from '../http/reply.ts';
import { sendFile } from '../http/send-file.ts';
import { present } from '../http/values.ts';
import { customRoute, type Exchange, idOf, type Route, tagged } from './route.ts';
import { idempotencyKey, idempotencyKeyOf } from './schemas.ts';

const { method: rpcs } = UploadsService;

/** The field and the name of a file that is sent as the raw body; a form's post has them as inputs. */
const uploadQuery = z.object({
  field: z
    .string()
    .min(1)
    .exactOptional()
    .describe('The id of the file field; in a form’s post its input `field`.'),
  filename: z.string().max(1000).exactOptional().describe('The name of a file that is sent as the raw body.'),
});

const uploadReply = z.object({
  upload: z
    .object({
      upload_id: z.string().describe('What an answer names as `upload_id`.'),
      filename: z.string(),
      content_type: z.string().describe('Judged by the content.'),
      size: z.int(),
      sha256: z.string(),
      url: z.string().describe('Where a key with `submissions:read` reads it.'),
    })
    .meta({ id: 'Upload' }),
});

/** The routes of files that are answers. */
export const uploadRoutes: Route[] = tagged('Uploads', [
  customRoute('post', '/api/forms/:id/uploads', rpcs.uploadFile, {
    name: 'createUpload',
    summary: 'Store a file for a submission to name; one that none names is removed after an hour',
    query: uploadQuery,
    headers: { 'Idempotency-Key': idempotencyKey },
    bodyTypes: ['multipart/form-data', 'application/octet-stream'],
    status: 201,
    errors: [401, 409, 410],
    reply: uploadReply,
    handle: takeUpload,
  }),
  customRoute('get', '/v1/uploads/:id', rpcs.getUpload, {
    summary: 'Read a submitted file',
    replyTypes: ['*/*'],
    handle: sendUpload,
  }),
]);

async function takeUpload(exchange: Exchange): Promise<void> {
  const { admit, request, response, baseUrl } = exchange;
  const query = uploadQuery.safeParse(request.query);
  if (query.error) {
    await admit();
    throw contentError(violationsOf(query.error, request.query), request.query, 'bad_request');
  }
  const take = isFormPost(request) ? takeFormFile : takeRawFile;
  const { upload } = await take(exchange, { ...query.data, idempotencyKey: idempotencyKeyOf(request) });
  sendJson(response, 201, { upload: uploadOf(upload, baseUrl) });
}

async function takeRawFile({ stream, admit, request }: Exchange, sent: SentUpload) {
  const { field: fieldId, filename = '', idempotencyKey } = sent;
  if (fieldId === undefined) {
    await admit();
    throw contentError([required('field')], undefined);
  }
  const first: FilePart = {
    target: { case: 'formId', value: idOf(request) },
    fieldId,
    filename,
    idempotencyKey,
  };
  return stream(rpcs.uploadFile, fileParts(first, readParts(request, MAX_FILE_BYTES)));
}

/** The file in the input `file`; the input `field` may come before or after it. */
async function takeFormFile({ stream, admit, request }: Exchange, sent: SentUpload) {
  const field = Promise.withResolvers<string>();
  field.promise.catch(() => undefined);
  let uploading: Promise<UploadFileResponse> | undefined;
  const takeFile = async ({ name, filename, content }: ReceivedFile) => {
    if (name !== 'file' || uploading !== undefined) return undefined;
    const read = Promise.withResolvers<void>();
    const target = { case: 'formId' as const, value: idOf(request) };
    async function* parts(): AsyncGenerator<FilePart> {
      const { field: fieldId = '', idempotencyKey } = sent;
      yield* fileParts({ target, fieldId, filename, idempotencyKey }, content);
      read.resolve();
      yield { fieldId: await field.promise };
    }
    uploading = stream(rpcs.uploadFile, parts());
    await Promise.race([read.promise, uploading]);
    return undefined;
  };
  try {
    const inputs = await readForm(request, takeFile);
    const fieldId = inputs.get('field')?.at(-1) ?? sent.field;
    if (fieldId === undefined || uploading === undefined) {
      await admit();
      throw contentError([required(fieldId === undefined ? 'field' : 'file')], undefined);
    }
    field.resolve(fieldId);
    return await uploading;
  } catch (error) {
    // Ends a call that waits for the rest.
    field.reject(error);
    await uploading?.catch(() => undefined);
    throw error;
  }
}

async function sendUpload({ receive, request, response }: Exchange): Promise<void> {
  await sendFile(response, receive(rpcs.getUpload, { uploadId: idOf(request) }));
}

function uploadOf(message: Upload | undefined, baseUrl: string): z.input<typeof uploadReply>['upload'] {
  const there = present(message);
  return {
    upload_id: there.id,
    filename: there.filename,
    content_type: there.contentType,
    size: there.size,
    sha256: there.sha256,
    url: `${baseUrl}/v1/uploads/${there.id}`,
  };
}

/** What is sent beside a file. */
type SentUpload = z.output<typeof uploadQuery> & { idempotencyKey: string };
