import { z } from 'zod';
import { type Upload, UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { MAX_FILE_BYTES } from '../domain/fields/file.ts';
import { required, violationsOf } from '../domain/violations.ts';
import { readBytes } from '../http/body.ts';
import { contentError } from '../http/errors.ts';
import { contentOf, isFormPost, type ReceivedFile, readForm } from '../http/multipart.ts';
import { sendJson } from '../http/reply.ts';
import { customRoute, type Exchange, idOf, type Route, tagged } from './route.ts';
import { present } from './schemas.ts';

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
  customRoute('post', '/api/forms/:id/uploads', rpcs.createUpload, {
    summary: 'Store a file for a submission to name; one that none names is removed after an hour',
    query: uploadQuery,
    bodyTypes: ['multipart/form-data', 'application/octet-stream'],
    status: 201,
    errors: [401, 410],
    reply: uploadReply,
    handle: takeUpload,
  }),
  customRoute('get', '/v1/uploads/:id', rpcs.getUpload, {
    summary: 'Read a submitted file',
    replyTypes: ['application/octet-stream'],
    handle: sendUpload,
  }),
]);

async function takeUpload({ call, request, response, baseUrl }: Exchange): Promise<void> {
  const query = uploadQuery.safeParse(request.query);
  if (query.error) throw contentError(violationsOf(query.error, request.query), 'bad_request');
  const { fieldId = query.data.field, file } = isFormPost(request)
    ? await readFormFile(request)
    : { file: { filename: query.data.filename ?? '', content: await readBytes(request, MAX_FILE_BYTES) } };
  if (fieldId === undefined || file === undefined) {
    throw contentError([required(fieldId === undefined ? 'field' : 'file')]);
  }
  const { filename, content } = file;
  const target = { case: 'formId' as const, value: idOf(request) };
  const { upload } = await call(rpcs.createUpload, { target, fieldId, filename, content });
  sendJson(response, 201, { upload: uploadOf(upload, baseUrl) });
}

/** The inputs `field` and `file` of a form's post, in any order. */
async function readFormFile(request: Exchange['request']): Promise<FormFile> {
  let file: ReceivedFile | undefined;
  const inputs = await readForm(request, async (received) => {
    if (received.name === 'file') file = received;
    return undefined;
  });
  const fieldId = inputs.get('field')?.at(-1);
  return {
    file: file && { filename: file.filename, content: contentOf(file) },
    ...(fieldId === undefined ? {} : { fieldId }),
  };
}

async function sendUpload({ call, request, response }: Exchange): Promise<void> {
  const { upload, content } = await call(rpcs.getUpload, { uploadId: idOf(request) });
  const { filename, contentType } = present(upload);
  response.attachment(filename);
  response.setHeader('content-type', contentType);
  response.setHeader('content-length', content.length);
  response.end(content);
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

type FormFile = { fieldId?: string; file: { filename: string; content: Buffer } | undefined };
