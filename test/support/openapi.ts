import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { describeApi, type OpenApi } from '../../src/gateway/openapi/document.ts';
import type { Route } from '../../src/gateway/route.ts';
import { routes } from '../../src/gateway/router.ts';

/** The API description of the service under test. */
export const document: OpenApi = describeApi(routes, {
  baseUrl: 'http://127.0.0.1',
  version: '0.0.0',
  allowPrivateUrls: true,
});

/** What the description says of a route's keys: it has none, may have one, or needs one. */
export function keyOf({ method, path }: Route): 'none' | 'optional' | 'required' {
  const operation = document.paths[templateOf(path)]?.[method] as { security: object[] };
  if (operation.security.length === 0) return 'none';
  return operation.security.length === 1 ? 'required' : 'optional';
}

/** A route's path as the description writes it. */
export function templateOf(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/**
 * Throws if a reply is not one that the API description promises: its status on that route, its
 * media type, and its body without any property that the description does not name. Paths that no
 * route has must answer the documented error.
 */
export function checkReply(reply: Reply): void {
  const { method, path, status, text } = reply;
  const place = `${method} ${path} → ${status}`;
  if (reply.headers.get('x-content-type-options') !== 'nosniff') throw new Error(`${place}: no nosniff`);
  const operation = operationOf(method, path);
  if (operation === undefined) {
    if (status !== 404) throw new Error(`${place}: no route has this path and method`);
    check(place, errorSchema, text);
    return;
  }
  const described = operation.responses[String(status)];
  if (described === undefined) throw new Error(`${place}: the status is not described`);
  for (const [name, { $ref }] of Object.entries(described.headers ?? {})) {
    const { required = false } = headers[$ref.split('/').at(-1) ?? ''] ?? {};
    if (required && !reply.headers.has(name)) throw new Error(`${place}: there is no header ${name}`);
  }
  if (described.content === undefined || method === 'HEAD') return;

  const type = (reply.headers.get('content-type') ?? '').split(';', 1).join();
  const content = described.content[type] ?? (isFile(described.content) ? {} : undefined);
  if (content === undefined) throw new Error(`${place}: the media type ${type} is not described`);
  if (type === 'application/json' && content.schema !== undefined) check(place, content.schema, text);
}

/** Throws if the body of a webhook is not what the API description promises for its event. */
export function checkEvent(body: string): void {
  const { event } = JSON.parse(body);
  const described = document.webhooks[event];
  if (described === undefined) throw new Error(`The event ${event} is not described`);
  check(`the event ${event}`, described.post.requestBody.content['application/json'].schema, body);
}

/** The operation of a path as a client calls it, if there is one. */
function operationOf(method: string, path: string): Operation | undefined {
  const wanted = path.split('?', 1).join();
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  const first = templates.find((template) => template.pattern.test(wanted))?.path;
  return first === undefined ? undefined : (document.paths[first]?.[verb] as Operation | undefined);
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`, 'i');
}

function check(place: string, schema: object, text: string): void {
  const validate = validatorOf(schema);
  if (validate(JSON.parse(text))) return;
  const problems = validate.errors?.map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  );
  throw new Error(`${place}: the body is not as described: ${problems?.join('; ')}\n${text.slice(0, 2000)}`);
}

function validatorOf(schema: object): ValidateFunction {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(strict(schema));
    validators.set(schema, validate);
  }
  return validate;
}

/** The same schema, refusing properties that it does not name, as part of the document that ajv knows. */
function strict(schema: unknown): object {
  if (Array.isArray(schema)) return schema.map((item) => (typeof item === 'object' ? strict(item) : item));
  const copy = Object.fromEntries(
    Object.entries(schema as object).map(([key, value]) => [
      key,
      key === '$ref' ? `api${value}` : typeof value === 'object' && value !== null ? strict(value) : value,
    ]),
  );
  return typeof copy.properties === 'object' && copy.type === 'object' && !('additionalProperties' in copy)
    ? { ...copy, additionalProperties: false }
    : copy;
}

/** The paths of the description, literal ones before those with a parameter. */
const templates = Object.keys(document.paths)
  .toSorted((a, b) => a.split('{').length - b.split('{').length)
  .map((path) => ({ path, pattern: patternOf(path) }));

const isFile = (content: Content) => Object.values(content).every(({ schema }) => schema === undefined);

const headers = document.components.headers as Record<string, { required?: boolean }>;
const errorSchema = { $ref: '#/components/schemas/Error' };
const validators = new Map<object, ValidateFunction>();
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ $id: 'api', components: strict(document.components) });

type Content = Record<string, { schema?: object }>;
type Described = { content?: Content; headers?: Record<string, { $ref: string }> };
type Operation = { responses: Record<string, Described> };
type Reply = { method: string; path: string; status: number; headers: Headers; text: string };
