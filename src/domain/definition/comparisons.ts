import { type ConditionOp, evaluate, instantOf, isEmpty } from '../conditions/condition.ts';
import type { ComparisonProblems } from '../conditions/condition-rules.ts';
import { custom, type Violation } from '../errors/violations.ts';
import type { Field } from '../fields/field.ts';
import type { FieldTypeRules } from '../fields/field-type.ts';
import { fieldRules } from '../fields/index.ts';
import { valuesOf } from '../fields/select.ts';
import { isScalar, type Json } from '../json/json.ts';
import { startMatching } from '../patterns/pattern.ts';

/**
 * Returns what is wrong with comparing a field's answers with a value: what no answer can be to it, or each is, shows
 * or hides what depends on it for everybody. Values that mean that there is no answer fit every field.
 */
export function comparisonProblems(field: Field): ComparisonProblems {
  const { kind, check, fold, jsonSchema, choosesOptions, ordersOptions } = fieldRules[field.type];
  const options =
    choosesOptions === true || ordersOptions === true ? new Set(valuesOf(field).map(comparedAs)) : undefined;
  const isOneValue = kind !== 'parts' && kind !== 'list';
  const isOneText = isOneValue && kind !== 'number' && kind !== 'boolean';
  const given = kind === 'list' && options !== undefined ? 'a list of options' : gives[kind];
  // A pattern would have to be matched for each condition.
  const { pattern: _, ...judged } = field;
  const checked = options === undefined ? check : fieldRules.select.check;
  const problemsOf = checked({ ...judged, required: false });
  const { minimum = field.min, maximum = field.max } = jsonSchema(field, false);

  const misfit = (op: ConditionOp, value: unknown, path: string, range = given) => [
    custom(path, `The field gives ${range}: "${op}" ${shown(value)} would always hold, or never`),
  ];
  const answerProblems = (value: Json, path: string): readonly Violation[] => {
    // Nearly all are options as they stand. To look for times in thousands of texts takes longer than all else here.
    if (typeof value === 'string' && (options?.has(value) || options?.has(comparedAs(value)))) return [];
    if (options !== undefined && field.allowOther !== true) {
      return [{ path, code: 'invalid_enum_value', message: `The field has no option ${shown(value)}` }];
    }
    // A longer or shorter text can mean the same time.
    if (kind === 'text' && field.maxLength !== undefined && typeof comparedAs(String(value)) === 'number')
      return [];
    const stored = typeof value === 'string' && fold !== undefined ? fold(value) : value;
    const [problem] = problemsOf(stored, path, startMatching());
    if (problem !== undefined)
      return [{ ...problem, message: `The field never gives this: ${problem.message}` }];
    return stored === value ? [] : [custom(path, `The field gives this as ${shown(stored)}`)];
  };
  return (op, value, path) => {
    if (field.type === 'statement') return [custom(path, 'A statement has no answer')];
    if (op === 'empty' || op === 'notEmpty' || !isScalar(value)) return [];
    switch (op) {
      case 'eq':
      case 'ne':
      case 'in':
      case 'nin': {
        if (isEmpty(value) || value === false) return [];
        const isItem = options !== undefined && (op === 'in' || op === 'nin');
        return isOneValue || isItem ? answerProblems(value, path) : misfit(op, value, path);
      }
      case 'contains':
        if (kind === 'list' && options !== undefined && !isEmpty(value)) return answerProblems(value, path);
        return isOneText && typeof value === 'string' && value !== '' ? [] : misfit(op, value, path);
      default: {
        const isNumber = kind === 'number' || (field.type === 'hidden' && typeof value === 'number');
        const isText = isOneText && typeof value === 'string' && (value !== '' || op.startsWith('g'));
        if (isNumber ? typeof value !== 'number' : !isText) return misfit(op, value, path);
        const notOne = isNumber ? [] : problemsOf(value, path, startMatching());
        const unlike = notOne.filter(({ code }) => code === 'invalid_date');
        if (unlike.length > 0) return unlike;
        const [word, bound] = op.startsWith('g') ? ['most', maximum] : ['least', minimum];
        if (bound === undefined || evaluate({ field: 'it', op, value }, { it: bound })) return [];
        return misfit(op, value, path, `at ${word} ${String(bound)}`);
      }
    }
  };
}

/** Two texts are equal to conditions if these are the same. */
function comparedAs(text: string): string | number {
  const instant = instantOf(text);
  return Number.isNaN(instant) ? text : instant;
}

/** As many characters of a value as tell which one it is. */
function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 60);
}

const gives: Record<FieldTypeRules<Field>['kind'], string> = {
  text: 'a text',
  email: 'a text',
  phone: 'a text',
  url: 'a text',
  number: 'a number',
  boolean: 'true or false',
  list: 'files',
  parts: 'several parts',
};
