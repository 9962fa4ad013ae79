import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EndingSchema } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import type { Answers } from '../../domain/answers/answers.ts';
import { answersInWords } from '../../domain/answers/answers-in-words.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { themeToMessage } from '../../domain/definition/definition-proto.ts';
import { translate } from '../../domain/definition/translate.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';

/**
 * What a person sees after submitting: the texts of the definition that they filled, in their language if it has it,
 * and a copy of their answers without hidden ones. They are sent to `redirectUrl`, if there is one; or to the session's
 * `returnUrl` in its place, at once or by a link if the form has a message to show. Where the form has no language of
 * its own, the copy is in the one that the request's `Accept-Language` prefers.
 */
export function completionOf(original: FormDefinition, answers: Answers, to: Reader): Completion {
  const { redirectUrl, returnUrl = null } = to;
  const preferred = preferredLanguages(to.requestHeader.get('accept-language') ?? '');
  const definition = translate(original, preferred);
  const { successMessage = '', locale = '' } = definition.settings;
  const theme = themeToMessage(definition);
  return {
    successMessage,
    redirectUrl: returnUrl === null ? redirectUrl : successMessage === '' ? returnUrl : '',
    returnUrl: successMessage === '' ? '' : (returnUrl ?? ''),
    formName: definition.name,
    locale,
    ...(theme !== undefined && { theme }),
    answers: answersInWords(definition, answers, { preferred }).map(({ label, text }) => ({ label, text })),
  };
}

/** Whoever has submitted, and where they are to be sent. */
type Reader = { redirectUrl: string; returnUrl?: string | null; requestHeader: Headers };

type Completion = MessageInitShape<typeof EndingSchema>;
