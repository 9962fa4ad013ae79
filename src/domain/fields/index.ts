import { address } from './address.ts';
import { boolean, checkbox } from './boolean.ts';
import { date, datetime, time } from './date-time.ts';
import type { Field, FieldType, ParsedField } from './field.ts';
import type { FieldTypeRules, UploadLimits } from './field-type.ts';
import { file } from './file.ts';
import { hidden } from './hidden.ts';
import { matrix } from './matrix.ts';
import { number } from './number.ts';
import { rating, scale } from './points.ts';
import { ranking } from './ranking.ts';
import { multiSelect, radio, select } from './select.ts';
import { signature } from './signature.ts';
import { statement } from './statement.ts';
import { email, phone, text, textarea, url } from './text.ts';

/** What each type of field does in its own way. */
export const fieldRules: Readonly<Record<FieldType, FieldTypeRules<ParsedField>>> = {
  text,
  textarea,
  email,
  url,
  phone,
  number,
  boolean,
  checkbox,
  date,
  time,
  datetime,
  select,
  radio,
  multi_select: multiSelect,
  hidden,
  file,
  rating,
  scale,
  statement,
  ranking,
  matrix,
  address,
  signature,
};

/** The most characters that an answer can have; undefined for one that is not a text. */
export function longestAnswer(field: Field): number | undefined {
  const { maxLength } = fieldRules[field.type].jsonSchema(field, false);
  return typeof maxLength === 'number' ? maxLength : undefined;
}

/** What a field takes as uploaded files; undefined if its answers name none. */
export function uploadLimits(field: Field): UploadLimits | undefined {
  return fieldRules[field.type].uploads?.(field);
}
