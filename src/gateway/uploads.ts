import { ConnectError } from '@connectrpc/connect';
import { z } from 'zod';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import {
  type UploadFileResponse,
  UploadSchema,
  UploadsService,
} from '../../gen/headlessforms/v1/uploads_pb.js';
import { reasonOf } from '../domain/errors/failure.ts';
import { pathOf, required } from '../domain/errors/violations.ts';
import { MAX_FILE_BYTES } from '../domain/fields/file.ts';
import { optional } from '../domain/json/optional.ts';
import { MAX_FILENAME_LENGTH } from '../domain/limits/limits.ts';
import { readDecodedParts } from '../http/body.ts';
import { contentError, withPaths } from '../http/errors.ts';
import { fileParts, isFormPost, readFormInputs } from '../http/multipart.ts';
import { sendFile, sendJson } from '../http/reply.ts';
import { idempotencyKey, idempotencyKeyOf } from '../http/schemas.ts';
import { from, shape } from '../http/shape.ts';
import { customRoute, type Route, readQuery, tagged } from './route.ts';
import type { RouteContext } from './route-context.ts';

const { method: rpcs } = UploadsService;

/** The field and the name of a file that is sent as the raw body; a form's post has them as inputs. */
const uploadQuery = z.object({
  field: optional(
    z.string().min(1),
    'The id of the file field; in a form’s post its input `field`, before the file.',
  ),
  filename: optional(z.string().max(MAX_FILENAME_LENGTH), 'The name of a raw body’s file.'),
});

const upload = shape(UploadSchema, '', {
  upload_id: from('id', z.string().describe('What an answer names as `upload_id`.')),
  filename: z.string(),
  content_type: z.string().describe('Judged by the content.'),
  size: z.int(),
  sha256: z.string(),
});

const uploadReply = z.object({
  upload: upload.schema
    .extend({ url: z.string().describe('Where a key with `submissions:read` reads it.') })
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
    handle: (context) =>
      sendFile(context.response, context.receive(rpcs.getUpload, { uploadId: context.id })),
  }),
]);

async function takeUpload(context: RouteContext): Promise<void> {
  const { request, response, options } = context;
  const sent = { ...readQuery(request, uploadQuery), idempotencyKey: idempotencyKeyOf(request) };
  const take = isFormPost(request) ? takeFormFile : takeRawFile;
  const stored = upload.of((await take(context, sent)).upload);
  const url = `${options.baseUrl}/v1/uploads/${stored.upload_id}`;
  sendJson(response, 201, { upload: { ...stored, url } } satisfies z.input<typeof uploadReply>);
}

async function takeRawFile(context: RouteContext, sent: SentUpload) {
  return store(context, { ...sent, content: readDecodedParts(context.request, MAX_FILE_BYTES) });
}

/** The file in the input `file`; the input `field` comes before it, unless the query has it. */
async function takeFormFile(context: RouteContext, sent: SentUpload) {
  let stored: UploadFileResponse | undefined;
  const inputs = await readFormInputs(context.request, async ({ name, ...file }, before) => {
    if (name !== 'file' || stored !== undefined) return undefined;
    stored = await store(context, { ...sent, ...file, field: before().get('field')?.at(-1) ?? sent.field });
    return undefined;
  });
  if (stored === undefined) {
    const isFieldKnown = sent.field !== undefined || inputs.has('field');
    throw contentError([required(isFieldKnown ? 'file' : 'field')], undefined);
  }
  return stored;
}

function store(context: RouteContext, { field: fieldId, content, filename = '', idempotencyKey }: SentFile) {
  if (fieldId === undefined) throw contentError([required('field')], undefined);
  const target = { case: 'formId' as const, value: context.id };
  const parts = fileParts({ target, fieldId, filename, idempotencyKey }, content);
  return context.stream(rpcs.uploadFile, parts).catch((error: unknown) => {
    // As what is wrong with an answer.
    const path = pathOf('answers', fieldId);
    if (reasonOf(error) !== Reason.TOO_LARGE) throw withPaths(error, (at) => (at === 'file' ? path : at));
    const { rawMessage: message, metadata } = ConnectError.from(error);
    const tooBig = contentError([{ path, code: 'too_big', message }], undefined, Reason.TOO_LARGE);
    throw Object.assign(tooBig, { metadata });
  });
}

/** What is sent beside a file. */
type SentUpload = z.output<typeof uploadQuery> & { idempotencyKey: string };

type SentFile = Omit<SentUpload, 'field'> & { field?: string | undefined; content: AsyncGenerator<Buffer> };
