import { ConnectError } from '@connectrpc/connect';
import { expect } from 'vitest';
import { ChangeKind } from '../../gen/headlessforms/v1/changes_pb.js';
import { FailureSchema, NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { violationFromMessage } from '../../src/domain/errors/failure.ts';

/** What a call failed with, in the words of `errors.proto`. Fails the test if it did not fail so. */
export async function failureOf(call: Promise<unknown>): Promise<FailureFacts> {
  const error = await call.then(
    () => new Error('The call was expected to fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConnectError)) throw error;
  const [failure] = error.findDetails(FailureSchema);
  if (failure === undefined) throw error;
  const {
    violations,
    reason,
    requiredScope,
    submissionId,
    sessionId,
    retryable,
    retryAfter,
    nextCall,
    changes,
  } = failure;
  return {
    code: error.code,
    reason: Reason[reason] ?? '',
    message: error.rawMessage,
    violations: violations.map(violationFromMessage).map(({ path, code }) => [path, code]),
    requiredScope,
    submissionId,
    sessionId,
    received: violations.map(({ received }) => received),
    retryable,
    retryAfter: retryAfter && Number(retryAfter.seconds),
    nextCall: NextCall[nextCall],
    changes: changes.map(({ path, kind }) => [path, ChangeKind[kind] ?? '']),
    header: error.metadata,
  };
}

/** Expects a call to fail with a reason, and gives the rest: violations as `path: code`. */
export async function expectFailure(call: Promise<unknown>, reason: Reason) {
  const failure = await failureOf(call);
  expect(failure.reason, failure.message).toBe(Reason[reason]);
  return { ...failure, violations: failure.violations.map(([path, code]) => `${path}: ${code}`) };
}

type FailureFacts = {
  code: number;
  reason: string;
  message: string;
  /** Path and code of each. */
  violations: [string, string][];
  requiredScope: string;
  submissionId: string;
  sessionId: string;
  /** Of each violation. */
  received: string[];
  retryable: boolean;
  /** In seconds. */
  retryAfter: number | undefined;
  nextCall: string | undefined;
  /** Path and kind of each. */
  changes: [string, string][];
  header: Headers;
};
