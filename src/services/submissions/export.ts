import { setImmediate as nextTurn } from 'node:timers/promises';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { ExportFormat, type ExportSubmissionsRequest } from '../../../gen/forms/v1/submissions_pb.js';
import type { Caller } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import { exportSubmissions as storedPage } from '../../store/submissions.ts';
import { listVersions } from '../../store/versions.ts';
import type { ServiceContext } from '../context.ts';
import { csvFormat, type ExportFormatter, ndjsonFormat } from './export-format.ts';
import { ownForm } from './submission-list.ts';

/**
 * Streams a form's accepted submissions, oldest first, a page at a time: the next page is read when
 * the one before has been taken, so memory stays flat however slow the reader is.
 *
 * What is accepted meanwhile comes along at the end. Stops when `signal` says that nobody reads.
 */
export async function* exportSubmissions(
  context: ServiceContext,
  request: ExportSubmissionsRequest,
  caller: Caller,
  signal: AbortSignal,
): AsyncIterable<{ data: Uint8Array }> {
  await ownForm(context, request.formId, caller);
  const format = await formatterOf(context, request);
  const encoder = new TextEncoder();
  if (format.head !== '') yield { data: encoder.encode(format.head) };

  for (let after = '', limit = FIRST_ROWS; ; ) {
    signal.throwIfAborted();
    const rows = await storedPage(context.database, request.formId, {}, { after, limit });
    const last = rows.at(-1);
    if (last === undefined) return;
    const data = encoder.encode(format.lines(rows));
    yield { data };
    after = last.id;
    limit = rowsThatFit(data.length / rows.length);
    // The embedded database answers within the turn: without this, nothing else would run until the end.
    await nextTurn();
  }
}

async function formatterOf(
  context: ServiceContext,
  { formId, format }: ExportSubmissionsRequest,
): Promise<ExportFormatter> {
  if (format === ExportFormat.NDJSON) return ndjsonFormat();
  if (format === ExportFormat.CSV) {
    return csvFormat((await listVersions(context.database, formId)).map(({ definition }) => definition));
  }
  throw failed(Reason.BAD_REQUEST, 'format: Expected csv or ndjson', {
    violations: [{ path: 'format', code: 'invalid_enum_value', message: 'Expected csv or ndjson' }],
  });
}

/** Submissions differ in size by a thousand times; a page is to weigh about the same. */
function rowsThatFit(bytesPerRow: number): number {
  return Math.max(1, Math.min(MAX_ROWS, Math.floor(PAGE_BYTES / bytesPerRow)));
}

/** Few, since nothing is known of their size yet; and the first bytes leave soon. */
const FIRST_ROWS = 20;

/** Keeps a page to a few milliseconds of work, so that other requests are not held up. */
const MAX_ROWS = 150;
const PAGE_BYTES = 128 * 1024;
