import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { UploadSchema } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { notFound } from '../../domain/errors/failure.ts';
import type { Upload } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';

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
