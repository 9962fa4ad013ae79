import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EndingSchema } from '../../gen/forms/v1/submissions_pb.js';
import type { Answers } from '../domain/answers.ts';
import { answersInWords } from '../domain/answers-in-words.ts';
import type { FormDefinition } from '../domain/definition.ts';
import { definitionToMessage } from '../domain/definition-message.ts';

/**
 * What a person sees after submitting: the words of `definition`, which they filled, and a copy of
 * their answers without hidden ones. `redirectUrl` empty shows a page.
 */
export function endingOf(definition: FormDefinition, answers: Answers, redirectUrl: string): Ending {
  const { successMessage = '', locale } = definition.settings;
  const theme = definitionToMessage(definition).settings?.theme;
  return {
    successMessage,
    redirectUrl,
    formName: definition.name,
    locale,
    ...(theme !== undefined && { theme }),
    answers: answersInWords(definition, answers).map(({ label, text }) => ({ label, text })),
  };
}

type Ending = MessageInitShape<typeof EndingSchema>;
