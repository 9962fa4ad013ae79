import type { DescMethod } from '@bufbuild/protobuf';
import { z } from 'zod';
import type { Operation, Route } from './route.ts';

/** The API description (OpenAPI 3.1) of a table of routes, made of the schemas that serve. */
export function describeApi(routes: readonly Route[], { baseUrl, version, accessOf }: ApiFacts): OpenApi {
  const components = new Map<string, object>([['Error', errorSchema]]);
  const paths: OpenApi['paths'] = {};
  for (const { method, path, operation } of routes) {
    const template = path.replaceAll(/:(\w+)/g, '{$1}');
    paths[template] = {
      ...paths[template],
      [method]: operationOf(path, operation, accessIn(operation, accessOf), components),
    };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Headless form service',
      version,
      description: 'Forms as JSON, validated submissions, delivery by e-mail or signed webhook.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(routes.map(({ operation }) => operation.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(components),
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key, `hfs_…`.' } },
    },
  };
}

function operationOf(path: string, operation: Operation, access: Access, components: Components): object {
  const { name, tag, summary, status = 200 } = operation;
  const parameters = parametersOf(path, operation, components);
  const body = bodyOf(operation, components);
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(access.key === 'none' ? {} : { description: scopeWords(access) }),
    security: securityOf(access),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      [status]: { description: summary, content: replyOf(operation, components) },
      ...(operation.forms && status === 201
        ? { 303: { description: 'Where the HTML form sends its user' } }
        : {}),
      ...Object.fromEntries(errorsOf(path, operation, access).map((code) => [code, errorReply(code)])),
    },
  };
}

function parametersOf(
  path: string,
  { segments = {}, query, headers = {} }: Operation,
  components: Components,
): object[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = segments[name];
    const described = schema === undefined ? { type: 'string' } : schemaOf(schema, components);
    return { name, in: 'path', required: true, schema: described };
  });
  const { properties = {}, required = [] } = query ? schemaOf(query, components) : {};
  const inQuery = Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description === undefined ? {} : { description }),
    ...(required.includes(name) ? { required: true } : {}),
    schema,
  }));
  const inHeader = Object.entries(headers).map(([name, header]) => ({
    name,
    in: 'header',
    schema: schemaOf(header, components),
  }));
  return [...inPath, ...inQuery, ...inHeader];
}

function bodyOf(operation: Operation, components: Components): object | undefined {
  const { body, bodyOptional = false, bodyTypes = [], forms = [] } = operation;
  if (body === undefined && bodyTypes.length === 0) return undefined;
  const json = body === undefined ? {} : { 'application/json': { schema: schemaOf(body, components) } };
  const others = [...bodyTypes, ...forms].map((type) => [
    type,
    { schema: isForm(type) ? { type: 'object' } : {} },
  ]);
  return { required: !bodyOptional, content: { ...json, ...Object.fromEntries(others) } };
}

function replyOf({ reply, replyTypes = [], forms }: Operation, components: Components): object {
  return {
    ...(reply === undefined ? {} : { 'application/json': { schema: schemaOf(reply, components) } }),
    ...Object.fromEntries(replyTypes.map((type) => [type, {}])),
    ...(forms === undefined ? {} : { 'text/html': {} }),
  };
}

/** The statuses of errors that a route can answer: those its parts imply, and its own. */
function errorsOf(
  path: string,
  { rpc, query, headers, body, bodyTypes, forms, errors = [] }: Operation,
  { key }: Access,
): number[] {
  const readsBody = body !== undefined || bodyTypes !== undefined;
  const codes = [
    ...errors,
    500,
    503,
    ...(rpc === undefined ? [] : [429]),
    ...(key === 'none' ? [] : [401]),
    ...(path.includes('/:id') ? [404] : []),
    ...(query || headers || readsBody ? [400] : []),
    ...(readsBody || forms ? [413, 415, 422] : []),
  ];
  return [...new Set(codes)].sort((a, b) => a - b);
}

