import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type {
  GetLinkedUploadRequest,
  GetUploadRequest,
  UploadSchema,
} from '../../../gen/headlessforms/v1/uploads_pb.js';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { readFileLink } from '../../domain/links.ts';
import { callerOf } from '../../rpc/context.ts';
import { findAnyUpload, findUpload, type Upload } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import { requireFound } from '../request-values.ts';

/** Streams a file of the caller's project. It can be read once a submission has claimed it. */
export async function* getUpload(
  context: ServiceContext,
  { uploadId }: GetUploadRequest,
  call: HandlerContext,
): AsyncIterable<FileChunk> {
  const { projectId } = callerOf(call);
  const upload = await requireFound('upl', uploadId, () => findUpload(context.database, projectId, uploadId));
  // The rows of a deleted form are removed a little later than the form.
  if ((await context.forms.find(upload.formId)) === undefined) throw notFound('upload');
  context.audit.note(call, { resource: uploadId, formId: upload.formId });
  yield* readClaimed(context, upload);
}

/** Streams the file that a signed link names. */
export async function* getLinkedUpload(
  context: ServiceContext,
  { token }: GetLinkedUploadRequest,
  call: HandlerContext,
): AsyncIterable<FileChunk> {
  const { database, forms, secretKey, now } = context;
  const noCall = { nextCall: NextCall.NONE };
  const link = readFileLink(secretKey, token, now());
  if (!link.ok && link.reason === 'invalid') {
    throw failed(Reason.INVALID_TOKEN, 'The link is not right', noCall);
  }
  const form = link.ok ? await forms.find(link.formId) : undefined;
  if (!link.ok || (form !== undefined && form.ownerEpoch !== link.ownerEpoch)) {
    throw failed(Reason.EXPIRED, 'The link has expired', noCall);
  }
  const upload = await findAnyUpload(database, link.uploadId);
  const isThere = upload?.formId === link.formId && upload.submissionId !== null;
  if (!isThere || form === undefined) throw failed(Reason.DELETED, 'The file was deleted');
  const { id, projectId, formId } = upload;
  context.audit.note(call, { projectId, resource: id, formId });
  yield* readClaimed(context, upload);
}

/** Streams a file that the caller may read, once a submission has claimed it. */
export async function* readClaimed(context: ServiceContext, upload: Upload): AsyncIterable<FileChunk> {
  if (upload.submissionId === null) throw notFound('upload');
  const content = await context.uploads.get(upload.id);
  if (content === undefined) throw new Error(`The bytes of ${upload.id} are missing from the upload store`);
  let known: { upload?: ReturnType<typeof uploadToMessage> } = { upload: uploadToMessage(upload) };
  for await (const chunk of content) {
    yield { ...known, content: chunk };
    known = {};
  }
}

/** What is known of a file, as the RPCs return it. */
export function uploadToMessage(upload: Upload): MessageInitShape<typeof UploadSchema> {
  const { id, filename, contentType, size, sha256, createdAt } = upload;
  return { id, filename, contentType, size, sha256, createTime: timestampFromDate(createdAt) };
}

/** What is known of the file comes with its first chunk. */
type FileChunk = { upload?: MessageInitShape<typeof UploadSchema>; content: Uint8Array };
