import { z } from 'zod';
import {
  CreatorType,
  type Form,
  FormSchema,
  FormStatus,
  FormsService,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { messageFrom } from '../../domain/messages.ts';
import { present, shape, textOrNullReply } from '../../http/shape.ts';
import { defineTool, jsonObject, type Tool, type ToolContext } from '../tool.ts';
import {
  cursor,
  definition,
  definitionAgain,
  definitionOf,
  formId,
  idempotencyKey,
  language,
  limit,
  newDefinitionOf,
  nextCursor,
} from './schemas.ts';

const { method: rpcs } = FormsService;

/** What is known of every form. */
export const form = shape(FormSchema, '', {
  id: z.string(),
  name: z.string(),
  status: z.enum(['draft', 'published', 'archived']),
  current_version_id: z.string().nullable(),
});

/** The tools that make and read forms. */
export const formTools: Tool[] = [
  defineTool({
    name: 'validate_form',
    title: 'Check a form definition',
    description:
      'Checks a form definition and names every problem; nothing is stored. Use it before create_form or ' +
      'publish_form_version when unsure. With detail, it returns the definition with every default filled in.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.validateForm]],
    input: z.strictObject({ definition: definitionAgain, detail: z.boolean().default(false) }),
    output: z.looseObject({ ok: z.boolean(), definition: jsonObject.optional() }),
    async run(input, { call, allowPrivateUrls, keyId }) {
      const checked = newDefinitionOf(input.definition, { allowPrivateUrls, keyId });
      const reply = await call(rpcs.validateForm, { definition: checked });
      const normalized = definitionFromMessage(present(reply.definition));
      return { facts: { ok: true, ...(input.detail && { definition: normalized }) } };
    },
  }),
  defineTool({
    name: 'create_form',
    title: 'Create a form',
    description:
      'Makes a draft of a form, to be answered many times; ask_person asks a question once. It is live only after activate_form, or after a person has opened activate_url ' +
      'and given an email address. Give fields that only a person may answer answeredBy: human, and those that you ' +
      'will fill yourself answeredBy: agent.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
    rpcs: [[rpcs.createForm]],
    input: z.strictObject({ definition, idempotency_key: idempotencyKey }),
    output: z.looseObject({
      form: form.schema.loose(),
      activation_token: z.string().describe('Works once, for 7 days.'),
      activate_url: z.string().describe('For a person, who gives the address there.'),
    }),
    async run(input, { call, baseUrl, ...exchange }) {
      const asked = { ...input, definition: newDefinitionOf(input.definition, exchange) };
      const message = messageFrom(rpcs.createForm.input, asked);
      const { form: draft, activationToken: token } = await call(rpcs.createForm, message);
      const made = present(draft);
      const path = `/api/forms/${made.id}/activate?token=${encodeURIComponent(token)}`;
      return {
        facts: { form: form.of(made), activation_token: token, activate_url: baseUrl + path },
        next: ['Publish it: activate_form with this token and the email address of its owner.'],
      };
    },
  }),
  defineTool({
    name: 'activate_form',
    title: 'Publish a draft',
    description:
      'Publishes a draft with its activation_token. The address becomes its owner and is asked by email to confirm, ' +
      'so give one that belongs to the person you work for.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
    rpcs: [[rpcs.activateForm]],
    input: z.strictObject({
      form_id: formId,
      activation_token: z.string().min(1).describe('From create_form.'),
      email: z.string().meta({ format: 'email' }).describe('The owner’s email address.'),
    }),
    output: z.looseObject({
      form: form.schema.loose(),
      page_url: z.string().nullable().describe('The form’s public page; null if it has none.'),
      webhook_secret: z.string().optional(),
    }),
    async run(input, { call }) {
      const activated = await call(rpcs.activateForm, messageFrom(rpcs.activateForm.input, input));
      return {
        facts: {
          form: form.of(activated.form),
          page_url: textOrNullReply(present(activated.form).share?.pageUrl ?? ''),
          ...(activated.webhookSecret !== '' && { webhook_secret: activated.webhookSecret }),
        },
        next: [
          activated.message,
          'The form is live: submit_answers for your own, ask_person for those of a person.',
        ],
      };
    },
  }),
  defineTool({
    name: 'publish_form_version',
    title: 'Change a published form',
    description:
      'Publishes a new definition of a published form, which replaces the one before. Sessions that are open keep ' +
      'the version that they began with. Read the present definition first: get_form with detail: definition.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    rpcs: [[rpcs.publishFormVersion]],
    input: z.strictObject({ form_id: formId, definition: definitionAgain, idempotency_key: idempotencyKey }),
    output: z.looseObject({
      form: form.schema.loose(),
      version: z.int().describe('Counted from 1.'),
      webhook_secret: z.string().optional(),
    }),
    async run(input, { call, ...exchange }) {
      const asked = { ...input, definition: definitionOf(input.definition, exchange) };
      const message = messageFrom(rpcs.publishFormVersion.input, asked);
      const published = await call(rpcs.publishFormVersion, message);
      return {
        facts: {
          form: form.of(published.form),
          version: present(published.version).number,
          ...(published.webhookSecret !== '' && { webhook_secret: published.webhookSecret }),
        },
      };
    },
  }),
  defineTool({
    name: 'list_forms',
    title: 'List forms',
    description: 'Lists the forms of the project, newest first. get_form tells what one of them asks.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.listForms]],
    input: z.strictObject({ limit, cursor }),
    output: z.looseObject({ forms: z.array(form.schema.loose()), next_cursor: nextCursor }),
    async run(input, { call }) {
      const { forms, nextPageToken } = await call(rpcs.listForms, {
        pageSize: input.limit,
        pageToken: input.cursor ?? '',
      });
      return {
        facts: { forms: forms.map(form.of), next_cursor: textOrNullReply(nextPageToken) },
        ...(forms.some(isByStranger) && { untrusted: ['forms[].name'] }),
      };
    },
  }),
  defineTool({
    name: 'get_form',
    title: 'Read a form',
    description:
      'Tells what a form asks: its questions in words, the JSON Schema of the answers that a tool may give (what only ' +
      'a person may answer is readOnly), and an example. With detail: definition, the whole definition instead.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.getForm, rpcs.getAgentSchema]],
    input: z.strictObject({
      form_id: formId,
      detail: z.enum(['questions', 'definition']).default('questions'),
      language,
    }),
    output: z.looseObject({
      form: form.schema.loose(),
      description: z.string().optional(),
      questions: z.array(z.string()).optional(),
      json_schema: jsonObject.optional(),
      example: jsonObject.optional(),
      definition: jsonObject.optional(),
    }),
    async run({ form_id: id, detail, language: wanted }, { call }) {
      const there = present((await call(rpcs.getForm, { formId: id })).form);
      const described = detail === 'definition' ? wholeOf(there) : await questionsOf(id, call, wanted);
      return {
        facts: { form: form.of(there), ...described },
        ...(there.status === FormStatus.DRAFT && { next: ['This form is a draft; call activate_form.'] }),
        ...(isByStranger(there) && { untrusted: ['form.name', ...Object.keys(described)] }),
      };
    },
  }),
];

/** What a form asks, in as few words as a model needs. */
export async function questionsOf(formId: string, call: ToolContext['call'], language = '') {
  const { schema } = await call(rpcs.getAgentSchema, { formId, language });
  const { description, questions, jsonSchema, example } = present(schema);
  return {
    ...(description !== '' && { description }),
    questions: questions.map(({ text }) => text),
    json_schema: jsonSchema ?? {},
    example: example ?? {},
  };
}

/** Whether somebody without a key wrote the texts of a form. */
export function isByStranger({ createdBy }: Form): boolean {
  return createdBy?.type === CreatorType.PUBLIC;
}

function wholeOf({ definition: message }: Form): { definition: unknown } {
  return { definition: definitionFromMessage(present(message)) };
}
