import { create, toBinary } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { BadRequest_FieldViolationSchema } from '../../../gen/google/rpc/error_details_pb.js';
import { type Violation, ViolationCode, ViolationSchema } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failureOf, fieldViolationOf, refailed } from '../../domain/errors/failure.ts';

/**
 * An error as gRPC's trailers hold it: with details, of which they take some kilobytes. Violations that do not fit
 * are without what came; of still more, the last one says how many there are; the standard detail has those for
 * which ours leaves room. gRPC's libraries refuse trailers that are larger, and servers reset the stream.
 */
export function trailerError(error: ConnectError): ConnectError {
  const failure = failureOf(error);
  if (failure === undefined) return error;
  const message = shortened(error.rawMessage);
  const violations = fittingWithReceived(failure.violations);
  const left = MAX_BYTES - violations.reduce((sum, violation) => sum + bytesInFailure(violation), 0);
  const listed = left < MIN_BYTES ? [] : fitting(failure.violations, left, bytesInBadRequest);
  const cut = violations !== failure.violations || listed !== failure.violations;
  if (!cut && message === error.rawMessage) return error;
  return refailed(error, { ...failure, violations }, { message, listed });
}

function fittingWithReceived(violations: Violation[]): Violation[] {
  const whole = fitting(violations, MAX_BYTES, bytesInFailure);
  if (whole === violations) return violations;
  const bare = violations.map(({ path, code, message }) => create(ViolationSchema, { path, code, message }));
  return fitting(bare, MAX_BYTES, bytesInFailure);
}

/** The violations that fit into `room` bytes, and one more that says how many do not. */
function fitting(
  violations: Violation[],
  room: number,
  bytesOf: (violation: Violation) => number,
): Violation[] {
  let bytes = 0;
  for (const [index, violation] of violations.entries()) {
    bytes += bytesOf(violation);
    if (bytes <= room) continue;
    const message = `There are ${violations.length - index} more problems`;
    return [...violations.slice(0, index), create(ViolationSchema, { code: ViolationCode.CUSTOM, message })];
  }
  return violations;
}

function bytesInFailure(violation: Violation): number {
  return toBinary(ViolationSchema, violation).length + ITEM_HEAD;
}

function bytesInBadRequest(violation: Violation): number {
  const item = create(BadRequest_FieldViolationSchema, fieldViolationOf(violation));
  return toBinary(BadRequest_FieldViolationSchema, item).length + ITEM_HEAD;
}

/** The tag and the length before a message in a list. */
const ITEM_HEAD = 3;

/** Trailers hold a message percent-encoded. */
function shortened(message: string): string {
  if (encodeURIComponent(message).length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE / LONGEST_ENCODED).toWellFormed()}…`;
}

/** Of violations. With the rest of the details 6 KB in base64: gRPC's libraries take 8 KB of trailers by default. */
const MAX_BYTES = 4_200;

/** What it takes to say how many violations are left out. */
const MIN_BYTES = 80;

/** Of a message in trailers, percent-encoded. */
const MAX_MESSAGE = 1_200;

/** Of a character that is percent-encoded. */
const LONGEST_ENCODED = 9;
