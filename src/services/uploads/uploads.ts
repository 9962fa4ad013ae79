import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type {
  CreateUploadRequest,
  GetUploadRequest,
  UploadSchema,
  UploadsService,
} from '../../../gen/forms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { acceptsFile, MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { isId, newId } from '../../domain/ids.ts';
import type { Violation } from '../../domain/violations.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { failed, invalid, notFound } from '../../rpc/errors.ts';
import { findUpload, insertUpload, type Upload } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm, refuseIfClosed } from '../forms/form-access.ts';
import type { LiveVersion } from '../forms/form-reader.ts';
import { anySession, openSession } from '../sessions/session-access.ts';
import { checkOrigin } from '../submissions/origins.ts';
import { mediaTypeOf, safeFilename } from './received-file.ts';

/** Takes files for the file fields of published forms, and gives them back. */
export function uploadsService(context: ServiceContext): ServiceImpl<typeof UploadsService> {
  return {
    createUpload: (request, call) => createUpload(context, request, call),
    getUpload: (request, call) => getUpload(context, request, callerOf(call)),
  };
}

/** The bytes are stored before their row, so that a row never names a file that is not there. */
async function createUpload(context: ServiceContext, request: CreateUploadRequest, call: HandlerContext) {
  const { form, version, byHuman } = await targetOf(context, request, call);
  const now = context.now();
  refuseIfClosed(form, now);
  const { fieldId, content } = request;
  if (content.length > MAX_FILE_BYTES) throw failed(Reason.TOO_LARGE, 'A file has at most 10 MiB');
  const field = version.definition.fields.find(({ id, type }) => id === fieldId && type === 'file');
  if (field === undefined || (byHuman && field.hidden))
    throw invalid([refused('field', 'There is no such file field')]);

  const filename = safeFilename(request.filename);
  const contentType = await mediaTypeOf(content, filename);
  const violations = fileProblems(field, form, { filename, contentType, size: content.length });
  if (violations.length > 0) throw invalid(violations);

  const upload: Upload = {
    id: newId('upl', now),
    projectId: form.projectId,
    formId: form.id,
    fieldId,
    filename,
    contentType,
    size: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    createdAt: new Date(now),
    submissionId: null,
  };
  await context.uploads.put(upload.id, content);
  await insertUpload(context.database, upload);
  return { upload: uploadToMessage(upload) };
}

/** A file can be read once a submission has claimed it. */
async function getUpload(context: ServiceContext, { uploadId }: GetUploadRequest, caller: Caller) {
  const upload = isId('upl', uploadId)
    ? await findUpload(context.database, caller.projectId, uploadId)
    : null;
  if (upload === null || upload.submissionId === null) throw notFound('upload');
  // The rows of a deleted form are removed a little later than the form.
  if ((await context.forms.find(upload.formId)) === undefined) throw notFound('upload');
  const content = await context.uploads.get(upload.id);
  if (content === undefined) throw new Error(`The bytes of ${upload.id} are missing from the upload store`);
  return { upload: uploadToMessage(upload), content };
}

/** Sessions are filled on the hosted page, by whoever knows their id; forms from pages that may post to them. */
async function targetOf(
  context: ServiceContext,
  { target }: CreateUploadRequest,
  call: HandlerContext,
): Promise<Target> {
  switch (target.case) {
    case 'formId': {
      const form = await publishedForm(context.forms, target.value);
      checkOrigin(call.requestHeader, form.version.definition.settings.allowedOrigins, context.settings);
      return { form, version: form.version, byHuman: false };
    }
    case 'sessionId': {
      const session = await anySession(context.database, target.value);
      return { ...(await openSession(context, session)), byHuman: true };
    }
    case undefined:
      throw invalid([refused('', 'Expected a form or a session')]);
    default:
      return target satisfies never;
  }
}

function fileProblems(field: Field, form: PublishedForm, file: FileFacts): Violation[] {
  if (form.createdBy === 'public') return [refused('file', 'Forms made without a key take no files')];
  const { maxBytes = MAX_FILE_BYTES, accept } = field;
  if (file.size === 0) return [{ path: 'file', code: 'too_small', message: 'The file is empty' }];
  if (file.size > maxBytes) {
    return [{ path: 'file', code: 'too_big', message: `Must be at most ${maxBytes} bytes` }];
  }
  if (acceptsFile(accept, file.contentType, file.filename)) return [];
  return [refused('file', `Expected ${accept?.join(', ')}; this is ${file.contentType}`)];
}

function uploadToMessage(upload: Upload): MessageInitShape<typeof UploadSchema> {
  const { id, filename, contentType, size, sha256, createdAt } = upload;
  return { id, filename, contentType, size, sha256, createTime: timestampFromDate(createdAt) };
}

function refused(path: string, message: string): Violation {
  return { path, code: 'custom', message };
}

type Target = { form: PublishedForm; version: LiveVersion; byHuman: boolean };
type FileFacts = { filename: string; contentType: string; size: number };
