import type { MessageInitShape } from '@bufbuild/protobuf';
import type { UploadFileRequestSchema } from '../../gen/forms/v1/uploads_pb.js';

/** What `UploadFile` gets: what the file is, and then its content as it arrives. */
export async function* fileParts(first: FilePart, content: AsyncIterable<Buffer>): AsyncGenerator<FilePart> {
  yield first;
  for await (const part of content) yield { content: part };
}

export type FilePart = MessageInitShape<typeof UploadFileRequestSchema>;
