import type { HandlerContext } from '@connectrpc/connect';
import type { SearchOwnedSubmissionsRequest } from '../../../gen/headlessforms/v1/owners_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import { invalid } from '../../domain/errors/failure.ts';
import { isId } from '../../domain/ids.ts';
import type { Json } from '../../domain/json/json.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { inNfc } from '../../domain/text/typed-signs.ts';
import type { Database } from '../../store/database/database.ts';
import type { OwnedForm } from '../../store/owners/owners.ts';
import { listSubmissions, type SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import type { ShownSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { limitOwnersAtOnce } from '../limits/calls-at-once.ts';
import { pageRequestOf, textProblems, unknownCursor } from '../request-values.ts';

/**
 * Finds the submissions of a form with a text in an answer, or in the label of a chosen option as the form's
 * current version has it in the reader's language; newest first.
 */
export async function searchOwnedSubmissions(
  { forms }: Pick<ServiceContext, 'forms'>,
  scan: Scan,
  request: SearchOwnedSubmissionsRequest,
  { form, filter, call }: SearchRange,
): Promise<Found> {
  const text = wantedText(request.text);
  const { before, already } = positionIn(request.pageToken);
  const { limit } = pageRequestOf({ pageSize: request.pageSize, pageToken: '' }, 'sub');
  const { definition } = await forms.version(form.currentVersionId);
  const preferred = preferredLanguages(call.requestHeader.get('accept-language') ?? '');
  const labelled = optionsWith(translate(definition, preferred), text);

  const submissions: ShownSubmission[] = [];
  let position = already;
  let positionOfLast = already;
  let more = false;
  const range = { formId: form.id, filter, before, already };
  const { scanned, truncated } = await scan(range, call, (submission) => {
    position += 1;
    if (!matches(submission, text, labelled)) return true;
    more = submissions.length === limit;
    if (more) return false;
    submissions.push(submission);
    positionOfLast = position;
    return true;
  });
  const last = submissions.at(-1);
  return {
    submissions,
    nextPageToken: more && last !== undefined ? `${last.id}.${positionOfLast}` : '',
    searchedCount: more ? positionOfLast : scanned,
    truncated,
  };
}

function wantedText(text: string): string {
  const wanted = inNfc(text.trim()).toLowerCase();
  const problems = textProblems(wanted, 'text', { max: MAX_TEXT_LENGTH, needed: true });
  if (problems.length > 0) throw invalid(problems);
  return wanted;
}

/** A page token is the id of the last submission that was shown, and how many were read up to it. */
function positionIn(token: string): { before: string | undefined; already: number } {
  if (token === '') return { before: undefined, already: 0 };
  const [before = '', already = ''] = token.split('.');
  if (!isId('sub', before) || !/^\d{1,5}$/.test(already)) throw unknownCursor();
  return { before, already: Number(already) };
}

/** The values of the options whose labels have the text, by field id. */
function optionsWith({ fields }: FormDefinition, text: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    fields.flatMap(({ id, options = [] }) => {
      const found = options.filter(({ label }) => inNfc(label).toLowerCase().includes(text));
      return found.length === 0 ? [] : [[id, new Set(found.map(({ value }) => value))] as const];
    }),
  );
}

function matches(
  { answers }: ShownSubmission,
  text: string,
  labelled: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  return Object.entries(answers).some(([id, answer]) => {
    const chosen = labelled.get(id);
    return valuesIn(answer).some(
      (value) => inNfc(value).toLowerCase().includes(text) || chosen?.has(value) === true,
    );
  });
}

/** The texts and numbers in an answer, without the names of properties. */
function valuesIn(answer: Json): string[] {
  if (typeof answer === 'string') return [answer];
  if (typeof answer === 'number') return [String(answer)];
  return typeof answer === 'object' && answer !== null ? Object.values(answer).flatMap(valuesIn) : [];
}

/**
 * Goes through the newest submissions of a form that fit a filter, newest first, until `visit` returns false or as
 * many were read as one call may: `MAX_SCANNED`, or what holds `MAX_SCANNED_BYTES`.
 *
 * Any number of owners may ask, so that one call reads at a time in this process, in small pages between which
 * others are served; few may wait.
 */
export function createScanner(database: Database): Scan {
  let last: Promise<unknown> = Promise.resolve();
  const searches = limitOwnersAtOnce('searches', WAITING);

  async function scan({ formId, filter, before, already = 0 }: ScanRange, visit: Visit): Promise<ScanResult> {
    let scanned = already;
    let bytes = 0;
    let cursor = before;
    while (scanned < MAX_SCANNED && bytes < MAX_SCANNED_BYTES) {
      const page = { limit: Math.min(PAGE_ROWS, MAX_SCANNED - scanned), cursor, bytes: PAGE_BYTES };
      const { items, nextCursor } = await listSubmissions(database, formId, filter, page);
      for (const item of items) {
        scanned += 1;
        bytes += JSON.stringify(item.answers).length;
        if (!(await visit(item))) return { scanned, truncated: false };
      }
      if (nextCursor === null) return { scanned, truncated: false };
      cursor = nextCursor;
    }
    return { scanned, truncated: true };
  }

  return async (range, call, visit) => {
    using _ = searches.enter(call);
    const reading = last.then(() => scan(range, visit));
    last = reading.catch(() => undefined);
    return await reading;
  };
}

/** How many submissions a search or a statistic reads, at most. */
const MAX_SCANNED = 10_000;

/** Some seconds of reading from the embedded database; 10,000 submissions of 3 KiB. */
const MAX_SCANNED_BYTES = 32 * 1024 * 1024;

/** Some milliseconds of work. */
const PAGE_ROWS = 150;
const PAGE_BYTES = 256 * 1024;

/** Calls that wait for their turn, and read. */
const WAITING = { perOwner: 2, perClient: 4, total: 20 };

const MAX_TEXT_LENGTH = 200;

type SearchRange = { form: OwnedForm; filter: SubmissionFilter; call: HandlerContext };

type Found = {
  submissions: ShownSubmission[];
  nextPageToken: string;
  /** How many were read on this page and those before it. */
  searchedCount: number;
  truncated: boolean;
};

export type Scan = (range: ScanRange, call: HandlerContext, visit: Visit) => Promise<ScanResult>;

/** `before` is the id from which on to read; `already` how many were read on pages before this one. */
type ScanRange = { formId: string; filter: SubmissionFilter; before?: string | undefined; already?: number };

/** False: no more are wanted. */
type Visit = (submission: ShownSubmission) => boolean | Promise<boolean>;

/** `truncated`: the limit was reached, and there are older submissions. */
type ScanResult = { scanned: number; truncated: boolean };
