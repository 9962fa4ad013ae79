import { isEmpty } from '../conditions/condition.ts';
import { required, unrecognized, type Violation, wrongType } from '../errors/violations.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { textProblem } from '../json/well-formed.ts';
import type { AnswerCheck, AttributesOf, FieldTypeRules } from './field-type.ts';
import { acceptAttribute, checkUpload, filenameOf, uploadSchema } from './file.ts';
import { lengthOf, readText } from './text.ts';

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
    ...(isEmpty(defaultValue)
      ? []
      : [{ path: `${path}.defaultValue`, code: 'custom' as const, message: 'A signature has no default' }]),
  ],
  check: checkSignature,
  jsonSchema: (field) => {
    const [one = {}, other] = signatureWays.filter((way) => takesWay(field, way)).map((way) => schemas[way]);
    return { type: 'object', ...(other === undefined ? one : { anyOf: [one, other] }) };
  },
  sample: (field) => (takesWay(field, 'typed') ? { text: 'Ada Lovelace' } : undefined),
  inWords: (answer) => typedText(answer) ?? filenameOf(answer),
  readInput: (values, field, part) => {
    // Whoever types after a drawing was kept, without a script that would remove it, means the text.
    const text = takesWay(field, 'typed') ? readText(part(TEXT)).trim() : '';
    const id = values.findLast((value) => value !== '');
    if (text !== '') return { text };
    return id === undefined ? null : { upload_id: id };
  },
  parts: (field) => (takesWay(field, 'typed') ? [TEXT] : []),
  toInputs: (answer) => {
    const text = typedText(answer);
    if (text !== undefined) return { [TEXT]: [text] };
    return isObject(answer) && typeof answer.upload_id === 'string' ? { '': [answer.upload_id] } : {};
  },
  control: 'signature',
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
    return accept.indexOf(way) === index
      ? []
      : [{ path: at, code: 'custom', message: 'Each way may be named once' }];
  });
}

function checkSignature(field: SignatureField): AnswerCheck {
  return (answer, path, violations) => {
    if (!isObject(answer)) {
      violations.push(wrongType(path, 'object', answer));
      return;
    }
    const isDrawn = Object.hasOwn(answer, 'upload_id');
    if (!takesWay(field, isDrawn ? 'drawn' : 'typed')) {
      const message = `Must be ${isDrawn ? 'typed: {"text": …}' : 'drawn: {"upload_id": …}'}`;
      violations.push({ path, code: 'custom', message });
    } else if (isDrawn) checkUpload(answer, path, violations);
    else checkTyped(answer, path, violations);
  };
}

function checkTyped(answer: { [name: string]: Json }, path: string, violations: Violation[]): void {
  const { text, ...others } = answer;
  const place = `${path}.${TEXT}`;
  const problem = typeof text === 'string' ? textProblem(text) : undefined;
  if (text === undefined) violations.push(required(place));
  else if (typeof text !== 'string') violations.push(wrongType(place, 'string', text));
  else if (problem !== undefined) {
    violations.push({ path: place, code: 'invalid_string', message: problem });
  } else if (text.trim() === '') {
    violations.push({ path: place, code: 'too_small', message: 'Must not be blank' });
  } else if (lengthOf(text) > MAX_SIGNATURE_LENGTH) {
    const message = `Must have at most ${MAX_SIGNATURE_LENGTH} characters`;
    violations.push({ path: place, code: 'too_big', message });
  }
  violations.push(...unrecognized(path, Object.keys(others), [TEXT]));
}

const TEXT = 'text';

const { type: _, ...drawnSchema } = uploadSchema;

const schemas: Record<SignatureWay, JsonObject> = {
  drawn: drawnSchema,
  typed: {
    properties: {
      [TEXT]: { type: 'string', minLength: 1, maxLength: MAX_SIGNATURE_LENGTH, pattern: '\\S' },
    },
    required: [TEXT],
    additionalProperties: false,
  },
};

type SignatureWay = (typeof signatureWays)[number];

type SignatureField = AttributesOf<typeof acceptAttribute> & {
  defaultValue?: string | number | boolean | string[] | null;
};
