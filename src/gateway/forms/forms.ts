import { z } from 'zod';
import {
  type Form,
  FormSchema,
  FormsService,
  type GetAgentSchemaResponse,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { formNames } from '../../domain/definition/form-file.ts';
import { settingsSchema } from '../../domain/definition/settings.ts';
import { fieldSchema } from '../../domain/fields/field.ts';
import { optional } from '../../domain/json/optional.ts';
import { change } from '../../http/reply-parts.ts';
import { flag, ifNoneMatch, jsonObject, pageQuery, schemaFormat, schemaTypes } from '../../http/schemas.ts';
import { present, shape, textOrNullReply } from '../../http/shape.ts';
import { done, listRoute, type Route, replyOf, route, tagged } from '../route.ts';
import {
  agentSchemaReply,
  checkedDefinition,
  definitionBeside,
  definitionReply,
  emailBody,
  form,
  formHead,
  formId,
  listedForm,
  missingOf,
  missingTranslationsReply,
  preferredLanguage,
  preferredLanguageOf,
} from './schemas.ts';

const { method: rpcs } = FormsService;

/** A new form: its definition, and what names it in files. */
const newForm = definitionBeside(formNames);

const draft = shape(FormSchema, '', formHead);

const createdReply = z.object({
  form: draft.schema.extend({
    activate_url: z.string().describe('Relative path; the token in it works once, for 7 days.'),
    missing_translations: missingTranslationsReply,
  }),
});

const wholeSchemaReply = z.object({
  form: z.object({
    id: formId,
    name: z.string(),
    slug: z.string(),
    description: z.string().nullable(),
    version_id: z.string().nullable(),
  }),
  fields: z.array(fieldSchema),
  settings: settingsSchema,
  json_schema: jsonObject.describe('JSON Schema 2020-12 of the answers object.'),
  submit: z.object({ method: z.literal('POST'), url: z.string() }),
});

const agentSchemaQuery = z.object({
  brief: flag('Whether to describe the form in as few words as a model needs. Default: false.'),
  version: optional(
    z.coerce.number().int().min(1),
    'The number of a published version. Default: the current one, or the draft.',
  ),
});

/** The routes of the interface's forms, in its order, and those added to them. */
export const formRoutes: Route[] = tagged('Forms', [
  route('post', '/api/forms/create', rpcs.createForm, {
    ...newForm,
    summary: 'Make a draft; activate_url publishes it',
    status: 201,
    errors: [404, 409],
    reply: createdReply,
    answer: ({ form, activationToken }) => ({ form: createdOf(present(form), activationToken) }),
  }),
  route('post', '/v1/forms/validate', rpcs.validateForm, {
    shape: definitionSchema,
    // Which URL a form keeps is for the service to say.
    check: (raw, context) =>
      checkedDefinition('against' in context.request.query ? { keptUrl: '' } : {})(raw, context),
    summary: 'Check a definition; nothing is stored',
    query: z.object({
      against: z
        .string()
        .default('')
        .describe('A published form: the reply says what the definition would change as its next version.'),
      format: optional(
        schemaFormat,
        'Answers with types of the answers instead, as they would be after publication.',
      ),
      key: z.string().default('').describe('Of a new form: by which generated code is named.'),
    }),
    apart: ['against', 'format'],
    input: ({ query: { against, format } }) => ({
      againstFormId: against,
      ...(format !== undefined && { schemaFormat: format }),
    }),
    replyTypes: schemaTypes,
    file: ({ schema }) => schema,
    errors: [404, 409, 410],
    reply: z.object({
      ok: z.literal(true),
      form: definitionSchema,
      missing_translations: missingTranslationsReply,
      changes: optional(
        z.array(change.schema),
        'With `against`: what it changes of the version that is current.',
      ),
      breaking: optional(z.boolean(), 'With `against`: whether the form’s `compatibility` refuses it.'),
    }),
    answer: ({ definition, missingTranslations, changes, breaking }, { request }) => ({
      ok: true as const,
      form: definitionReply(definition),
      ...missingOf({ missingTranslations }),
      ...('against' in request.query && { changes: changes.map((each) => change.of(each)), breaking }),
    }),
  }),
  route('get', '/v1/forms/:id/agent-schema', rpcs.getAgentSchema, {
    notModified: true,
    summary: 'What a form asks, for agents and renderers',
    headers: { ...preferredLanguage, ...ifNoneMatch },
    query: agentSchemaQuery,
    apart: ['brief'],
    input: ({ query: { brief } }, { request, response }) => ({
      includeDefinition: !brief,
      language: preferredLanguageOf(request, response),
    }),
    reply: z.union([wholeSchemaReply, agentSchemaReply.schema]),
    answer: ({ schema, ...whole }, { options }) =>
      schema === undefined ? wholeSchemaOf(whole, options.baseUrl) : agentSchemaReply.of(schema),
  }),
  listRoute('/v1/forms', rpcs.listForms, {
    summary: 'List the project’s forms, newest first',
    name: 'forms',
    query: pageQuery.extend({
      key: optional(z.string().min(1), 'Only the form with this key.'),
      slug: optional(z.string().min(1), 'Only forms with this slug, which several may have.'),
      managed_by: optional(z.string().min(1), 'Only forms that this keeps.'),
    }),
    item: listedForm,
  }),
  route('get', '/v1/forms/:id', rpcs.getForm, {
    summary: 'Read a form with its current definition',
    query: z.object({
      qr_svg: flag('Whether `share` has the QR code itself, as SVG, not only its address. Default: false.'),
    }),
    apart: ['qr_svg'],
    input: ({ query }) => ({ includeQrSvg: query.qr_svg }),
    ...replyOf(rpcs.getForm.output, { form }),
  }),
  route('patch', '/v1/forms/:id', rpcs.updateForm, {
    summary: 'Give a form its key, once, or say who keeps its definition',
    body: z
      .strictObject({
        key: formNames.key,
        managed_by: formNames.managed_by.unwrap().nullable().exactOptional(),
      })
      .meta({ id: 'FormUpdate' }),
    errors: [409],
    ...replyOf(rpcs.updateForm.output, { form: listedForm }),
  }),
  route('post', '/v1/forms/:id/archive', rpcs.archiveForm, {
    summary: 'End a form; what was submitted stays',
    ...replyOf(rpcs.archiveForm.output, { form: listedForm }),
  }),
  route('delete', '/v1/forms/:id', rpcs.deleteForm, {
    summary: 'Delete an archived form with everything of it',
    errors: [409],
    ...done,
  }),
  route('post', '/v1/forms/:id/owner', rpcs.changeFormOwner, {
    summary: 'Ask another address to own the form; it does once it confirms by email',
    body: emailBody,
    status: 202,
    errors: [409, 410],
    ...done,
  }),
]);

function createdOf(made: Form, token: string) {
  const activateUrl = `/api/forms/${made.id}/activate?token=${encodeURIComponent(token)}`;
  return { ...draft.of(made), activate_url: activateUrl, ...missingOf(made) };
}

function wholeSchemaOf(
  { form: message, jsonSchema }: Omit<GetAgentSchemaResponse, 'schema'>,
  baseUrl: string,
): z.input<typeof wholeSchemaReply> {
  const { id, name, slug, currentVersionId, definition } = present(message);
  const { description = null, fields, settings = {} } = definitionReply(definition);
  return {
    form: { id, name, slug, description, version_id: textOrNullReply(currentVersionId) },
    fields,
    settings,
    json_schema: jsonSchema ?? {},
    submit: { method: 'POST', url: `${baseUrl}/api/forms/${id}/submissions` },
  };
}
