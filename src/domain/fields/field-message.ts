import { create } from '@bufbuild/protobuf';
import * as pb from '../../../gen/forms/v1/definition_pb.js';
import { conditionFromMessage, conditionToMessage } from '../conditions/condition-message.ts';
import { jsonFromValue, keyOf, listed, present, valueFromJson } from '../definition/message-values.ts';
import { memoize } from '../memoize.ts';
import type { Field, FieldType } from './field.ts';

/** The JSON that a typed field stands for, as the check of a definition reads it. */
export const fieldFromMessage = memoize((field: pb.Field): unknown =>
  present({
    id: field.id,
    type: keyOf(fieldTypes, field.type),
    label: field.label || undefined,
    description: field.description || undefined,
    placeholder: field.placeholder || undefined,
    agentHint: field.agentHint || undefined,
    required: field.required,
    hidden: field.hidden,
    answeredBy: keyOf(answerers, field.answeredBy),
    page: field.page,
    defaultValue: jsonFromValue(field.defaultValue),
    options: listed(field.options.map(({ label, value }) => ({ label, value }))),
    minLength: field.minLength,
    maxLength: field.maxLength,
    pattern: field.pattern || undefined,
    patternMessage: field.patternMessage || undefined,
    min: jsonFromValue(field.min),
    max: jsonFromValue(field.max),
    step: field.step,
    minItems: field.minItems,
    maxItems: field.maxItems,
    accept: listed(field.accept),
    maxBytes: field.maxBytes,
    maxFiles: field.maxFiles,
    visibleWhen: field.visibleWhen && conditionFromMessage(field.visibleWhen),
    icon: keyOf(icons, field.icon),
    minLabel: field.minLabel || undefined,
    maxLabel: field.maxLabel || undefined,
    allowOther: field.allowOther,
    rows: listed(field.rows.map(({ label, value }) => ({ label, value }))),
    multiple: field.multiple,
  }),
);

/** The typed message of a checked field. */
export const fieldToMessage = memoize((field: Field): pb.Field => {
  const { type, answeredBy, defaultValue, min, max, visibleWhen, icon, ...same } = field;
  return create(pb.FieldSchema, {
    ...same,
    type: fieldTypes[type],
    // Absent in what was published before the attribute was there.
    answeredBy: answerers[answeredBy ?? 'anyone'],
    defaultValue: valueFromJson(defaultValue),
    min: valueFromJson(min),
    max: valueFromJson(max),
    visibleWhen: visibleWhen && conditionToMessage(visibleWhen),
    ...(icon !== undefined && { icon: icons[icon] }),
  });
});

const answerers: Record<Field['answeredBy'], pb.AnsweredBy> = {
  anyone: pb.AnsweredBy.ANYONE,
  human: pb.AnsweredBy.HUMAN,
  agent: pb.AnsweredBy.AGENT,
};

const icons: Record<NonNullable<Field['icon']>, pb.RatingIcon> = {
  star: pb.RatingIcon.STAR,
  number: pb.RatingIcon.NUMBER,
};

const fieldTypes: Record<FieldType, pb.FieldType> = {
  text: pb.FieldType.TEXT,
  textarea: pb.FieldType.TEXTAREA,
  email: pb.FieldType.EMAIL,
  url: pb.FieldType.URL,
  phone: pb.FieldType.PHONE,
  number: pb.FieldType.NUMBER,
  boolean: pb.FieldType.BOOLEAN,
  checkbox: pb.FieldType.CHECKBOX,
  date: pb.FieldType.DATE,
  time: pb.FieldType.TIME,
  datetime: pb.FieldType.DATETIME,
  select: pb.FieldType.SELECT,
  radio: pb.FieldType.RADIO,
  multi_select: pb.FieldType.MULTI_SELECT,
  hidden: pb.FieldType.HIDDEN,
  file: pb.FieldType.FILE,
  rating: pb.FieldType.RATING,
  scale: pb.FieldType.SCALE,
  statement: pb.FieldType.STATEMENT,
  ranking: pb.FieldType.RANKING,
  matrix: pb.FieldType.MATRIX,
  address: pb.FieldType.ADDRESS,
  signature: pb.FieldType.SIGNATURE,
};
