import type { Form } from '../../gen/forms/v1/forms_pb.js';
import { checkDefinition, definitionSchema } from '../domain/definition/definition.ts';
import { definitionToMessage } from '../domain/definition/definition-message.ts';
import { type Checked, type Exchange, type Route, route } from './route.ts';
import { okReply, pageOf, pageQuery, present, textOrNull, timeOf } from './schemas/common.ts';
import {
  agentSchemaOf,
  agentSchemaReply,
  createdReply,
  definitionOf,
  emailBody,
  formOf,
  formReply,
  formsReply,
  listedFormOf,
  listedFormReply,
  statusOf,
  validatedReply,
  versionReply,
} from './schemas/forms.ts';

const tag = 'Forms';

/** What the routes that take a definition share. */
const definitionBody = { tag, shape: definitionSchema, check: checkBody };

/** The routes of the interface's forms, in its order, and those added to them. Activation has its own file. */
export const formRoutes: Route[] = [
  route('post', '/api/forms/create', {
    ...definitionBody,
    name: 'createForm',
    summary: 'Make a draft; activate_url publishes it',
    access: { optional: 'forms:write' },
    call: ({ forms }) => forms.createForm,
    input: ({ body }) => ({ definition: body }),
    refused: ({ forms }, _id, options) => forms.createForm({}, options),
    status: 201,
    reply: createdReply,
    answer: ({ form, activationToken }) => ({ form: createdOf(present(form), activationToken) }),
  }),
  route('post', '/v1/forms/validate', {
    ...definitionBody,
    name: 'validateForm',
    summary: 'Check a definition; nothing is stored',
    access: 'forms:read',
    call: ({ forms }) => forms.validateForm,
    input: ({ body }) => ({ definition: body }),
    refused: ({ forms }, _id, options) => forms.validateForm({}, options),
    reply: validatedReply,
    answer: ({ definition }) => ({ ok: true as const, form: definitionOf(definition) }),
  }),
  route('get', '/v1/forms/:id/agent-schema', {
    name: 'getAgentSchema',
    tag,
    summary: 'What a form asks, for agents and renderers',
    access: 'forms:read',
    call: ({ forms }) => forms.getAgentSchema,
    input: ({ id }) => ({ formId: id }),
    reply: agentSchemaReply,
    answer: (response, { baseUrl }) => agentSchemaOf(response, baseUrl),
  }),
  route('get', '/v1/forms', {
    name: 'listForms',
    tag,
    summary: 'List the project’s forms, newest first',
    access: 'forms:read',
    query: pageQuery,
    call: ({ forms }) => forms.listForms,
    input: ({ query }) => pageOf(query),
    refused: ({ forms }, _id, options) => forms.listForms({ pageSize: -1 }, options),
    reply: formsReply,
    answer: ({ forms, nextPageToken }) => ({
      forms: forms.map(listedFormOf),
      next_cursor: textOrNull(nextPageToken),
    }),
  }),
  route('get', '/v1/forms/:id', {
    name: 'getForm',
    tag,
    summary: 'Read a form with its current definition',
    access: 'forms:read',
    call: ({ forms }) => forms.getForm,
    input: ({ id }) => ({ formId: id }),
    reply: formReply,
    answer: ({ form }) => ({ form: formOf(form) }),
  }),
  route('post', '/v1/forms/:id/versions', {
    ...definitionBody,
    name: 'publishFormVersion',
    summary: 'Publish a new definition of a published form; an unchanged one keeps its version',
    access: 'forms:write',
    call: ({ forms }) => forms.publishFormVersion,
    input: ({ id, body }) => ({ formId: id, definition: body }),
    refused: ({ forms }, id, options) => forms.publishFormVersion({ formId: id }, options),
    status: 201,
    errors: [409, 410],
    reply: versionReply,
    answer: ({ form, version, webhookSecret }) => ({
      form: formOf(form),
      version: {
        id: present(version).id,
        number: present(version).number,
        checksum: present(version).checksum,
        created_at: timeOf(version?.createTime),
      },
      ...(webhookSecret === '' ? {} : { webhook_secret: webhookSecret }),
    }),
  }),
  route('post', '/v1/forms/:id/archive', {
    name: 'archiveForm',
    tag,
    summary: 'End a form; what was submitted stays',
    access: 'forms:write',
    call: ({ forms }) => forms.archiveForm,
    input: ({ id }) => ({ formId: id }),
    reply: listedFormReply,
    answer: ({ form }) => ({ form: listedFormOf(present(form)) }),
  }),
  route('post', '/v1/forms/:id/owner', {
    name: 'changeFormOwner',
    tag,
    summary: 'Ask another address to own the form; it does once it confirms by mail',
    access: 'forms:write',
    body: emailBody,
    call: ({ forms }) => forms.changeFormOwner,
    input: ({ id, body }) => ({ formId: id, email: body.email }),
    refused: ({ forms }, id, options) => forms.changeFormOwner({ formId: id, email: '' }, options),
    status: 202,
    errors: [409, 410],
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
];

/**
 * Checks a definition before it becomes a message, which has no place for unknown properties and
 * wrong types. The service checks it again; who is keyless is for it to say, and what is asked here
 * only serves to name all problems at once.
 */
function checkBody(raw: unknown, { request, allowPrivateUrls }: Exchange): Checked<Definition> {
  const keyless = !/^bearer /i.test(request.headers.authorization ?? '');
  const checked = checkDefinition(raw, { keyless, allowPrivateUrls });
  if (!checked.ok) return checked;
  const message = definitionToMessage(checked.definition);
  const channel = message.delivery?.channel;
  if (channel?.case === 'webhook') channel.value.secret = checked.deliverySecret ?? '';
  return { ok: true, value: message };
}

function createdOf({ id, name, slug, status }: Form, token: string) {
  const activateUrl = `/api/forms/${id}/activate?token=${encodeURIComponent(token)}`;
  return { id, name, slug, status: statusOf(status), activate_url: activateUrl };
}

type Definition = ReturnType<typeof definitionToMessage>;