function errorReply(code: number): object {
  const schema = { $ref: '#/components/schemas/Error' };
  return { description: errorWords[code] ?? 'Refused', content: { 'application/json': { schema } } };
}

const errorWords: Record<number, string> = {
  400: 'The request can’t be read',
  401: 'No key, a wrong key, a key without the scope, a wrong token, or an origin that may not post',
  404: 'There is no such thing, or it is another project’s',
  409: 'The state of the thing forbids it',
  410: 'Expired, closed or archived',
  413: 'Too large',
  415: 'Another media type than the route reads',
  422: 'The request can be read but does not fit; `details` names all problems',
  429: 'Too many calls; `Retry-After` says when to call again',
  500: 'A fault of the service; the message holds the request id that is in the log',
  503: 'Not available just now; `Retry-After` says when to call again',
};

/** A schema as the document shows it. One with an id becomes a component. */
function schemaOf(schema: z.ZodType, components: Components): JsonSchema {
  const made = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override: withoutNoise });
  const {
    $schema: _,
    $defs = {},
    ...own
  } = JSON.parse(JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/'));
  for (const [name, definition] of Object.entries<JsonSchema>($defs))
    components.set(name, withoutId(definition));
  if (typeof own.id !== 'string') return own;
  components.set(own.id, withoutId(own));
  return { $ref: `#/components/schemas/${own.id}` };
}

/** Leaves out long patterns that say no more than the format or the type beside them. */
function withoutNoise({ jsonSchema }: { jsonSchema: { [key: string]: unknown } }): void {
  const { format, type } = jsonSchema;
  if (type === 'integer' || format === 'date' || format === 'date-time') delete jsonSchema.pattern;
}

function withoutId(schema: JsonSchema): JsonSchema {
  const copy = { ...schema };
  delete copy.id;
  return copy;
}

function accessIn({ rpc, managed }: Operation, accessOf: AccessOf): Access {
  if (rpc === undefined) return { key: 'none' };
  const access = accessOf(rpc);
  return managed ? (access.managed ?? access) : access;
}

function securityOf({ key }: Access): object[] {
  switch (key) {
    case 'none':
      return [];
    case 'optional':
      return [{}, { key: [] }];
    case 'required':
      return [{ key: [] }];
    default:
      return key satisfies never;
  }
}

function scopeWords({ key, scope }: Access): string {
  return key === 'optional' ? `A key needs the scope \`${scope}\`.` : `Scope: \`${scope}\`.`;
}

const isForm = (type: string) =>
  type === 'multipart/form-data' || type === 'application/x-www-form-urlencoded';

const detailSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A dotted path into the input, such as `fields.0.id`.' },
    code: { type: 'string' },
    message: { type: 'string' },
  },
  required: ['path', 'code', 'message'],
};

const errorSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { enum: ['validation_failed', 'not_found', 'unauthorized', 'internal_error'] },
        message: { type: 'string' },
        details: { type: 'array', items: detailSchema },
        reason: { type: 'string', description: 'The finer word beside the code.' },
        submission_id: { type: 'string', description: 'The submission that a session already has.' },
      },
      required: ['code', 'message', 'details', 'reason'],
    },
  },
  required: ['error'],
};

type ApiFacts = { baseUrl: string; version: string; accessOf: AccessOf };

/** Who may call an RPC, from the authorization table of the RPCs. */
export type AccessOf = (rpc: DescMethod) => Access;

/** The part of an entry of that table that the API description shows. */
type Access = { key: 'none' | 'optional' | 'required'; scope?: string; managed?: Access };

type Components = Map<string, object>;
type JsonSchema = {
  [key: string]: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  id?: unknown;
};

/** An OpenAPI document. */
export type OpenApi = {
  openapi: string;
  paths: Record<string, Record<string, object>>;
  components: { schemas: Record<string, object>; securitySchemes: object };
  [key: string]: unknown;
};
