import type { DescEnum, DescEnumValue, DescField, DescMessage } from '@bufbuild/protobuf';
import { FormDefinitionSchema } from '../../../gen/headlessforms/v1/definition_pb.js';
import { oneOfEnum, type Violation } from '../errors/violations.ts';

/**
 * The path of a place of a definition in the messages that carry one, from its path in the definition's JSON:
 * `fields.0.maxLength` is `definition.fields[0].max_length`, and `delivery.url` is `definition.delivery.webhook.url`.
 * The keys of maps, such as the ids of fields in a translation, stay as they are.
 *
 * A part that no message has, such as an unknown property, stays as it is.
 */
export function fieldPathOf(jsonPath: string): string {
  return fieldAt(jsonPath).path;
}

/** What is wrong with a definition, as callers of RPCs have written it: with the names of fields and enum values. */
export function ofFields(violation: Violation): Violation {
  const { path, choices } = fieldAt(violation.path);
  const isUnknown = violation.code === 'invalid_enum_value' && choices !== undefined;
  return { ...violation, path, ...(isUnknown && { message: oneOfEnum(choices) }) };
}

function fieldAt(jsonPath: string): { path: string; choices: DescEnum | undefined } {
  let path = ROOT;
  let at: Place = FormDefinitionSchema;
  let choices: DescEnum | undefined;
  for (const part of jsonPath === '' ? [] : jsonPath.split('.')) {
    const step = fieldStep(at, part);
    path += step.added;
    at = step.next;
    choices = step.choices;
  }
  return { path, choices };
}

/** What a part of a JSON path adds to that of fields, where it leads, and the enum if it leads to a value of one. */
function fieldStep(at: Place, part: string): { added: string; next: Place; choices?: DescEnum | undefined } {
  if (at?.kind === 'field') return { added: `.${part}`, next: insideOf(at) };
  const isIndex = /^\d+$/.test(part);
  const steps = at === undefined ? [] : stepsTo(at, isIndex ? WRAPPED_LIST : part);
  const names = steps.map(({ name }) => `.${name}`).join('');
  const last = steps.at(-1);
  const next = placeOf(last);
  if (isIndex) return { added: `${names}[${part}]`, next: steps.length === 0 ? at : next };
  const choice = at?.oneofs.find((oneof) => jsonNamesOfChoices.get(keyOf(oneof)) === part);
  return { added: choice === undefined ? names || `.${part}` : `.${choice.name}`, next, choices: last?.enum };
}

/** The path in the definition's JSON of what `fieldPathOf` names; undefined for a path to anything else. */
export function jsonPathOf(fieldPath: string): string | undefined {
  const [root, ...tokens] = fieldPath.match(/[^.[\]]+/g) ?? [];
  if (root !== ROOT) return undefined;
  let at: Place = FormDefinitionSchema;
  const parts = tokens.map((token) => {
    const [part, next] = jsonStep(at, token);
    at = next;
    return part;
  });
  return parts.filter((part) => part !== '').join('.');
}

function jsonStep(at: Place, token: string): [part: string, next: Place] {
  if (at?.kind === 'field') return [token, insideOf(at)];
  if (/^\d+$/.test(token)) return [token, at];
  const field = at?.fields.find(({ name }) => name === token);
  const choice = at?.oneofs.find(({ name }) => name === token);
  if (choice !== undefined) return [jsonNamesOfChoices.get(keyOf(choice)) ?? token, placeOf(field)];
  return [field === undefined ? token : jsonNameOf(field), placeOf(field)];
}

function placeOf(field: DescField | undefined): Place {
  return field?.fieldKind === 'map' ? field : insideOf(field);
}

/** The fields that lead from a message to a name of the JSON: through those that the JSON does not have. */
function stepsTo(message: DescMessage, name: string): DescField[] {
  for (const field of message.fields) {
    if (name === WRAPPED_LIST ? isWrappedList(field) : jsonNameOf(field) === name) return [field];
    if (jsonNameOf(field) !== '' || field.message === undefined || isWrappedList(field)) continue;
    const further = stepsTo(field.message, name);
    if (further.length > 0) return [field, ...further];
  }
  return [];
}

/** The message whose fields a path goes on with: not into the messages that stand for any JSON. */
function insideOf(field: DescField | undefined): DescMessage | undefined {
  return field?.message?.file === FormDefinitionSchema.file ? field.message : undefined;
}

/** The name of a field in the JSON; empty if the JSON leaves it out, so that what it holds stands in its place. */
export function jsonNameOf(field: DescField): string {
  return jsonNames.get(keyOf(field)) ?? field.jsonName;
}

function isWrappedList(field: DescField): boolean {
  return field.fieldKind === 'list' && jsonNameOf(field) === '';
}

/** The name by which the tables of a definition's messages know a field, or a choice between fields. */
export function keyOf({ parent, name }: { parent: DescMessage; name: string }): string {
  return `${parent.name}.${name}`;
}

/** The word for an enum's value in the JSON: what its name ends with, in lower case. */
export function wordOf({ name, localName }: DescEnumValue): string {
  return words.get(name) ?? localName.toLowerCase();
}

/** The field of the requests that hold a definition. */
const ROOT = 'definition';

const WRAPPED_LIST = '';

/** The names in the JSON that are not those of protobuf's own JSON. */
const jsonNames = new Map([
  ['DeliveryTarget.email', ''],
  ['DeliveryTarget.webhook', ''],
  ['Condition.comparison', ''],
  ['ConditionList.conditions', ''],
  ['Condition.negation', 'not'],
  ['SpamSettings.min_time', 'minSeconds'],
]);

/** The words in the JSON that are not those of the enum. */
const words = new Map([['OPERATOR_NOT_EMPTY', 'notEmpty']]);

/** What tells the alternatives of a `oneof` apart in the JSON. */
export const jsonNamesOfChoices = new Map([['DeliveryTarget.channel', 'type']]);

/** Where a path has come to: in a message, at a map, whose keys stay as they are, or in what no message has. */
type Place = DescMessage | DescField | undefined;
