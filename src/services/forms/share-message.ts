import type { MessageInitShape } from '@bufbuild/protobuf';
import type { FormSchema } from '../../../gen/forms/v1/forms_pb.js';
import { compileForm } from '../../domain/answers/answers.ts';
import { sampleAnswers } from '../../domain/answers/sample-answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { type Share, shareOf } from '../../domain/definition/share.ts';
import type { FormSummary } from '../../store/forms/forms.ts';
import type { ServiceContext } from '../context.ts';
import { formToMessage } from './form-message.ts';

/** A form with its definition as its owner sees it, and how to share it if it is published. */
export async function sharedFormToMessage(
  context: Pick<ServiceContext, 'settings'>,
  form: FormSummary,
  definition: FormDefinition,
): Promise<MessageInitShape<typeof FormSchema>> {
  if (form.status !== 'published') return formToMessage(form, definition);
  return formToMessage(form, definition, await shareOfForm(context, form.id, definition));
}

/** How to share a published form. */
export async function shareOfForm(
  { settings: { baseUrl, hostedUrl } }: Pick<ServiceContext, 'settings'>,
  formId: string,
  definition: FormDefinition,
): Promise<Share> {
  return shareOf(formId, definition, { baseUrl, hostedUrl, sample: await exampleOf(definition) });
}

/** Answers for an example. Of texts with a pattern there are none: to match one can take seconds. */
function exampleOf(definition: FormDefinition) {
  const fields = definition.fields.filter(
    ({ answeredBy, required, pattern }) =>
      answeredBy !== 'human' && (answeredBy !== 'agent' || required) && pattern === undefined,
  );
  const plain = { ...definition, fields };
  return sampleAnswers(plain, compileForm(plain).checkAnswers);
}
