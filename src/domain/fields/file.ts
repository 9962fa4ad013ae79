import { z } from 'zod';
import { isEmpty } from '../conditions/condition.ts';
import { custom, required, unrecognized, type Violation, wrongType } from '../errors/violations.ts';
import { isId } from '../ids.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import { type AnswerCheck, type AttributesOf, atLeast, type FieldTypeRules } from './field-type.ts';

/** The largest file that the service takes: 10 MiB. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

const mediaType = /^(?:[a-zA-Z0-9!#$&^_.+-]+\/(?:\*|[a-zA-Z0-9!#$&^_.+-]+)|\.[a-zA-Z0-9_-]+)$/;
const acceptError = 'Expected a media type such as image/* or application/pdf, or an ending such as .pdf';

/** What a file, or a signature, may be. */
export const acceptAttribute = {
  accept: optional(
    z
      .array(
        z
          .string()
          .max(100)
          .regex(new RegExp(`${mediaType.source}|^drawn$|^typed$`), acceptError),
      )
      .min(1)
      .max(50),
    'file: media types (`image/*`, `application/pdf`) or endings (`.pdf`), by every name of the type. signature: `drawn` (not on forms made ' +
      'without a key), `typed`; default: both, as far as the form may have them.',
  ),
};

export const fileAttributes = {
  ...acceptAttribute,
  maxBytes: optional(z.int().min(1).max(MAX_FILE_BYTES), 'file: the largest size; default 10 MiB.'),
  maxFiles: optional(z.int().min(1).max(20), 'file: how many; default 1. Above 1 the answer is a list.'),
};

/**
 * `{upload_id}`, or a list of them where the field takes several files.
 *
 * Whether the uploads exist and fit the field is checked where they are resolved.
 */
export const file: FieldTypeRules<FileField> = {
  attributes: fileAttributes,
  defaults: ({ maxBytes = MAX_FILE_BYTES, maxFiles = 1 }) => ({ maxBytes, maxFiles }),
  problems: ({ accept, defaultValue }, _sent, path) => [
    ...(accept ?? []).flatMap((type, index): Violation[] =>
      mediaType.test(type)
        ? []
        : [{ path: `${path}.accept.${index}`, code: 'invalid_string', message: acceptError }],
    ),
    ...(isEmpty(defaultValue) ? [] : [custom(`${path}.defaultValue`, 'A file field has no default')]),
  ],
  check: checkFiles,
  answerType: ({ maxFiles = 1 }) => (maxFiles === 1 ? 'File' : 'repeated File'),
  jsonSchema: ({ maxFiles = 1 }, needed) =>
    maxFiles === 1
      ? uploadSchema
      : { type: 'array', items: uploadSchema, minItems: atLeast(0, needed), maxItems: maxFiles },
  sample: () => undefined,
  inWords: (answer) => [answer].flat().map(filenameOf).join(', '),
  readInput: readUploads,
  control: 'files',
  kind: 'list',
  uploads: ({ accept, maxBytes = MAX_FILE_BYTES }) => ({ accept, maxBytes }),
  agentSchema: ({ maxFiles = 1 }) =>
    maxFiles === 1 ? namedUpload : { type: 'array', items: namedUpload, maxItems: maxFiles },
};

/** The files that an answer names, as they are stored with it. */
export function uploadsIn(answer: unknown): { id: string; filename: string; size: number }[] {
  return [answer].flat().flatMap((each) => {
    if (!isObject(each)) return [];
    const { upload_id: id, filename, size } = each;
    const isUpload = typeof id === 'string' && isId('upl', id);
    return isUpload && typeof filename === 'string' && typeof size === 'number'
      ? [{ id, filename, size }]
      : [];
  });
}

function checkFiles({ maxFiles = 1 }: FileField): AnswerCheck {
  return (answer, path) => {
    if (maxFiles === 1) return uploadProblems(answer, path);
    if (!Array.isArray(answer)) return [wrongType(path, 'array', answer)];
    if (answer.length > maxFiles) {
      return [{ path, code: 'too_big', message: `Must be at most ${maxFiles} files` }];
    }
    return answer.flatMap((upload, index) => uploadProblems(upload, `${path}.${index}`));
  };
}

/** What is wrong with the answer of one uploaded file, `{upload_id}`. */
export function uploadProblems(upload: Json, path: string): Violation[] {
  if (!isObject(upload)) return [wrongType(path, 'object', upload)];
  const { upload_id: id, ...others } = upload;
  return [
    ...uploadIdProblems(id, `${path}.upload_id`),
    ...unrecognized(path, Object.keys(others), ['upload_id']),
  ];
}

function uploadIdProblems(id: unknown, path: string): Violation[] {
  if (id === undefined) return [required(path)];
  if (typeof id !== 'string') return [wrongType(path, 'string', id)];
  return isId('upl', id) ? [] : [{ path, code: 'invalid_string', message: 'Must be the id of an upload' }];
}

/** The name of an uploaded file that is described; empty if it is not. */
export function filenameOf(upload: unknown): string {
  return isObject(upload) && typeof upload.filename === 'string' ? upload.filename : '';
}

function readUploads(values: readonly string[], { maxFiles }: FileField): Json {
  const uploads = values.filter((value) => value !== '').map((id) => ({ upload_id: id }));
  return maxFiles === 1 ? (uploads.at(-1) ?? null) : uploads;
}

/** The JSON Schema of one uploaded file. */
export const uploadSchema: JsonObject = {
  type: 'object',
  properties: { upload_id: { type: 'string', pattern: '^upl_[0-9a-hjkmnp-tv-z]{26}$' } },
  required: ['upload_id'],
  additionalProperties: false,
};

/** Its JSON Schema in few words. */
export const namedUpload: JsonObject = { type: 'object', required: ['upload_id'] };

type FileField = AttributesOf<typeof fileAttributes> & {
  defaultValue?: string | number | boolean | string[] | null;
};
