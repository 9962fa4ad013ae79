import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AgentSchemaSchema } from '../../../gen/forms/v1/agent_schema_pb.js';
import { agentSchema } from '../../domain/answers/agent-schema.ts';
import type { Answers } from '../../domain/answers/answers.ts';
import { sampleAnswers } from '../../domain/answers/sample-answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import type { ServiceContext } from '../context.ts';

/** What an agent needs to fill a form, or what is left of it beside the answers in `held`. */
export async function agentSchemaToMessage(
  { forms }: Pick<ServiceContext, 'forms'>,
  described: Described,
  held: Answers = {},
): Promise<MessageInitShape<typeof AgentSchemaSchema>> {
  const { formId, versionId, definition } = described;
  const samples = await sampleAnswers(definition, forms.checkerOf(formId, definition));
  const { questions, jsonSchema, example } = agentSchema(definition, held, samples);
  return {
    formId,
    formVersionId: versionId,
    name: definition.name,
    description: definition.description ?? '',
    questions,
    jsonSchema,
    example,
  };
}

/** `versionId` is empty for a draft. */
type Described = { formId: string; versionId: string; definition: FormDefinition };
