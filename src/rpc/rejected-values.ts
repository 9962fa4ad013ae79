import { type DescField, type DescMessage, isFieldSet, isMessage, type Message } from '@bufbuild/protobuf';
import { type Duration, DurationSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { ConnectError } from '@connectrpc/connect';
import { FailureSchema } from '../../gen/headlessforms/v1/errors_pb.js';
import { describeReceived } from '../domain/errors/rejected-values.ts';

/** Adds what came in the request to each violation of a failed call, in place. */
export function addReceived(failure: ConnectError, schema: DescMessage, request: Message): void {
  for (const detail of failure.details) {
    if (!('desc' in detail) || detail.desc !== FailureSchema) continue;
    const { violations } = detail.value;
    for (const violation of Array.isArray(violations) ? violations : []) {
      violation.received ||= describeReceived(violation.path, valueAt(schema, request, violation.path));
    }
  }
}

/** What is at the path of a request's field, as JSON; undefined if there is nothing. */
function valueAt(schema: DescMessage, request: Message, path: string): unknown {
  let value: unknown = request;
  let inside: DescMessage | undefined = schema;
  let field: DescField | undefined;
  for (const token of path.match(/[^.[\]]+/g) ?? []) {
    if (typeof value !== 'object' || value === null) return undefined;
    if (inside !== undefined && isMessage(value)) {
      field = inside.fields.find(({ name }) => name === token);
      if (field === undefined) return undefined;
      value = fieldOf(value, field);
      inside = field.message;
    } else value = Object.hasOwn(value, token) ? Reflect.get(value, token) : undefined;
  }
  return jsonOf(value, field);
}

function fieldOf(message: Message, field: DescField): unknown {
  if (!isFieldSet(message, field)) return undefined;
  const { localName, oneof } = field;
  return oneof === undefined ? Reflect.get(message, localName) : Reflect.get(message, oneof.localName).value;
}

/** Enums have other names in each interface: only numbers that have no name are told. */
function jsonOf(value: unknown, field: DescField | undefined): unknown {
  if (value instanceof Uint8Array) return undefined;
  if (typeof value === 'number' && field?.enum?.value[value] !== undefined) return undefined;
  if (isMessage(value, ValueSchema)) return scalarOf(value);
  return isMessage(value, DurationSchema) ? secondsOf(value) : value;
}

/** Of lists and objects only that they are such matters. `toJson` would throw for numbers that JSON can't hold. */
function scalarOf({ kind }: Value): unknown {
  if (kind.case === 'listValue') return kind.value.values;
  if (kind.case === 'structValue') return kind.value.fields;
  return kind.case === 'nullValue' ? null : kind.value;
}

function secondsOf({ seconds, nanos }: Duration): number {
  return Number(seconds) + nanos / 1e9;
}
