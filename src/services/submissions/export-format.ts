import { stringify } from 'csv-stringify/sync';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { isObject } from '../../domain/json.ts';
import { type SubmissionRow, submissionToJson } from './submission-message.ts';

/** An export as one JSON object a line, in the shape of the REST submission. */
export function ndjsonFormat(): ExportFormatter {
  return {
    head: '',
    lines: (rows) => rows.map((row) => `${JSON.stringify(submissionToJson(row))}\n`).join(''),
  };
}

/**
 * An export as CSV: byte order mark, CRLF, one column for each field.
 *
 * `versions` are all definitions of the form, newest first: the columns follow the newest, then
 * come the fields that only older ones have.
 */
export function csvFormat(versions: Pick<FormDefinition, 'fields'>[]): ExportFormatter {
  const fieldIds = [...new Set(versions.flatMap(({ fields }) => fields.map(({ id }) => id)))];
  // By itself it quotes only whole record delimiters, but a lone CR or LF ends a record for many readers.
  const write = (records: string[][]) =>
    stringify(records, { record_delimiter: '\r\n', quoted_match: /[\r\n]/ });
  return {
    head: `\uFEFF${write([[...ownColumns, ...fieldIds]])}`,
    lines: (rows) => write(rows.map((row) => recordOf(row, fieldIds))),
  };
}

function recordOf(row: SubmissionRow, fieldIds: string[]): string[] {
  const own = [row.id, row.createdAt.toISOString(), row.status, guarded(row.source), row.sessionId ?? ''];
  return [...own, ...fieldIds.map((id) => cellOf(Object.hasOwn(row.answers, id) ? row.answers[id] : null))];
}

function cellOf(answer: unknown): string {
  if (answer === null || answer === undefined) return '';
  if (typeof answer === 'number' || typeof answer === 'boolean') return String(answer);
  return guarded(Array.isArray(answer) ? answer.map(textOf).join('|') : textOf(answer));
}

/** A file is told by its address. */
function textOf(answer: unknown): string {
  if (!isObject(answer)) return String(answer);
  const { url, upload_id: uploadId } = answer;
  return typeof url === 'string' ? url : typeof uploadId === 'string' ? uploadId : '';
}

/** Keeps a spreadsheet from taking a stranger's text for a formula. */
function guarded(text: string): string {
  return formula.test(text) ? `'${text}` : text;
}

/** Spreadsheets skip spaces before they look for a formula, so leading ones hide nothing. */
const formula = /^\s*[=+\-@]|^ *[\t\r]/;

const ownColumns = ['id', 'created_at', 'status', 'source', 'session_id'];

/** Writes pieces of a file. Each ends at the end of a line. */
export type ExportFormatter = {
  head: string;
  lines(rows: SubmissionRow[]): string;
};
