import { MAX_ADDRESS_LENGTH } from '../addresses/email-address.ts';
import { custom, type Violation } from '../errors/violations.ts';
import type { FieldType, ParsedField } from '../fields/field.ts';
import { acceptProblems } from '../fields/media-types.ts';
import { isMultiple } from '../fields/number.ts';
import { DEFAULT_MAX_LENGTH, MAX_PHONE_LENGTH } from '../fields/text.ts';
import { readPattern } from '../patterns/pattern.ts';

/** What is wrong with a field whose attributes fit one by one, where no answer fits them together. */
export function contradictionsIn(field: ParsedField, path: string): Violation[] {
  return byType[field.type]?.(field, path) ?? [];
}

const byType: Partial<Record<FieldType, typeof contradictionsIn>> = {
  text: lengthsFrom(1),
  textarea: lengthsFrom(1),
  email: lengthsFrom('a@b.cd'.length, MAX_ADDRESS_LENGTH),
  url: lengthsFrom('http://a'.length),
  phone: lengthsFrom('911'.length, MAX_PHONE_LENGTH),
  number: unreachableStep,
  file: acceptProblems,
};

/** Refuses lengths that no text of a type has, whose own are between these two. */
function lengthsFrom(shortest: number, longest = Number.POSITIVE_INFINITY): typeof contradictionsIn {
  return ({ minLength = 0, maxLength = DEFAULT_MAX_LENGTH, pattern }, path) => {
    const matched = pattern === undefined ? longest : readPattern(pattern).longest;
    const [least, most] = [Math.max(minLength, shortest), Math.min(maxLength, longest, matched)];
    if (least <= most) return [];
    const named = maxLength < shortest ? 'maxLength' : minLength > shortest ? 'minLength' : 'pattern';
    return [custom(`${path}.${named}`, `No answer has at least ${least} and at most ${most} characters`)];
  };
}

function unreachableStep({ min, max, step }: ParsedField, path: string): Violation[] {
  const [least, most] = [Number(min ?? Number.NaN), Number(max ?? Number.NaN)];
  if (step === undefined || !(Math.ceil(least / step) > Math.floor(most / step))) return [];
  if (isMultiple(least, step) || isMultiple(most, step)) return [];
  return [custom(`${path}.step`, `No multiple of ${step} is between ${least} and ${most}`)];
}
