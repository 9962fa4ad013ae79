import { isEmpty } from '../conditions/condition.ts';
import { custom, required, unrecognized, type Violation, wrongType } from '../errors/violations.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import { isBlank } from '../text/typed-signs.ts';
import type { AnswerCheck, AttributesOf, FieldTypeRules } from './field-type.ts';
import { acceptAttribute, filenameOf, namedUpload, uploadProblems, uploadSchema } from './file.ts';
import { plainTextProblems, readText } from './text.ts';

/** The ways to sign: with a pen or a finger, which makes a picture, or by typing a name. */
const signatureWays = ['drawn', 'typed'] as const;

/** The most characters of a typed signature. */
export const MAX_SIGNATURE_LENGTH = 200;

/** The only type of picture taken, and its largest size: many times what a signature needs on the finest screen. */
export const SIGNATURE_TYPE = 'image/png';
export const MAX_SIGNATURE_BYTES = 1024 * 1024;

/** `{upload_id}` of a PNG that was drawn, or `{text}`. */
export const signature: FieldTypeRules<SignatureField> = {
  attributes: acceptAttribute,
  defaults: ({ accept }, { keyless }) => ({ accept: accept ?? (keyless ? ['typed'] : [...signatureWays]) }),
  problems: ({ accept, defaultValue }, _sent, path) => [
    ...wayProblems(accept ?? [], `${path}.accept`),
    ...(isEmpty(defaultValue) ? [] : [custom(`${path}.defaultValue`, 'A signature has no default')]),
  ],
  check: checkSignature,
  answerType: () => 'Signature',
  jsonSchema: (field) => {
    const { type: _, ...drawn } = uploadSchema;
    const schemas = { drawn, typed: typedSchema };
    const [one = {}, other] = signatureWays.filter((way) => takesWay(field, way)).map((way) => schemas[way]);
    return { type: 'object', ...(other === undefined ? one : { anyOf: [one, other] }) };
  },
  sample: (field) => (takesWay(field, 'typed') ? { text: 'Ada Lovelace' } : undefined),
  inWords: (answer) => typedText(answer) ?? filenameOf(answer),
  readInput: (values, field, part) => {
    // A person who types after a drawing was kept, without a script that would remove it, means the text.
    const text = takesWay(field, 'typed') ? readText(part(TEXT)).trim() : '';
    const id = values.findLast((value) => value !== '');
    if (!isBlank(text)) return { text };
    return id === undefined ? null : { upload_id: id };
  },
  parts: (field) => (takesWay(field, 'typed') ? [TEXT] : []),
  toInputs: (answer) => {
    const text = typedText(answer);
    if (text !== undefined) return { [TEXT]: [text] };
    return isObject(answer) && typeof answer.upload_id === 'string' ? { '': [answer.upload_id] } : {};
  },
  control: 'signature',
  kind: 'parts',
  uploads: (field) =>
    takesWay(field, 'drawn') ? { accept: [SIGNATURE_TYPE], maxBytes: MAX_SIGNATURE_BYTES } : undefined,
  // An agent can't draw: it types where the field allows that, else it uploads a picture.
  agentSchema: (field) =>
    takesWay(field, 'typed')
      ? { type: 'object', properties: { [TEXT]: { type: 'string' } }, required: [TEXT] }
      : namedUpload,
};

/** Whether a field can be signed in a way. */
export function takesWay({ accept }: Pick<SignatureField, 'accept'>, way: SignatureWay): boolean {
  return (accept ?? signatureWays).includes(way);
}

/** A typed signature; undefined for a drawn one. */
function typedText(answer: unknown): string | undefined {
  return isObject(answer) && typeof answer.text === 'string' ? answer.text : undefined;
}

function wayProblems(accept: readonly string[], path: string): Violation[] {
  return accept.flatMap((way, index): Violation[] => {
    const at = `${path}.${index}`;
    if (!signatureWays.some((each) => each === way)) {
      return [{ path: at, code: 'invalid_enum_value', message: 'Expected drawn or typed' }];
    }
    return accept.indexOf(way) === index ? [] : [custom(at, 'Each way may be named once')];
  });
}

function checkSignature(field: SignatureField): AnswerCheck {
  return (answer, path) => {
    if (!isObject(answer)) return [wrongType(path, 'object', answer)];
    const isDrawn = Object.hasOwn(answer, 'upload_id');
    if (!takesWay(field, isDrawn ? 'drawn' : 'typed')) {
      const message = `Must be ${isDrawn ? 'typed: {"text": …}' : 'drawn: {"upload_id": …}'}`;
      return [custom(path, message)];
    }
    if (isDrawn) return uploadProblems(answer, path);
    const { text, ...others } = answer;
    return [...typedProblems(text, `${path}.${TEXT}`), ...unrecognized(path, Object.keys(others), [TEXT])];
  };
}

function typedProblems(text: unknown, path: string): Violation[] {
  if (text === undefined) return [required(path)];
  if (typeof text !== 'string') return [wrongType(path, 'string', text)];
  if (isBlank(text)) return [{ path, code: 'too_small', message: 'Must not be blank' }];
  return plainTextProblems(text, path, MAX_SIGNATURE_LENGTH);
}

const TEXT = 'text';

const typedSchema: JsonObject = {
  properties: {
    [TEXT]: { type: 'string', minLength: 1, maxLength: MAX_SIGNATURE_LENGTH, pattern: '\\S' },
  },
  required: [TEXT],
  additionalProperties: false,
};

type SignatureWay = (typeof signatureWays)[number];

type SignatureField = AttributesOf<typeof acceptAttribute> & {
  defaultValue?: string | number | boolean | string[] | null;
};
