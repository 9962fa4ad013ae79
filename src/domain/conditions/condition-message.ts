import { create } from '@bufbuild/protobuf';
import * as pb from '../../../gen/forms/v1/definition_pb.js';
import { jsonFromValue, keyOf, present, valueFromJson } from '../definition/message-values.ts';
import { MAX_DEPTH } from '../json/well-formed.ts';
import type { Condition, ConditionOp } from './condition.ts';

/** Returns the JSON that a typed condition stands for. What nests deeper than JSON may is cut off. */
export function conditionFromMessage({ test }: pb.Condition, depth = 1): unknown {
  if (depth > MAX_DEPTH) return {};
  const inner = (condition: pb.Condition) => conditionFromMessage(condition, depth + 1);
  switch (test.case) {
    case 'comparison': {
      const { field, op, value } = test.value;
      return present({ field, op: keyOf(operators, op), value: jsonFromValue(value) });
    }
    case 'all':
      return { all: test.value.conditions.map(inner) };
    case 'any':
      return { any: test.value.conditions.map(inner) };
    case 'negation':
      return { not: inner(test.value) };
    case undefined:
      return {};
    default:
      return test satisfies never;
  }
}

/** The typed message of a checked condition. */
export function conditionToMessage(condition: Condition): pb.Condition {
  return create(pb.ConditionSchema, { test: testOf(condition) });
}

function testOf(condition: Condition): pb.Condition['test'] {
  if ('all' in condition) return { case: 'all', value: listOf(condition.all) };
  if ('any' in condition) return { case: 'any', value: listOf(condition.any) };
  if ('not' in condition) return { case: 'negation', value: conditionToMessage(condition.not) };
  const { field, op, value } = condition;
  const comparison = create(pb.ComparisonSchema, { field, op: operators[op], value: valueFromJson(value) });
  return { case: 'comparison', value: comparison };
}

function listOf(conditions: Condition[]): pb.ConditionList {
  return create(pb.ConditionListSchema, { conditions: conditions.map(conditionToMessage) });
}

const operators: Record<ConditionOp, pb.Operator> = {
  eq: pb.Operator.EQ,
  ne: pb.Operator.NE,
  in: pb.Operator.IN,
  nin: pb.Operator.NIN,
  lt: pb.Operator.LT,
  lte: pb.Operator.LTE,
  gt: pb.Operator.GT,
  gte: pb.Operator.GTE,
  contains: pb.Operator.CONTAINS,
  empty: pb.Operator.EMPTY,
  notEmpty: pb.Operator.NOT_EMPTY,
};
