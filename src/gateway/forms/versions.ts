import { z } from 'zod';
import { ApplyOutcome, FormsService, FormVersionSchema } from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { formNames } from '../../domain/definition/form-file.ts';
import { optional } from '../../domain/json/optional.ts';
import { formKeyPattern } from '../../domain/limits/limits.ts';
import { sendTagged } from '../../http/reply.ts';
import { change } from '../../http/reply-parts.ts';
import { flag, ifNoneMatch, pageQuery, schemaFormat, schemaTypes } from '../../http/schemas.ts';
import { from, shape, timeReply } from '../../http/shape.ts';
import { customRoute, listRoute, nameFile, type Route, readQuery, replyOf, route, tagged } from '../route.ts';
import type { RouteContext } from '../route-context.ts';
import { checkedDefinition, definitionBeside, definitionReply, form, webhookSecret } from './schemas.ts';

const { method: rpcs } = FormsService;

const versionFields = {
  id: z.string(),
  number: z.int().describe('Counts the form’s versions, from 1.'),
  checksum: z.string().describe('SHA-256 of the definition’s canonical JSON, in hex.'),
  breaking: z
    .boolean()
    .describe('Whether it was published although it breaks what the form’s `compatibility` promises.'),
  current: z.boolean().describe('Whether new sessions and submissions begin with it.'),
  created_at: timeReply,
};

const listedVersion = shape(FormVersionSchema, 'ListedFormVersion', versionFields);
const version = shape(FormVersionSchema, 'FormVersion', {
  ...versionFields,
  definition: from(({ definition }) => definitionReply(definition), definitionSchema),
});

const schemaQuery = z.object({ format: schemaFormat.prefault('json_schema') });

const schemaRoute = {
  query: schemaQuery,
  notModified: true as const,
  headers: ifNoneMatch,
  replyTypes: schemaTypes,
  handle: sendSchema,
};

/** A form as a file has it. */
const formFile = definitionBeside(
  {
    owner: optional(
      z.string().meta({ format: 'email' }),
      'The address that owns the form once it confirms by email.',
    ),
    managed_by: formNames.managed_by,
  },
  // Which URL a form keeps is for the service to say.
  { keptUrl: '' },
);

const publishQuery = z.object({
  allow_breaking: flag('Publishes also what the form’s `compatibility` refuses.'),
  expected_version_id: z
    .string()
    .default('')
    .describe('The version that the definition was made from: 409 if another is current.'),
});

const published = {
  form,
  version: listedVersion,
  webhook_secret: webhookSecret,
  changes: { ...change, schema: z.array(change.schema) },
};

const outcomes = ['created', 'published', 'updated', 'unchanged'] as const;

/** The routes of a form's versions. */
export const versionRoutes: Route[] = tagged('Forms', [
  route('post', '/v1/forms/:id/versions', rpcs.publishFormVersion, {
    shape: definitionSchema,
    // Which URL a form keeps is for the service to say.
    check: checkedDefinition({ keptUrl: '' }),
    summary: 'Publish a new definition of a published form; an unchanged one keeps its version',
    query: publishQuery,
    status: 201,
    errors: [409, 410],
    ...replyOf(rpcs.publishFormVersion.output, published),
  }),
  route('put', '/v1/forms/by-key/:key', rpcs.applyForm, {
    ...formFile,
    summary: 'Bring the form with a key to a definition: make, publish or change it, or nothing',
    segments: { key: z.string().regex(formKeyPattern) },
    query: publishQuery,
    errors: [409, 410],
    ...replyOf(rpcs.applyForm.output, {
      ...published,
      outcome: from(
        ({ outcome }) => outcomes[outcome - ApplyOutcome.CREATED] ?? 'updated',
        z.enum(outcomes).describe('What was done.'),
      ),
    }),
  }),
  listRoute('/v1/forms/:id/versions', rpcs.listFormVersions, {
    summary: 'List a form’s published versions, newest first',
    name: 'versions',
    query: pageQuery,
    item: listedVersion,
  }),
  route('get', '/v1/forms/:id/versions/:number', rpcs.getFormVersion, {
    summary: 'Read a published version with its definition',
    segments: { number: z.int().min(1) },
    apart: ['number'],
    input: (_, { request }) => ({ number: numberOf(request.params.number) }),
    ...replyOf(rpcs.getFormVersion.output, { version }),
  }),
  customRoute('get', '/v1/forms/:id/versions/:version/schema', rpcs.getAnswersSchema, {
    ...schemaRoute,
    summary: 'A schema of the answers to a version, from which clients get types',
    segments: { version: z.union([z.int().min(1), z.literal('current')]) },
  }),
  customRoute('get', '/v1/forms/by-key/:key/versions/current/schema', rpcs.getAnswersSchema, {
    ...schemaRoute,
    name: 'getAnswersSchemaByKey',
    summary: 'The same of the current version of the form with a key',
    segments: { key: z.string().regex(formKeyPattern) },
    errors: [404],
  }),
]);

/** `current` is also the draft of a form that was never published. */
async function sendSchema(context: RouteContext): Promise<void> {
  const { id: formId, request, response } = context;
  const { format } = readQuery(request, schemaQuery);
  const { version: segment = 'current', key = '' } = request.params;
  const version = segment === 'current' ? 0 : numberOf(segment) || UNKNOWN;
  const schema = await context.call(rpcs.getAnswersSchema, {
    formId,
    key: String(key),
    version,
    format,
  });
  nameFile(response, schema);
  sendTagged(request, response, schema.content);
}

/** A number that no version has. */
const UNKNOWN = -1;

/** The number in a path; 0, which no version has, for any other text. */
function numberOf(segment: unknown): number {
  return typeof segment === 'string' && /^[1-9]\d{0,8}$/.test(segment) ? Number(segment) : 0;
}
