import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type SubmissionSchema, SubmissionStatus } from '../../../gen/forms/v1/submissions_pb.js';
import type { JsonObject } from '../../domain/json.ts';

/** A stored submission as the RPCs return it. */
export function submissionToMessage(row: SubmissionRow): MessageInitShape<typeof SubmissionSchema> {
  return {
    id: row.id,
    formId: row.formId,
    formVersionId: row.versionId,
    sessionId: row.sessionId ?? '',
    source: row.source,
    answers: row.answers,
    status: row.status === 'spam' ? SubmissionStatus.SPAM : SubmissionStatus.ACCEPTED,
    createTime: timestampFromDate(row.createdAt),
    metadata: row.metadata,
  };
}

/** A stored submission as the REST interface and the NDJSON export show it. */
export function submissionToJson(row: SubmissionRow): JsonObject {
  return {
    id: row.id,
    form_id: row.formId,
    form_version_id: row.versionId,
    session_id: row.sessionId,
    source: row.source,
    answers: row.answers,
    status: row.status,
    created_at: row.createdAt.toISOString(),
    metadata: row.metadata,
  };
}

/** What callers see of a stored submission. */
export type SubmissionRow = {
  id: string;
  formId: string;
  versionId: string;
  sessionId: string | null;
  source: string;
  answers: JsonObject;
  status: 'accepted' | 'spam';
  createdAt: Date;
  metadata: JsonObject;
};
