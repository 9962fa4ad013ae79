import type { z } from 'zod';
import { takingPrivateReceivers } from '../../domain/definition/delivery.ts';
import { type Access, policyOf } from '../../domain/methods.ts';
import { formTypes } from '../../http/multipart.ts';
import type { Operation, Route } from '../route.ts';
import { formExamples, requestExamples } from './examples.ts';
import { errorReplies, headers, page, replyHeaders } from './replies.ts';
import { createSchemas, type Schemas } from './schemas.ts';
import { type DescribedWebhook, describeWebhooks } from './webhooks.ts';

/** The API description (OpenAPI 3.1) of a table of routes, made of the schemas that serve. */
export function describeApi(routes: readonly Route[], facts: ApiFacts): OpenApi {
  const { baseUrl, version, allowPrivateUrls } = facts;
  const schemas = createSchemas(allowPrivateUrls ? takingPrivateReceivers : undefined);
  const paths: OpenApi['paths'] = {};
  for (const { method, path, operation } of routes) {
    const template = path.replaceAll(/:(\w+)/g, '{$1}');
    paths[template] = {
      ...paths[template],
      [method]: operationOf(path, operation, schemas),
    };
  }
  const described = { paths, webhooks: describeWebhooks(schemas) };
  const { document, components } = schemas.withComponents(described);
  return {
    openapi: '3.1.1',
    info: {
      title: 'Headless form service',
      version,
      description: 'Forms as JSON, validated submissions, delivery by email or signed webhook.',
      contact: { name: 'The operator of this service', url: baseUrl },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(routes.map(({ operation }) => operation.tag))].map((name) => ({
      name,
      description: tags.get(name),
    })),
    ...document,
    components: {
      schemas: components,
      headers,
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key, `hfs_…`.' } },
    },
  };
}

function operationOf(path: string, operation: Operation, schemas: Schemas): object {
  const { name, tag, summary, rpc, status = 200 } = operation;
  const access: Access = rpc === undefined ? { key: 'none' } : policyOf(rpc);
  const parameters = parametersOf(path, operation, schemas);
  const body = bodyOf(operation, schemas);
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: accessWords(access),
    security: security[access.key],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      [status]: {
        description: summary,
        headers: replyHeaders(status, operation),
        content: replyOf(operation, schemas),
      },
      ...(operation.forms && { 303: sentOn(operation) }),
      ...(operation.checked && { 200: checkedReply(operation, operation.checked, schemas) }),
      ...(operation.notModified && {
        304: { description: 'As `If-None-Match` says', headers: replyHeaders(304, operation) },
      }),
      ...errorReplies(path, operation, schemas),
    },
  };
}

function sentOn(operation: Operation): object {
  return {
    description: 'Where the HTML form sends its user',
    headers: replyHeaders(303, operation),
    // A note with a link, for programs that don't follow it. Generators give a reply without a body no type of one.
    content: { 'text/html': page, 'text/plain': page },
  };
}

function checkedReply(operation: Operation, reply: z.ZodType, schemas: Schemas): object {
  return {
    description: 'With `check=true`: the answers would be accepted',
    headers: replyHeaders(200, operation),
    content: { 'application/json': { schema: schemas.output(reply) } },
  };
}

function parametersOf(
  path: string,
  { segments = {}, query, headers = {} }: Operation,
  schemas: Schemas,
): object[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = segments[name];
    const described = schema === undefined ? { type: 'string' } : schemas.input(schema);
    return { name, in: 'path', required: true, schema: described };
  });
  const { properties = {}, required = [] } = query ? schemas.input(query) : {};
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description === undefined ? {} : { description }),
    ...(required.includes(name) ? { required: true } : {}),
    ...(schema.type === 'object' && { style: 'deepObject', explode: true }),
    schema,
  }));
  const inHeader = Object.entries(headers).map(([name, header]) => ({
    name,
    in: 'header',
    schema: schemas.input(header),
  }));
  return [...inPath, ...inQuery, ...inHeader];
}

function bodyOf(operation: Operation, schemas: Schemas): object | undefined {
  const { name, body, bodyOptional = false, bodyTypes = [], forms = [] } = operation;
  if (body === undefined && bodyTypes.length === 0) return undefined;
  const example = requestExamples[name];
  const json = body === undefined ? {} : { 'application/json': { schema: schemas.input(body), example } };
  const others = [...bodyTypes, ...forms].map((type) => [
    type,
    { schema: schemaOfType(type, operation), ...exampleOf(name, type) },
  ]);
  return { required: !bodyOptional, content: { ...json, ...Object.fromEntries(others) } };
}

/** A file is the part `file` of a multipart body; the inputs of a form are its answers. */
function schemaOfType(type: string, { body }: Operation): object {
  if (!isForm(type)) return { ...bytes, description: 'The bytes of the file, whatever its media type.' };
  if (body !== undefined) return { type: 'object', additionalProperties: true };
  const field = {
    type: 'string',
    description: 'The id of the file field, before the file; unless the query has it.',
  };
  const file = { ...bytes, description: 'The file, with its name.' };
  return { type: 'object', properties: { field, file }, required: ['file'] };
}

/** Generators know the bytes of a file by the format, newer ones by the media type. */
const bytes = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' };

function exampleOf(name: string, type: string): object {
  const example = formExamples[name];
  return isForm(type) && example !== undefined ? { example } : {};
}

function replyOf({ reply, replyTypes = [], forms }: Operation, schemas: Schemas): object {
  return {
    ...(reply === undefined ? {} : { 'application/json': { schema: schemas.output(reply) } }),
    ...Object.fromEntries(replyTypes.map((type) => [type, {}])),
    ...(forms === undefined ? {} : { 'text/html': page }),
  };
}

const security: Record<Access['key'], object[]> = {
  none: [],
  optional: [{}, { key: [] }],
  required: [{ key: [] }],
};

function accessWords({ key, scope }: Access): string {
  if (key === 'none') return 'Needs no key.';
  return key === 'optional' ? `A key needs the scope \`${scope}\`.` : `Scope: \`${scope}\`.`;
}

const isForm = (type: string) => formTypes.some((known) => known === type);

const tags = new Map<string | undefined, string>([
  ['Forms', 'Make forms, publish them and describe what they ask.'],
  ['Submissions', 'Send answers to forms, and read what was sent.'],
  ['Sessions', 'Forms to be filled once, by a person at a link or by a program.'],
  ['Webhooks', 'Addresses that are told of events by signed requests.'],
  ['Deliveries', 'What was sent to webhooks and by email, and sending it again.'],
  ['Uploads', 'Files that are answers.'],
  ['Keys', 'API keys and what they may do.'],
  ['Audit', 'Who did what.'],
  ['Health', 'Whether the service works.'],
]);

/** `allowPrivateUrls`: events may be sent to private addresses. */
type ApiFacts = { baseUrl: string; version: string; allowPrivateUrls: boolean };

/** An OpenAPI document. */
export type OpenApi = {
  openapi: string;
  paths: Record<string, Record<string, object>>;
  /** What the service sends, by event. */
  webhooks: Record<string, DescribedWebhook>;
  components: { schemas: Record<string, object>; headers: object; securitySchemes: object };
  [key: string]: unknown;
};
