import { z } from 'zod';
import type { Upload } from '../../../gen/forms/v1/uploads_pb.js';
import { present } from './common.ts';

/** A file of a form's post, or, with a raw body, where it belongs and what it is called. */
export const uploadQuery = z.object({
  field: z
    .string()
    .min(1)
    .exactOptional()
    .describe('The id of the file field; in a form’s post its input `field`.'),
  filename: z.string().max(1000).exactOptional().describe('The name of a file that is sent as the raw body.'),
});

export const uploadReply = z.object({
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

/** A file as replies have it. */
export function uploadOf(
  message: Upload | undefined,
  baseUrl: string,
): z.input<typeof uploadReply>['upload'] {
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
