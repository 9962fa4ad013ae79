import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { FailureSchema, Reason, type Violation, ViolationCode } from '../../gen/forms/v1/errors_pb.js';
import {
  type BadRequest_FieldViolationSchema,
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb.js';

/**
 * The details of an error: ours first, and the same in the standard ones of `google.rpc`, which clients read that
 * know nothing of this service.
 *
 * `listed` are the violations that `BadRequest` has; without it, all.
 */
export function detailsOf(failure: FailureFields, listed = failure.violations): Details {
  const { reason, submissionId, requiredScope, retryAfter } = failure;
  const metadata = {
    ...(submissionId !== '' && { submission_id: submissionId }),
    ...(requiredScope !== '' && { required_scope: requiredScope }),
  };
  const info = { reason: Reason[reason] ?? '', domain: DOMAIN, metadata };
  return [
    { desc: FailureSchema, value: failure },
    { desc: ErrorInfoSchema, value: info },
    ...(listed.length > 0
      ? [{ desc: BadRequestSchema, value: { fieldViolations: listed.map(fieldViolationOf) } }]
      : []),
    ...(retryAfter ? [{ desc: RetryInfoSchema, value: { retryDelay: retryAfter } }] : []),
  ];
}

/** A violation as `google.rpc.BadRequest` has it. */
export function fieldViolationOf({
  path,
  code,
  message,
}: Violation): MessageInitShape<typeof BadRequest_FieldViolationSchema> {
  return { field: path, description: message, reason: ViolationCode[code] ?? '' };
}

/** What the reasons of `ErrorInfo` belong to: the package of the protos. */
const DOMAIN = 'forms.v1';

type Details = NonNullable<ConstructorParameters<typeof ConnectError>[3]>;

type FailureFields = MessageInitShape<typeof FailureSchema> & {
  reason: Reason;
  violations: Violation[];
  submissionId: string;
  requiredScope: string;
};
