import type { HandlerContext } from '@connectrpc/connect';
import type { SearchOwnedSubmissionsRequest } from '../../../gen/forms/v1/owners_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { isId } from '../../domain/ids.ts';
import type { Json } from '../../domain/json/json.ts';
import { textProblem } from '../../domain/json/well-formed.ts';
import { invalid } from '../../rpc/errors.ts';
import type { OwnedForm } from '../../store/owners/owners.ts';
import type { SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { badParameter, pageRequestOf } from '../request-values.ts';
import type { Scan } from './scan.ts';

/**
 * Finds the submissions of a form with a text in an answer, or in the label of a chosen option as the form's
 * current version has it; newest first.
 */
export async function searchSubmissions(
  { forms }: Pick<ServiceContext, 'forms'>,
  scan: Scan,
  request: SearchOwnedSubmissionsRequest,
  { form, filter, call }: SearchRange,
): Promise<Found> {
  const text = wantedText(request.text);
  const { before, already } = positionIn(request.pageToken);
  const { limit } = pageRequestOf({ pageSize: request.pageSize, pageToken: '' }, 'sub');
  const { definition } = await forms.version(form.currentVersionId);
  const labelled = optionsWith(definition, text);

  const submissions: Submission[] = [];
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
  const wanted = text.trim().toLowerCase();
  const problem = textProblem(wanted);
  if (problem !== undefined) throw invalid([{ path: 'text', code: 'custom', message: problem }]);
  if (wanted === '') throw invalid([{ path: 'text', code: 'invalid_type', message: 'Required' }]);
  if (wanted.length <= MAX_TEXT_LENGTH) return wanted;
  const message = `Expected at most ${MAX_TEXT_LENGTH} characters`;
  throw invalid([{ path: 'text', code: 'too_big', message }]);
}

/** A page token is the id of the last submission that was shown, and how many were read up to it. */
function positionIn(token: string): { before: string | undefined; already: number } {
  if (token === '') return { before: undefined, already: 0 };
  const [before = '', already = ''] = token.split('.');
  if (!isId('sub', before) || !/^\d{1,5}$/.test(already)) {
    throw badParameter('page_token', 'invalid_string', 'Expected a cursor that a list has given');
  }
  return { before, already: Number(already) };
}

/** The values of the options whose labels have the text, by field id. */
function optionsWith({ fields }: FormDefinition, text: string): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    fields.flatMap(({ id, options = [] }) => {
      const found = options.filter(({ label }) => label.toLowerCase().includes(text));
      return found.length === 0 ? [] : [[id, new Set(found.map(({ value }) => value))] as const];
    }),
  );
}

function matches(
  { answers }: Submission,
  text: string,
  labelled: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  return Object.entries(answers).some(([id, answer]) => {
    const chosen = labelled.get(id);
    return valuesIn(answer).some(
      (value) => value.toLowerCase().includes(text) || chosen?.has(value) === true,
    );
  });
}

/** The texts and numbers in an answer, without the names of properties. */
function valuesIn(answer: Json): string[] {
  if (typeof answer === 'string') return [answer];
  if (typeof answer === 'number') return [String(answer)];
  return typeof answer === 'object' && answer !== null ? Object.values(answer).flatMap(valuesIn) : [];
}

const MAX_TEXT_LENGTH = 200;

type SearchRange = { form: OwnedForm; filter: SubmissionFilter; call: HandlerContext };

type Found = {
  submissions: Submission[];
  nextPageToken: string;
  /** How many were read on this page and those before it. */
  searchedCount: number;
  truncated: boolean;
};
