import { required, violationsOf } from '../domain/violations.ts';
import { readBytes } from './body.ts';
import { isFormPost, MAX_FILE_BYTES, type ReceivedFile, readForm } from './form-body.ts';
import { callOptions, sendJson } from './reply.ts';
import { type Exchange, idOf, type Route, refuse } from './route.ts';
import { present } from './schemas/common.ts';
import { uploadOf, uploadQuery, uploadReply } from './schemas/uploads.ts';

const tag = 'Uploads';

/** The routes of files that are answers. */
export const uploadRoutes: Route[] = [
  {
    method: 'post',
    path: '/api/forms/:id/uploads',
    operation: {
      name: 'createUpload',
      tag,
      summary: 'Store a file for a submission to name; one that none names is removed after an hour',
      access: 'public',
      query: uploadQuery,
      bodyTypes: ['multipart/form-data', 'application/octet-stream'],
      status: 201,
      errors: [401, 410],
      reply: uploadReply,
    },
    handle: takeUpload,
  },
  {
    method: 'get',
    path: '/v1/uploads/:id',
    operation: {
      name: 'getUpload',
      tag,
      summary: 'Read a submitted file',
      access: 'submissions:read',
      replyTypes: ['application/octet-stream'],
    },
    handle: sendUpload,
  },
];

async function takeUpload({ clients, request, response, baseUrl }: Exchange): Promise<void> {
  const options = callOptions(request, response);
  const target = { case: 'formId' as const, value: idOf(request) };
  const refusedCall = () => clients.uploads.createUpload({ target, fieldId: '' }, options);
  const query = uploadQuery.safeParse(request.query);
  if (query.error) throw await refuse('bad_request', violationsOf(query.error, request.query), refusedCall);

  const { fieldId = query.data.field, file } = isFormPost(request)
    ? await readFormFile(request)
    : { file: { filename: query.data.filename ?? '', content: await readBytes(request, MAX_FILE_BYTES) } };
  if (fieldId === undefined) throw await refuse('invalid', [required('field')], refusedCall);
  if (file === undefined) throw await refuse('invalid', [required('file')], refusedCall);

  const { filename, content } = file;
  const { upload } = await clients.uploads.createUpload({ target, fieldId, filename, content }, options);
  sendJson(response, 201, { upload: uploadOf(upload, baseUrl) });
}

/** The inputs `field` and `file` of a form's post, which come in any order. */
async function readFormFile(request: Exchange['request']): Promise<FormFile> {
  let file: ReceivedFile | undefined;
  const inputs = await readForm(request, async (received) => {
    if (received.name === 'file') file = received;
    return undefined;
  });
  const fieldId = inputs.get('field')?.at(-1);
  return { file, ...(fieldId === undefined ? {} : { fieldId }) };
}

async function sendUpload({ clients, request, response }: Exchange): Promise<void> {
  const options = callOptions(request, response);
  const { upload, content } = await clients.uploads.getUpload({ uploadId: idOf(request) }, options);
  const { filename, contentType } = present(upload);
  response.attachment(filename);
  response.setHeader('content-type', contentType);
  response.setHeader('content-length', content.length);
  response.end(content);
}

type FormFile = { fieldId?: string; file: Pick<ReceivedFile, 'filename' | 'content'> | undefined };
