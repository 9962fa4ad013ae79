import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import {
  type EndingSchema,
  type HostedSessionSchema,
  HostedState,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { PageSchema } from '../../../gen/headlessforms/v1/definition_pb.js';
import { SessionContextSchema } from '../../../gen/headlessforms/v1/session_context_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { answersInWords } from '../../domain/answers/answer-texts.ts';
import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import { withoutNulls } from '../../domain/answers/held.ts';
import { lackingFromLink, shownFields } from '../../domain/conditions/shown-fields.ts';
import type { Field, FormDefinition } from '../../domain/definition/definition.ts';
import { fieldToMessage, themeToMessage } from '../../domain/definition/definition-proto.ts';
import { loopbackOrigin } from '../../domain/definition/settings.ts';
import { languagesOf, translate } from '../../domain/definition/translate.ts';
import { isShown } from '../../domain/fields/field.ts';
import { isKeyless } from '../../domain/ids.ts';
import { ownValue } from '../../domain/json/json.ts';
import { MAX_KEYLESS_BYTES, MAX_MESSAGE_BYTES } from '../../domain/limits/limits.ts';
import { memoize } from '../../domain/memoize.ts';
import { messageFrom } from '../../domain/messages.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { ServiceContext } from '../context.ts';
import { describeUnclaimed, signaturesIn } from '../uploads/upload-claims.ts';
import { issueToken } from './page-token.ts';
import type { HostedVisit } from './resolve-visit.ts';

/**
 * What a page shows of a visit, in the language that the caller prefers, if its form has that one. Fields and words
 * are those of the version that the session began with; how it behaves is set by the form's current one.
 *
 * What accepts no more answers shows none, and fields only where the page was `posted`, to name what was typed.
 * A person who posts after a submission learns nothing of it, so that it shows none.
 */
export async function visitToMessage(
  context: ServiceContext,
  visit: ShownVisit,
  { posted }: { posted: boolean },
  { requestHeader }: Pick<HandlerContext, 'requestHeader'>,
): Promise<HostedMessage> {
  const { form, version, session, stored, state, permanent, standing } = visit;
  const definition = translate(
    version.definition,
    preferredLanguages(requestHeader.get('accept-language') ?? ''),
  );
  const { allowPartial, embedOrigins, spam, redirectUrl = '' } = form.version.definition.settings;
  const { locale = '', submitLabel = '', review } = definition.settings;
  const theme = themeToMessage(definition);
  const looks: HostedMessage = {
    state,
    formName: definition.name,
    locale,
    ...(theme !== undefined && { theme }),
    embedOrigins,
    permanent,
    sessionId: permanent ? (stored?.id ?? '') : '',
  };
  // Until the code is given, a session shows nothing of itself.
  if (state === HostedState.CODE_NEEDED) {
    const shown = permanent ? { ...looks, sessionId: '' } : { state, embedOrigins };
    return { ...shown, codeSent: standing.isSent };
  }
  if (state !== HostedState.OPEN) {
    const named = posted && state !== HostedState.SUBMITTED ? definition.fields.filter(isShown) : [];
    return { ...looks, fields: named.map((field) => fieldToMessage(alwaysVisible(field))) };
  }

  const held = currentAnswers(definition, session);
  const answers = await describeUnclaimed(context, version, visibleAnswers(definition, held));
  return {
    ...looks,
    description: definition.description ?? '',
    fields: await inTimeSlice(() =>
      shownFields(definition.fields, held).map((field) => fieldToMessage(withoutDefault(field))),
    ),
    answers,
    lacking: lackingFromLink(definition.fields, held).map(({ label }) => label),
    ...(review === true && !posted && { pictures: await signaturesIn(context, definition, answers) }),
    allowPartial,
    ...(version.corrects && { correctsTime: timestampFromDate(version.corrects.createdAt) }),
    submitLabel,
    honeypot: spam.honeypot === true,
    issueToken: issueToken(
      context.secretKey,
      stored === undefined || permanent ? form.id : stored.id,
      context.now(),
    ),
    ...(stored !== undefined && { expireTime: timestampFromDate(stored.expiresAt) }),
    resumed: session.partialAnswers !== null,
    ...(permanent && stored?.partialAnswers && { keptSinceTime: timestampFromDate(stored.createdAt) }),
    pages: (definition.pages ?? []).map((page) => create(PageSchema, page)),
    review: review === true,
    languages: languagesOf(version.definition),
    ...(stored?.context && { context: messageFrom(SessionContextSchema, stored.context) }),
    allowDecline: stored?.allowDecline ?? false,
    leadsTo: loopbackOrigin(redirectUrl),
    linksAddresses: !isKeyless(form),
    maxBytes: isKeyless(form) ? MAX_KEYLESS_BYTES : MAX_MESSAGE_BYTES,
  };
}

/** A default is among the answers that the page begins with. */
const withoutDefault = memoize((field: Field): Field => {
  const { defaultValue: _, ...rest } = field;
  return rest;
});

/** A condition may tell what a hidden field holds. */
const alwaysVisible = memoize((field: Field): Field => {
  const { visibleWhen: _, ...rest } = withoutDefault(field);
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

type HostedMessage = MessageInitShape<typeof HostedSessionSchema>;

/** A visit, as far as a page shows it. */
type ShownVisit = Pick<HostedVisit, 'stored' | 'state' | 'permanent'> & {
  form: { id: string; createdBy: string; version: { definition: FormDefinition } };
  version: { formId: string; definition: FormDefinition; corrects?: { id: string; createdAt: Date } };
  session: Pick<Session, 'prefill' | 'partialAnswers'>;
  standing: Pick<HostedVisit['standing'], 'isSent'>;
};

/**
 * What a person sees after submitting: the texts of the definition that they filled, in their language if it has it,
 * and a copy of their answers without hidden ones. They are sent to `redirectUrl`, if there is one; or to the session's
 * `returnUrl` in its place, at once or by a link if the form has a message to show. Where the form has no language of
 * its own, the copy is in the one that the request's `Accept-Language` prefers.
 */
export function completionOf(original: FormDefinition, answers: Answers, to: Reader): Completion {
  const { form, redirectUrl, returnUrl = null, notFollowed = '', pictures = {} } = to;
  const preferred = preferredLanguages(to.requestHeader.get('accept-language') ?? '');
  const definition = translate(original, preferred);
  const { successMessage = '', locale = '', onePerRespondent = false } = definition.settings;
  const theme = themeToMessage(definition);
  const instants = new Set(definition.fields.flatMap(({ id, type }) => (type === 'datetime' ? [id] : [])));
  return {
    successMessage,
    redirectUrl: returnUrl === null ? redirectUrl : successMessage === '' ? returnUrl : '',
    returnUrl: successMessage === '' ? '' : (returnUrl ?? ''),
    formName: definition.name,
    notFollowed,
    once: onePerRespondent,
    linksAddresses: !isKeyless(form),
    locale,
    ...(theme !== undefined && { theme }),
    answers: answersInWords(definition, answers, { preferred }).map(({ fieldId, label, text }) => {
      const picture = ownValue(pictures, fieldId);
      const instant = instants.has(fieldId) ? ((ownValue(answers, fieldId) ?? '') as string) : '';
      return { label, text, instant, ...(picture !== undefined && { picture }) };
    }),
  };
}

/** The person who has submitted, where they are sent, and what was not followed. */
type Reader = {
  form: { createdBy: string };
  redirectUrl: string;
  returnUrl?: string | null;
  notFollowed?: string;
  /** Drawn signatures, by field id. */
  pictures?: Record<string, Uint8Array>;
  requestHeader: Headers;
};

type Completion = MessageInitShape<typeof EndingSchema>;
