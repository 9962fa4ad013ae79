import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { type HostedSessionSchema, HostedState } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { PageSchema } from '../../../gen/forms/v1/definition_pb.js';
import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import { shownFields } from '../../domain/conditions/shown-fields.ts';
import type { Field, FormDefinition } from '../../domain/definition/definition.ts';
import { themeToMessage } from '../../domain/definition/definition-message.ts';
import { translate } from '../../domain/definition/translate.ts';
import { isShown } from '../../domain/fields/field.ts';
import { fieldToMessage } from '../../domain/fields/field-message.ts';
import { memoize } from '../../domain/memoize.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { Availability, PublishedForm } from '../forms/form-access.ts';
import type { Visit } from '../sessions/session-access.ts';
import { withoutNulls } from '../sessions/session-request.ts';

/** Whether a session takes answers. The end of the session itself comes before the closing of its form. */
export function hostedState(session: Session, availability: Availability): HostedState {
  if (session.status === 'submitted') return HostedState.SUBMITTED;
  if (session.status === 'expired') return HostedState.EXPIRED;
  if (session.status === 'cancelled') return HostedState.CANCELLED;
  switch (availability) {
    case 'open':
      return HostedState.OPEN;
    case 'closed':
      return HostedState.CLOSED;
    case 'archived':
      return HostedState.ARCHIVED;
    default:
      return availability satisfies never;
  }
}

/** A definition in the language that the caller prefers, by the `Accept-Language` of the call, if it has that one. */
export function inLanguageOf(
  definition: FormDefinition,
  { requestHeader }: Pick<HandlerContext, 'requestHeader'>,
): FormDefinition {
  return translate(definition, preferredLanguages(requestHeader.get('accept-language') ?? ''));
}

/** What a page shows of a session that takes no answers any more: neither answers nor fields. */
export function endedToMessage(
  definition: FormDefinition,
  form: PublishedForm,
  state: HostedState,
): HostedMessage {
  const { locale = '' } = definition.settings;
  const theme = themeToMessage(definition);
  return {
    state,
    formName: definition.name,
    locale,
    ...(theme !== undefined && { theme }),
    embedOrigins: form.version.definition.settings.embedOrigins,
  };
}

/**
 * What a page shows of a session that takes answers. Its fields and words are those of the version
 * it began with, `definition`; how it behaves is set by the form's current version.
 */
export function openToMessage(
  definition: FormDefinition,
  form: PublishedForm,
  open: OpenPage,
): HostedMessage {
  const { allowPartial, spam } = form.version.definition.settings;
  const fields = shownFields(definition.fields, currentAnswers(definition, open.session));
  return {
    ...endedToMessage(definition, form, HostedState.OPEN),
    description: definition.description ?? '',
    fields: fields.map((field) => fieldToMessage(withoutDefault(field))),
    answers: open.answers,
    allowPartial,
    submitLabel: definition.settings.submitLabel ?? '',
    honeypot: spam.honeypot === true,
    issueToken: open.issueToken,
    ...(open.session.expiresAt && { expireTime: timestampFromDate(open.session.expiresAt) }),
    resumed: open.session.partialAnswers !== null,
    pages: (definition.pages ?? []).map((page) => create(PageSchema, page)),
    review: definition.settings.review === true,
  };
}

/** A default is among the answers that the page begins with. */
const withoutDefault = memoize((field: Field): Field => {
  const { defaultValue: _, ...rest } = field;
  return rest;
});

/** The answers that a session holds: what was saved, over prefill, over defaults. Hidden ones too. */
export function currentAnswers(
  definition: FormDefinition,
  session: Pick<Session, 'prefill' | 'partialAnswers'>,
): Answers {
  const defaults: Answers = {};
  for (const { id, defaultValue } of definition.fields) {
    if (defaultValue !== undefined) defaults[id] = defaultValue;
  }
  return withoutNulls(mergeAnswers(defaults, session.prefill, session.partialAnswers ?? {}));
}

/** Answers without those of fields that people do not see: what may go to a browser. */
export function visibleAnswers(definition: FormDefinition, answers: Answers): Answers {
  const hidden = new Set(definition.fields.flatMap((field) => (isShown(field) ? [] : [field.id])));
  return Object.fromEntries(Object.entries(answers).filter(([id]) => !hidden.has(id)));
}

/** `answers` are those that may be shown, files described. */
export type OpenPage = { session: Visit & { expiresAt?: Date }; answers: Answers; issueToken: string };

type HostedMessage = MessageInitShape<typeof HostedSessionSchema>;
