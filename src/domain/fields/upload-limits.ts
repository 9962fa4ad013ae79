import type { Field } from './field.ts';
import { MAX_FILE_BYTES } from './file.ts';
import { MAX_SIGNATURE_BYTES, SIGNATURE_TYPE, takesWay } from './signature.ts';

/** What a field takes as uploaded files; undefined if its answers name none. `accept` absent: any type. */
export function uploadLimits(field: Pick<Field, UploadAttributes>): UploadLimits | undefined {
  if (field.type === 'signature') {
    return takesWay(field, 'drawn') ? { accept: [SIGNATURE_TYPE], maxBytes: MAX_SIGNATURE_BYTES } : undefined;
  }
  if (field.type !== 'file') return undefined;
  return { accept: field.accept, maxBytes: field.maxBytes ?? MAX_FILE_BYTES };
}

type UploadAttributes = 'type' | 'accept' | 'maxBytes';

export type UploadLimits = { accept?: readonly string[] | undefined; maxBytes: number };
