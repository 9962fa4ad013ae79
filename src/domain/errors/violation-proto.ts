import { create } from '@bufbuild/protobuf';
import * as pb from '../../../gen/headlessforms/v1/errors_pb.js';
import { type Violation, type ViolationCode, violationCodes } from './violations.ts';

/** A violation as replies and failures of RPCs carry it. */
export function violationToMessage({ path, code, message, received = '' }: Violation): pb.Violation {
  return create(pb.ViolationSchema, { path, code: codes[code], message, received });
}

/** The violation that a message carries. A code that is unknown, of a newer service, is `custom`. */
export function violationFromMessage({ path, code, message, received }: pb.Violation): Violation {
  return { path, code: names.get(code) ?? 'custom', message, ...(received !== '' && { received }) };
}

const codes: Record<ViolationCode, pb.ViolationCode> = {
  invalid_type: pb.ViolationCode.INVALID_TYPE,
  invalid_string: pb.ViolationCode.INVALID_STRING,
  too_small: pb.ViolationCode.TOO_SMALL,
  too_big: pb.ViolationCode.TOO_BIG,
  invalid_enum_value: pb.ViolationCode.INVALID_ENUM_VALUE,
  unrecognized_keys: pb.ViolationCode.UNRECOGNIZED_KEYS,
  invalid_date: pb.ViolationCode.INVALID_DATE,
  not_multiple_of: pb.ViolationCode.NOT_MULTIPLE_OF,
  invalid_union: pb.ViolationCode.INVALID_UNION,
  custom: pb.ViolationCode.CUSTOM,
};

const names = new Map(violationCodes.map((name) => [codes[name], name]));
