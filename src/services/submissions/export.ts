import type { HandlerContext } from '@connectrpc/connect';
import { stringify } from 'csv-stringify/sync';
import type { CsvForPeople } from '../../../gen/headlessforms/v1/owners_pb.js';
import {
  ExportFormat,
  ExportFormatSchema,
  type ExportSubmissionsRequest,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { isEmpty } from '../../domain/conditions/condition.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { isId } from '../../domain/ids.ts';
import { isObject, ownValue } from '../../domain/json/json.ts';
import { fileLink } from '../../domain/links.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { findAnyForm } from '../../store/forms/forms.ts';
import { type Asked, type AskedField, listAskedFields } from '../../store/forms/versions.ts';
import { exportSubmissions as storedPage } from '../../store/submissions/submission-pages.ts';
import type { ShownSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { createVersionReader, type ReadVersion } from '../forms/readable-versions.ts';
import { badParameter, unknownValue } from '../request-values.ts';
import { personalIn, submissionToJson } from './submission-proto.ts';

/**
 * Streams a form's accepted submissions, oldest first, a page at a time: the next page is read when
 * the one before has been taken, so memory stays flat however slow the reader is.
 *
 * What is accepted meanwhile follows at the end. Stops when nobody reads.
 *
 * The form is one the caller may read.
 */
export async function* exportForm(
  context: ServiceContext,
  request: Pick<ExportSubmissionsRequest, 'formId' | 'format'> & { projectId: string; people?: CsvForPeople },
  call: HandlerContext,
): AsyncIterable<{ data: Uint8Array }> {
  const { projectId, formId } = request;
  const asked = await listAskedFields(context.database, formId);
  const format = await formatterOf(context, request, asked, call);
  const isPersonal = asked.fields.some(({ personal }) => personal);
  const detail = isPersonal ? `${format.name} with personal answers` : format.name;
  context.audit.note(call, { projectId, formId, detail });
  const encoder = new TextEncoder();
  if (format.head !== '') yield { data: encoder.encode(format.head) };

  for (let after = '', limit = FIRST_ROWS; ; ) {
    call.signal.throwIfAborted();
    const range = { after, limit, bytes: PAGE_BYTES };
    const { items, nextCursor } = await storedPage(context.database, formId, {}, range);
    if (nextCursor === null) return;
    after = nextCursor;
    if (items.length > 0) {
      await format.prepare?.(items);
      const data = encoder.encode(format.lines(items));
      yield { data };
      limit = rowsThatFit(data.length / items.length);
    }
  }
}

async function formatterOf(
  context: ServiceContext,
  { formId, format, people }: Pick<ExportSubmissionsRequest, 'formId' | 'format'> & { people?: CsvForPeople },
  asked: Asked,
  { requestHeader }: HandlerContext,
): Promise<ExportFormatter> {
  if (format === ExportFormat.NDJSON) return ndjsonFormat(asked);
  if (format === ExportFormat.CSV) {
    const { database, secretKey, settings, now } = context;
    const links = { secretKey, baseUrl: settings.baseUrl, now: now() };
    const stored = await findAnyForm(database, formId);
    const form = { id: formId, ownerEpoch: stored?.ownerEpoch ?? 0 };
    const linkOf = (uploadId: string) => fileLink(links, form, uploadId);
    if (people === undefined) return csvFormat(asked, linkOf);
    if (!delimiters.test(people.delimiter))
      throw badParameter('people.delimiter', 'invalid_enum_value', 'Expected , or ;');
    const preferred = [...preferredLanguages(requestHeader.get('accept-language') ?? ''), people.language];
    const read = createVersionReader(context.forms, stored?.currentVersionId ?? '', preferred);
    const { fields } = await read(stored?.currentVersionId ?? '');
    return peopleFormat(asked.fields, { linkOf, people, read, current: fields });
  }
  throw unknownValue('format', ExportFormatSchema);
}

/** Submissions differ in size by a thousand times, so pages are made about equal in bytes. */
function rowsThatFit(bytesPerRow: number): number {
  return Math.max(1, Math.min(MAX_ROWS, Math.floor(PAGE_BYTES / bytesPerRow)));
}

/** Few, since their size is not known yet; and so that the first bytes are sent soon. */
const FIRST_ROWS = 20;

/** Keeps a page to a few milliseconds of work, so that other requests are not held up. */
const MAX_ROWS = 150;
const PAGE_BYTES = 128 * 1024;

/**
 * An export as one JSON object a line, in the shape of the REST submission as it is read alone, but for its context, and
 * with the number of its version.
 */
export function ndjsonFormat({ fields, numbers }: Asked): ExportFormatter {
  const line = (row: ShownSubmission) => {
    const personal = personalIn(
      row.answers,
      fields.filter(({ formerly }) => formerly === undefined),
    );
    const version = numbers.get(row.versionId);
    return JSON.stringify({ ...submissionToJson(row), version, ...(personal.length > 0 && { personal }) });
  };
  return {
    name: 'ndjson',
    head: '',
    lines: (rows) => rows.map((row) => `${line(row)}\n`).join(''),
  };
}

/**
 * An export as CSV: byte order mark, CRLF, one column for each field between those of the service. `linkOf` gives the
 * address by which a file can be read.
 */
export function csvFormat({ fields, numbers }: Asked, linkOf: LinkOf): ExportFormatter {
  const ids = fields.map((each) => {
    const name = each.formerly === undefined ? each.id : `${each.id}.v${each.formerly}`;
    return headOf(name, each, ownColumns) + (each.personal ? ' (personal)' : '');
  });
  const addedTo = ({ versionId, metadata }: ShownSubmission) => [
    String(numbers.get(versionId) ?? ''),
    Object.keys(metadata).length === 0 ? '' : JSON.stringify(metadata),
  ];
  return {
    name: 'csv',
    head: `\uFEFF${write([[...ownColumns, ...ids, ...addedColumns]])}`,
    lines: (rows) => write(rows.map((row) => [...recordOf(row, fields, linkOf), ...addedTo(row)])),
  };
}

/**
 * The same as people read it: labels of the fields as they are now, or were last, and the option texts of the version
 * that was answered. Dates and times are as in a file for programs, which spreadsheets read as such.
 */
function peopleFormat(
  fields: readonly AskedField[],
  { linkOf, people: { delimiter, language, received, reference }, read, current }: ForPeople,
): ExportFormatter {
  const labels = new Map(current.map(({ id, label }) => [id, label]));
  const versions = new Map<string, ReadonlyMap<string, Field>>();
  const cell = (answer: unknown, field: Field | undefined) => {
    if (typeof answer === 'number')
      return delimiter === ';' ? String(answer).replace('.', ',') : String(answer);
    if (field?.type === 'signature') return cellOf(textSigned(answer), linkOf);
    if (field === undefined || times.has(field.type) || field.type === 'file' || isEmpty(answer))
      return cellOf(answer, linkOf);
    return guarded(fieldRules[field.type].inWords(answer, field, language || 'en'));
  };
  const heads = fields.map((one) =>
    headOf(((one.formerly === undefined && labels.get(one.id)) || one.label || one.id) + one.mark, one, [
      received,
      reference,
    ]),
  );
  const head = [received, ...heads, reference].map(guarded);
  return {
    name: 'csv',
    head: `\uFEFF${write([head], delimiter)}`,
    async prepare(rows) {
      for (const { versionId } of rows.filter((row) => !versions.has(row.versionId)))
        versions.set(versionId, new Map((await read(versionId)).fields.map((field) => [field.id, field])));
    },
    lines: (rows) =>
      write(
        rows.map((row) => [
          row.createdAt.toISOString().slice(0, 16).replace('T', ' '),
          ...fields.map((field) => cell(answerIn(row, field), versions.get(row.versionId)?.get(field.id))),
          row.id,
        ]),
        delimiter,
      ),
  };
}

type ForPeople = { linkOf: LinkOf; people: CsvForPeople; read: ReadVersion; current: readonly Field[] };

/** The answer to a field, if it has the meaning of its column. */
function answerIn({ answers, versionId }: ShownSubmission, { id, versions }: AskedField): unknown {
  return versions.has(versionId) ? ownValue(answers, id) : undefined;
}

/** By itself it quotes only whole record delimiters, but a lone CR or LF ends a record for many readers. */
function write(records: string[][], delimiter = ','): string {
  return stringify(records, { delimiter, record_delimiter: '\r\n', quoted_match: /[\r\n]/ });
}

const times: ReadonlySet<string> = new Set(['date', 'time', 'datetime']);

const delimiters = /^[,;]$/;

/** The head of a field's column. One that a column of the service has is the label, with the id in brackets. */
function headOf(head: string, { id, label }: AskedField, own: readonly string[]): string {
  return own.includes(head) ? guarded(`${label || id} (${id})`) : head;
}

function recordOf(row: ShownSubmission, fields: readonly AskedField[], linkOf: LinkOf): string[] {
  const own = [row.id, row.createdAt.toISOString(), row.status, guarded(row.source), row.sessionId ?? ''];
  return [
    ...own,
    ...fields.map((field) => {
      const answer = answerIn(row, field);
      return cellOf(field.type === 'signature' ? textSigned(answer) : answer, linkOf);
    }),
  ];
}

function cellOf(answer: unknown, linkOf: LinkOf): string {
  if (answer === null || answer === undefined) return '';
  if (typeof answer === 'number' || typeof answer === 'boolean') return String(answer);
  return guarded(
    [answer]
      .flat()
      .map((each) => textOf(each, linkOf))
      .join('|'),
  );
}

/** A signature that was typed is the text alone. */
function textSigned(answer: unknown): unknown {
  return isObject(answer) && typeof answer.text === 'string' ? answer.text : answer;
}

/** A file is written as a link to it, an answer of several parts as `part=value|part=value`. */
function textOf(answer: unknown, linkOf: LinkOf): string {
  if (!isObject(answer)) return String(answer);
  const { upload_id: uploadId } = answer;
  if (typeof uploadId === 'string' && isId('upl', uploadId)) return linkOf(uploadId);
  const pairs = Object.entries(answer).flatMap(([part, value]) =>
    [value].flat().map((each) => `${part}=${String(each)}`),
  );
  return pairs.join('|');
}

/** Keeps a spreadsheet from taking a stranger's text for a formula. */
function guarded(text: string): string {
  return formula.test(text) ? `'${text}` : text;
}

/**
 * Spreadsheets skip spaces before they look for a formula, and some skip what can't be seen and read the signs of
 * East Asian keyboards (full-width and small forms) as the plain ones.
 */
const skipped = String.raw`[\s\p{Cc}\p{Cf}\p{DI}]*`;
const sign = String.raw`[=+\-@＝＋－＠﹦﹢﹣﹫−]`;
const formula = new RegExp(String.raw`^${skipped}${sign}|^ *[\t\r]`, 'u');

const ownColumns = ['id', 'created_at', 'status', 'source', 'session_id'];

/** They came later and stand at the end, by names that no field can have. */
const addedColumns = ['_version', '_metadata'];

type LinkOf = (uploadId: string) => string;

/** Writes the head and the lines of a file. */
export type ExportFormatter = {
  name: string;
  head: string;
  /** Called before `lines`, with the same rows. */
  prepare?(rows: ShownSubmission[]): Promise<void>;
  lines(rows: ShownSubmission[]): string;
};
