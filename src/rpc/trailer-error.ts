import { create, toBinary } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import {
  FailureSchema,
  type Violation,
  ViolationCode,
  ViolationSchema,
} from '../../gen/forms/v1/errors_pb.js';
import { withFailure } from './errors.ts';

/**
 * An error as gRPC's trailers hold it: with a detail, of which they take some kilobytes. Of more violations than
 * fit, the last one says how many there are. gRPC's libraries refuse trailers that are larger, and servers reset
 * the stream.
 */
export function trailerError(error: ConnectError): ConnectError {
  const complete = withFailure(error);
  const [failure] = complete.findDetails(FailureSchema);
  if (failure === undefined) return complete;
  const message = shortened(error.rawMessage);
  const violations = fitting(failure.violations);
  if (violations === failure.violations && message === error.rawMessage) return complete;
  const detail = { desc: FailureSchema, value: { ...failure, violations } };
  return new ConnectError(message, error.code, error.metadata, [detail], error.cause);
}

function fitting(violations: Violation[]): Violation[] {
  let bytes = 0;
  for (const [index, violation] of violations.entries()) {
    bytes += toBinary(ViolationSchema, violation).length;
    if (bytes <= MAX_BYTES) continue;
    const message = `There are ${violations.length - index} more problems`;
    return [...violations.slice(0, index), create(ViolationSchema, { code: ViolationCode.CUSTOM, message })];
  }
  return violations;
}

/** Trailers hold a message percent-encoded. */
function shortened(message: string): string {
  if (encodeURIComponent(message).length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE / LONGEST_ENCODED).toWellFormed()}…`;
}

/** 6 KB in base64: gRPC's libraries take 8 KB of trailers by default. */
const MAX_BYTES = 4_400;

/** Of a message in trailers, percent-encoded. */
const MAX_MESSAGE = 1_200;

/** Of a character that is percent-encoded. */
const LONGEST_ENCODED = 9;
