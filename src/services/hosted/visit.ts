import type { Answers } from '../../domain/answers/answers.ts';
import { type FormInput, readInputs } from '../../domain/answers/form-inputs.ts';
import { isEmpty } from '../../domain/conditions/condition.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { hasPublicPage } from '../../domain/definition/public-page.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import type { Field } from '../../domain/fields/field.ts';
import { isId } from '../../domain/ids.ts';
import { memoize } from '../../domain/memoize.ts';
import { notFound } from '../../rpc/errors.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findAnySession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm } from '../forms/form-access.ts';
import type { LiveVersion } from '../forms/form-reader.ts';
import type { Visit } from '../sessions/session-access.ts';

/** A form that has a page of its own, open or not. Throws NOT_FOUND. */
export async function formOfPage({ forms }: ServiceContext, formId: string): Promise<PublishedForm> {
  const form = await publishedForm(forms, formId);
  if (!hasPublicPage(form.version.definition)) throw notFound('form');
  return form;
}

/** The session that a visitor has begun on a form's own page; undefined for any other. */
export async function sessionOfVisitor(
  { database }: ServiceContext,
  formId: string,
  sessionId: string,
): Promise<Session | undefined> {
  if (sessionId === '') return undefined;
  const session = isId('sess', sessionId) ? await findAnySession(database, sessionId) : null;
  return session?.formId === formId && session.keylessBytes !== null ? session : undefined;
}

/** What a visitor without a session begins with: what the page's address fills in. `at` is in milliseconds. */
export function visitWith(prefill: Answers, at: number): Visit {
  return {
    id: null,
    prefill,
    partialAnswers: null,
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    metadata: {},
    createdAt: new Date(at),
    readAt: new Date(at),
  };
}

/**
 * What the page's address fills in, of fields that anybody may answer. What names no such field or does not fit is
 * left out: whoever made the link erred, and the person who follows it can't mend it.
 */
export async function readPrefill(version: LiveVersion, inputs: readonly FormInput[]): Promise<Answers> {
  const read = readInputs(settableByAddress(version.definition), inputs);
  const given = Object.fromEntries(Object.entries(read).filter(([, answer]) => !isEmpty(answer)));
  if (Object.keys(given).length === 0) return {};
  const checked = await version.checkAnswers(given, { required: false });
  if (checked.ok) return checked.answers;
  const refused = new Set(checked.violations.map(({ path }) => fieldIdOf(path)));
  const fitting = Object.fromEntries(Object.entries(given).filter(([id]) => !refused.has(id)));
  const again = await version.checkAnswers(fitting, { required: false });
  return again.ok ? again.answers : {};
}

const settableByAddress = memoize(
  (definition: FormDefinition): FormDefinition => ({
    ...definition,
    fields: definition.fields.filter(isSettableByAddress),
  }),
);

function isSettableByAddress({ type, answeredBy }: Field): boolean {
  return type !== 'file' && type !== 'signature' && (answeredBy ?? 'anyone') === 'anyone';
}
