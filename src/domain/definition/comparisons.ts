import { evaluate, instantOfText, isEmpty } from '../conditions/condition.ts';
import type { ComparisonProblems } from '../conditions/condition-rules.ts';
import { custom } from '../errors/violations.ts';
import type { Field } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { valuesOf } from '../fields/select.ts';
import { isScalar } from '../json/json.ts';
import { startMatching } from '../patterns/pattern.ts';

/**
 * Returns what is wrong with comparing a field's answers with a value: what no answer can be to it, or each is, shows
 * or hides what depends on it for everybody. Values that mean that there is no answer fit every field; nothing is wrong
 * where the field is not known.
 */
export function comparisonProblems(field: Field | undefined): ComparisonProblems {
  if (field === undefined) return () => [];
  const { kind, check, fold = String, jsonSchema, choosesOptions, ordersOptions } = fieldRules[field.type];
  const isChoice = (choosesOptions ?? ordersOptions) === true;
  const options = new Set(isChoice ? valuesOf(field).map(comparedAs) : []);
  const given = isChoice && kind === 'list' ? 'a list of options' : (gives[kind] ?? 'a text');
  // A pattern would have to be matched for each condition.
  const { pattern: _, ...judged } = { ...field, required: false };
  const problemsOf = (isChoice ? fieldRules.select.check : check)(judged);
  const { minimum = field.min, maximum = field.max } = jsonSchema(field, false);
  return (op, value, path) => {
    if (field.type === 'statement') return [custom(path, 'A statement has no answer')];
    if (!isScalar(value)) return [];
    const misfit = (range = given) => [
      custom(path, `The field gives ${range}: "${op}" ${shown(value)} would always hold, or never`),
    ];
    const isText = typeof value === 'string';
    if (/^[lg]te?$/.test(op)) {
      const isNumber = kind === 'number' || (field.type === 'hidden' && !isText);
      const isInOrder = given === 'a text' && isText && (value !== '' || op.startsWith('g'));
      if (isNumber ? typeof value !== 'number' : !isInOrder) return misfit();
      const problems = isNumber ? [] : problemsOf(value, path, startMatching());
      const unlike = problems.filter(({ code }) => code === 'invalid_date');
      const [word, bound] = op.startsWith('g') ? ['most', maximum] : ['least', minimum];
      if (unlike.length > 0 || bound === undefined) return unlike;
      const isReached = evaluate({ field: 'it', op, value }, { it: bound });
      return isReached ? [] : misfit(`at ${word} ${shown(bound)}`);
    }
    if (op === 'contains' && given === 'a text') return isText && value !== '' ? [] : misfit();
    if (op !== 'contains' && (isEmpty(value) || value === false)) return [];
    const isOfList = kind === 'list' || kind === 'parts' || op === 'contains';
    if (isOfList && !(isChoice && ['in', 'nin', 'contains'].includes(op))) return misfit();

    // Nearly all values are options as they are written. Looking for times in thousands of texts takes longest here.
    if (isText && (options.has(value) || options.has(comparedAs(value)))) return [];
    if (isChoice && field.allowOther !== true) {
      return [{ path, code: 'invalid_enum_value', message: `The field has no option ${shown(value)}` }];
    }
    // A longer or shorter text can mean the same time.
    if (field.maxLength !== undefined && isText && comparedAs(value) !== value && kind === 'text') return [];
    const stored = isText ? fold(value) : value;
    const problems = problemsOf(stored, path, startMatching());
    if (problems.length === 0 && stored === value) return [];
    const [{ code, message } = custom('', `It is stored as ${shown(stored)}`)] = problems;
    return [{ path, code, message: `The field never gives this. ${message}` }];
  };
}

/** Two texts are equal to conditions if these are the same. */
function comparedAs(text: string): string | number {
  const instant = instantOfText(text);
  return Number.isNaN(instant) ? text : instant;
}

/** As many characters of a value as tell which one it is. */
function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 60);
}

/** What is no text. */
const gives: { [kind: string]: string } = {
  number: 'a number',
  boolean: 'true or false',
  list: 'files',
  parts: 'several parts',
};
