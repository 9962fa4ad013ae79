import { parse as parseQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import { create } from '@bufbuild/protobuf';
import express, { type Request, type Response } from 'express';
import { z } from 'zod';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { SessionContextSchema } from '../../gen/headlessforms/v1/session_context_pb.js';
import { shortenRows } from '../../src/delivery/mail/shorten.ts';
import { renderTemplate } from '../../src/delivery/webhook/body.ts';
import { isEmailAddress, mailboxOf } from '../../src/domain/addresses/email-address.ts';
import {
  checkWebhookUrl,
  isLoopback,
  isPublicAddress,
  networkOf,
  widestNetworkOf,
  withOneLoopback,
} from '../../src/domain/addresses/ip-address.ts';
import { allowedRedirect } from '../../src/domain/addresses/origins.ts';
import { readFilters } from '../../src/domain/answers/answer-filters.ts';
import { inputNames, readInputs, soughtValue } from '../../src/domain/answers/answer-texts.ts';
import { compileForm } from '../../src/domain/answers/answers.ts';
import { type ConditionOp, conditionOps, evaluate } from '../../src/domain/conditions/condition.ts';
import { conditionSchema } from '../../src/domain/conditions/condition-rules.ts';
import {
  checkDefinition,
  definitionSchema,
  type FormDefinition,
} from '../../src/domain/definition/definition.ts';
import { jsonPathOf, ofFields } from '../../src/domain/definition/definition-path.ts';
import { definitionFromMessage, definitionToMessage } from '../../src/domain/definition/definition-proto.ts';
import { patternProblems } from '../../src/domain/definition/definition-rules.ts';
import { definitionFromSchema } from '../../src/domain/definition/from-json-schema.ts';
import { checkQuestions, idOf, withFieldIds } from '../../src/domain/definition/questions.ts';
import { settingsSchema } from '../../src/domain/definition/settings.ts';
import { languageFor } from '../../src/domain/definition/translate.ts';
import { headerProblems } from '../../src/domain/delivery/webhook-headers.ts';
import { failed, invalid } from '../../src/domain/errors/failure.ts';
import {
  describeReceived,
  pathOf,
  type Violation,
  violationsOf,
} from '../../src/domain/errors/violations.ts';
import { templateNames, templateProblems } from '../../src/domain/events/template.ts';
import { isDatetime } from '../../src/domain/fields/date-time.ts';
import { type FieldType, fieldTypes } from '../../src/domain/fields/field.ts';
import { acceptsFile } from '../../src/domain/fields/media-types.ts';
import { isId, requestIdFrom } from '../../src/domain/ids.ts';
import type { Json, JsonObject } from '../../src/domain/json/json.ts';
import { jsonProblems } from '../../src/domain/json/json-problems.ts';
import { linesIn, parseJson } from '../../src/domain/json/json-text.ts';
import { MAX_MESSAGE_BYTES, messageLimits } from '../../src/domain/limits/limits.ts';
import { readFileLink, readMailLink, readSignInToken, readStreamToken } from '../../src/domain/links.ts';
import { messageFrom } from '../../src/domain/messages.ts';
import { contextProblems, contextSchema } from '../../src/domain/sessions/context.ts';
import { isRespondentCode } from '../../src/domain/sessions/respondent.ts';
import { preferredLanguages } from '../../src/domain/text/accept-language.ts';
import { parseColor } from '../../src/domain/text/color.ts';
import { html } from '../../src/domain/text/html.ts';
import { nearestName } from '../../src/domain/text/nearest-name.ts';
import { readQuery } from '../../src/gateway/route.ts';
import { routes } from '../../src/gateway/router.ts';
import { mediaTypeOfHeader, readSubject } from '../../src/http/body.ts';
import { restErrorOf, toRestFailure } from '../../src/http/errors.ts';
import { noFiles, readFormInputs } from '../../src/http/multipart.ts';
import { prefersJson, sendTagged } from '../../src/http/reply.ts';
import { idempotencyKeyOf, timeInput } from '../../src/http/schemas.ts';
import { askPerson } from '../../src/mcp/tools/ask-person.ts';
import { formTools } from '../../src/mcp/tools/forms.ts';
import { sessionTools } from '../../src/mcp/tools/sessions.ts';
import { submissionTools } from '../../src/mcp/tools/submissions.ts';
import { cookieOf } from '../../src/pages/cookies.ts';
import { isPreview } from '../../src/pages/form/page-source.ts';
import { PostedFiles, readPosted } from '../../src/pages/form/read-post.ts';
import { bearerOf } from '../../src/rpc/context.ts';
import { browserName } from '../../src/services/owners/owner-sessions.ts';
import { safeFilename } from '../../src/services/uploads/received-file.ts';
import {
  lettersAndDigits,
  oneLine,
  withBrokenLinks,
  withoutLinks,
  withoutMarkup,
} from '../../src/text/untrusted.ts';
import { chooseLanguage } from '../../src/text/words.ts';
import { FULL, hostileTexts, hostileValues } from './reading-time.ts';

/** Everything that reads what strangers, or the holders of narrow keys, write. */
export function readers(): Reader[] {
  return [
    ...fieldReaders(),
    ...filterReaders(),
    ...conditionReaders(),
    ...textReaders(),
    ...valueReaders(),
    ...queryReaders(),
    ...bodyReaders(),
    ...toolReaders(),
  ];
}

/** The characters that the grammar of each type's answers knows. */
export const alphabets: Record<FieldType, string> = {
  text: 'a \n\r',
  textarea: 'a \n\r',
  email: 'a1.-+@_',
  url: 'a1.:/?#@-[%',
  phone: '1+( )-./x;=',
  number: '1+-.,e ',
  boolean: 'true1 ',
  checkbox: 'on1 ',
  date: '1-',
  time: '1:',
  datetime: '1-:T.Z+',
  select: 'a ',
  radio: 'a ',
  multi_select: 'a ',
  hidden: 'a1 ',
  file: 'upl_1',
  rating: '1., ',
  scale: '1., ',
  statement: 'a',
  ranking: 'a ',
  matrix: 'a ',
  address: 'a \n',
  signature: 'a ',
};

const options = [
  { label: 'A', value: 'a' },
  { label: 'B', value: 'b' },
];

/** What fields of some types need, and each attribute that any has. */
const attributesOf: Partial<Record<FieldType, object>> = {
  text: {
    minLength: 1,
    maxLength: 100_000,
    pattern: '[^!]*',
    patternMessage: 'Letters',
    placeholder: 'abc',
    agentHint: 'A word',
    defaultValue: 'abc',
  },
  textarea: {
    maxLength: 100_000,
    visibleWhen: {
      any: [{ field: 'text', op: 'in', value: ['a'] }, { not: { field: 'text', op: 'eq', value: 'b' } }],
    },
  },
  select: { options, allowOther: true },
  radio: { options, visibleWhen: { field: 'select', op: 'in', value: ['a'] } },
  multi_select: { options, allowOther: true, minItems: 1, maxItems: 3, defaultValue: ['a'] },
  ranking: { options },
  matrix: { options, rows: options, multiple: true },
  file: { accept: ['.pdf', 'image/*'], maxFiles: 3 },
  signature: { accept: ['typed', 'drawn'] },
  scale: { min: 0, max: 10, minLabel: 'Bad', maxLabel: 'Good' },
  rating: { max: 5, icon: 'star' },
  date: { min: '2000-01-01', max: '2100-01-01' },
  number: { min: 0, max: 10, step: 1 },
};

/** A definition with a field of each type, whose id is that of the type, and with all else that definitions have. */
export const sampleDefinition = {
  name: 'Sample',
  slug: 'sample',
  description: 'What it is for',
  fields: fieldTypes.map((type) => ({ id: type, type, label: `A ${type}`, ...attributesOf[type] })),
  delivery: {
    type: 'email',
    to: ['ada@example.com'],
    subject: 'News',
    replyTo: 'email',
    autoresponse: { to: 'email', subject: 'Thanks', message: 'Thank you' },
  },
  settings: {
    locale: 'en',
    submitLabel: 'Send',
    successMessage: 'Thanks',
    redirectUrl: 'https://example.com/',
    allowedOrigins: ['https://example.com'],
    embedOrigins: ['https://example.com'],
    closesAt: '2030-01-31T09:00:00Z',
    theme: { accentColor: '#336699', logo: 'data:image/png;base64,iVBORw0KGgo=' },
  },
  pages: [{ title: 'First', description: 'Begin' }],
  translations: {
    de: {
      name: 'Muster',
      fields: {
        text: { label: 'Ein Text' },
        select: { options: { a: 'A' } },
        matrix: { rows: { a: 'A' } },
      },
      pages: [{ title: 'Erste' }],
      settings: { submitLabel: 'Senden' },
      autoresponse: { subject: 'Danke' },
    },
  },
};

/** The same as a JSON Schema asks it. */
const sampleSchema = {
  type: 'object',
  title: 'Sample',
  properties: {
    text: { type: 'string', title: 'A text', minLength: 1, maxLength: 10, pattern: '^[a-z]+$', default: 'a' },
    number: { type: 'integer', minimum: 0, exclusiveMaximum: 10, multipleOf: 1 },
    choice: { enum: ['a', 'b'], type: 'string' },
    titled: { oneOf: [{ const: 'a', title: 'A' }] },
    several: { type: 'array', items: { enum: ['a', 'b'] }, minItems: 1 },
    shared: { $ref: '#/$defs/Shared' },
    open: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  },
  required: ['text'],
  $defs: {
    Shared: { type: 'string', allOf: [{ $ref: '#/$defs/Other' }] },
    Other: { type: 'string', title: 'Other' },
  },
};

/** Many properties that share a schema with many keywords that can't be asked. */
const sharedSchema = (size: number) => ({
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: size / 36 }, (_, n) => [`p${n}`, { $ref: '#/$defs/S' }]),
  ),
  $defs: { S: Object.fromEntries(Array.from({ length: size / 32 }, (_, n) => [`unknown${n}`, 1])) },
});

const sampleAnswers: JsonObject = {
  text: 'abc',
  textarea: 'abc',
  email: 'ada@example.com',
  url: 'https://example.com/',
  phone: '+1 555 0100',
  number: 3,
  boolean: true,
  checkbox: true,
  date: '2030-01-31',
  time: '12:00',
  datetime: '2030-01-31T09:00:00Z',
  select: 'a',
  radio: 'a',
  multi_select: ['a', 'another'],
  hidden: 'abc',
  file: [{ upload_id: 'upl_01jd3kvz8nf9t8x1v0c9m2q4ra' }],
  rating: 3,
  scale: 3,
  ranking: ['a', 'b'],
  matrix: { a: ['a', 'b'] },
  address: { line1: '1 Street', city: 'Town', country: 'US' },
  signature: { text: 'Ada' },
};

const sampleTemplate = {
  text: 'Of {{data.formId}}: {{data.answers.text}}',
  parts: [{ value: '{{data.answers}}' }],
};

const sampleEvent = JSON.stringify({
  id: 'evt_1',
  event: 'submission.created',
  data: { answers: { text: 'x'.repeat(1000) } },
});

const sampleContext = {
  title: 'A title',
  text: 'A text',
  items: [{ label: 'Link', value: 'https://example.com/', kind: 'link' as const }],
};

function definitionRead(): FormDefinition {
  const checked = checkDefinition(sampleDefinition, allowed);
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition;
}

const allowed = { keyless: false, allowPrivateUrls: false };

/** What a service does with all that is wrong with a request. */
function refuse(result: { ok: boolean; violations?: readonly Violation[] } | readonly Violation[]): void {
  const violations = 'ok' in result ? (result.violations ?? []) : result;
  if (violations.length > 0) restErrorOf(toRestFailure(invalid(violations.map(ofFields))));
}

function fieldReaders(): Reader[] {
  const definition = definitionRead();
  const form = compileForm(definition);
  return definition.fields.flatMap((field): Reader[] => {
    const { id, type } = field;
    const inputs = hostileTexts([...alphabets[type]]);
    const others = valuesOf(sampleAnswers[type] ?? 'a');
    return [
      {
        name: `${type} in a form post`,
        inputs,
        read(text) {
          const given = inputNames(field).map((name) => ({ name, values: [String(text)] }));
          refuse(form.checkAnswers(readInputs(definition, given, { language: 'de', checksYears: true })));
        },
        door: (text) =>
          posted(
            '/api/forms/FORM/submissions',
            new URLSearchParams([
              ['_lang', 'de'],
              ...inputNames(field).map((name): [string, string] => [name, String(text)]),
            ]),
          ),
      },
      {
        name: `${type} in JSON`,
        inputs: [...inputs, ...others],
        read: (answer) => refuse(form.checkAnswers({ ...sampleAnswers, [id]: answer })),
        door: (answer) => sent('/v1/forms/FORM/submissions', { answers: { ...sampleAnswers, [id]: answer } }),
      },
      {
        name: `what is sought of ${type}`,
        inputs,
        read: (text) => soughtValue(String(text)),
        door: (text) => sent('/v1/forms/FORM/submissions/erase', { field: id, value: text }),
      },
    ];
  });
}

function filterReaders(): Reader[] {
  const { fields } = definitionRead();
  const ops = ['eq', 'gte', 'lte', 'contains'] as const;
  return fields.map(({ id, type }) => ({
    name: `a filter of ${type}`,
    inputs: hostileTexts([...alphabets[type]]),
    read(text) {
      for (const op of ops) {
        refuse(
          readFilters({ fields }, [{ fieldId: id, condition: { case: op, value: String(text) } }]).violations,
        );
      }
      const values = String(text).split('1');
      refuse(
        readFilters({ fields }, [{ fieldId: id, condition: { case: 'in', value: { values } } } as never])
          .violations,
      );
    },
    door: (text) =>
      sent('/headlessforms.v1.SubmissionsService/ListSubmissions', {
        formId: 'FORM',
        filters: [{ fieldId: id, gte: text }],
      }),
  }));
}

function conditionReaders(): Reader[] {
  const evaluated = conditionOps.map(
    (op: ConditionOp): Reader => ({
      name: `the condition ${op}`,
      inputs: [...hostileTexts([...'a1:-TZ']), ...hostileLists()],
      read(answer) {
        const wanted = op === 'in' || op === 'nin' ? ['b', 'aaab'] : 'aaab';
        evaluate({ field: 'it', op, value: wanted }, { it: answer });
        evaluate({ field: 'it', op, value: answer as never }, { it: answer });
      },
      door: (answer) => sent('/v1/forms/FORM/submissions', { answers: { ...sampleAnswers, text: answer } }),
    }),
  );
  return [
    ...evaluated,
    {
      name: 'the shape of a condition',
      inputs: valuesOf(attributesOf.textarea),
      read: (value) => zodRead(conditionSchema, Object(value).visibleWhen),
      door: (value) =>
        sent('/api/forms/create', {
          ...sampleDefinition,
          fields: [
            { id: 'text', type: 'text' },
            { id: 'it', type: 'text', ...Object(value) },
          ],
        }),
    },
  ];
}

/** Lists as answers. */
function hostileLists(): Hostile[] {
  return [
    { name: 'many texts alike', make: (size) => Array.from({ length: size / 4 }, () => 'a') },
    { name: 'many texts', make: (size) => Array.from({ length: size / 8 }, (_, n) => `a${n}`) },
  ];
}

function textReaders(): Reader[] {
  const definition = definitionRead();
  const keys = [Buffer.alloc(32)];
  const text = (
    name: string,
    alphabet: string | readonly string[],
    read: (text: string) => unknown,
    door: Door,
    ...starts: string[]
  ): Reader => ({
    name,
    inputs: ['', ...starts].flatMap((start) => [...hostileTexts([...alphabet], start)]),
    read: (value) => read(String(value)),
    door,
  });
  return [
    text('a file’s name', 'a. /\\:', safeFilename, (name) => upload(String(name)), 'a'),
    text(
      'the ending that a file must have',
      'a./*',
      (name) => acceptsFile(['.pdf', 'image/*'], name, name),
      (name) => upload(String(name)),
    ),
    text(
      'an email address',
      'a1.-+@_',
      (it) => [isEmailAddress(it), mailboxOf(it)],
      (it) => sent('/v1/forms/FORM/owner', { email: it }),
      'a@',
    ),
    text(
      'the address of a webhook',
      'a1.:/?#@-[%',
      (it) => checkWebhookUrl(it, { allowPrivate: false }),
      (it) => sent('/v1/webhooks', { url: it, events: ['submission.created'] }),
      'https://',
      'https://a',
    ),
    text(
      'an address to return to',
      'a1.:/?#@-[%',
      (it) => allowedRedirect(it, new Headers({ referer: it }), []),
      (it) => posted('/api/forms/FORM/submissions', new URLSearchParams({ _next: String(it) })),
      'https://',
      'http://localhost',
    ),
    text(
      'an address of a client',
      '1a:.[]/',
      (it) => [networkOf(it), widestNetworkOf(it), isPublicAddress(it)],
      inHeader('x-forwarded-for'),
      '[',
      '1.1.1.1',
    ),
    text(
      'the name of a host',
      'a1.:[]/',
      (it) => [isLoopback(it), withOneLoopback(it)],
      inHeader('origin'),
      'http://127.0.0.1',
      'a.',
    ),
    text(
      'ids',
      'a1_-',
      (it) => idPrefixes.map((prefix) => isId(prefix, it)),
      (it) => sent('/headlessforms.v1.FormsService/GetForm', { formId: it }),
      'form_',
      'sess_',
    ),
    text('the id of a request', 'a1_-.', requestIdFrom, inHeader('x-request-id')),
    text(
      'an instant',
      '1-:T.Z+',
      (it) => [isDatetime(it), zodRead(timeInput, it)],
      (it) => sent('/v1/webhooks/wh_01jd3kvz8nf9t8x1v0c9m2q4ra/replay', { created_after: it }),
      '2030-01-31T09:00:00.',
    ),
    text(
      'a pattern',
      [...'a1[](){}\\|*+?^$.,-:', '(?', '[^', '\\p', '\\Q', '\\x{', '[[:', '(?i', '(?P<'],
      (it) => patternProblems([{ pattern: it }, { pattern: it.slice(0, 256) }]),
      (it) =>
        sent('/api/forms/create', { ...sampleDefinition, fields: [{ id: 'it', type: 'text', pattern: it }] }),
    ),
    text(
      'a pattern of a JSON Schema',
      [...'a[](){}\\|*+?^$.', '(?', '[^', '\\]'],
      (pattern) => definitionFromSchema({ type: 'object', properties: { it: { type: 'string', pattern } } }),
      (pattern) =>
        sent('/v1/sessions', { schema: { type: 'object', properties: { it: { type: 'string', pattern } } } }),
      '^',
      '[',
    ),
    text(
      'a label that becomes an id',
      'aA1 _é\u0301\ufdfa',
      (it) => idOf(it, new Set()),
      (label) => sent('/v1/sessions', { definition: { fields: [{ label }] } }),
    ),
    text(
      'a name that nearly is another',
      'a_-',
      (it) => nearestName(it, [it.slice(1), it.replace('a', 'b'), 'name']),
      (name) => sent('/api/forms/create', { ...sampleDefinition, [String(name)]: 1 }),
    ),
    text(
      'a template',
      [...'{}a. ', '{{', '}}'],
      (it) => templateProblems({ it: it.slice(0, 8_000) }, 'template', templateNames),
      (it) =>
        sent('/v1/webhooks', {
          url: 'https://example.com/',
          events: ['submission.created'],
          template: { it },
        }),
      '{{data.answers.',
    ),
    text(
      'a body by a template',
      [...'{}a. ', '{{', '}}'],
      (it) => renderTemplate({ it }, sampleEvent),
      (it) =>
        sent('/v1/webhooks', {
          url: 'https://example.com/',
          events: ['submission.created'],
          template: { it },
        }),
      '{{data.answers.',
    ),
    text(
      'a header of a webhook',
      'a- \t:',
      (it) => [headerProblems({ [it]: 'a' }), headerProblems({ a: it })],
      (it) =>
        sent('/v1/webhooks', {
          url: 'https://example.com/',
          events: ['submission.created'],
          headers: { a: it },
        }),
    ),
    text(
      'Accept-Language',
      [...'a-,;=. 1*', 'en', ';q='],
      (it) => [
        preferredLanguages(it),
        chooseLanguage('', it),
        languageFor(definition, preferredLanguages(it)),
      ],
      inHeader('accept-language'),
      'en-',
    ),
    text(
      'Accept',
      [...'a/*,;=. "', 'text/html', ';q='],
      (it) => prefersJson(requestWith({ accept: it })),
      inHeader('accept'),
    ),
    text(
      'If-None-Match',
      [...'a",W/* '],
      (it) => sendTagged(requestWith({ 'if-none-match': it }), silentResponse(), 'body'),
      inHeader('if-none-match', '/v1/forms/FORM/agent-schema'),
    ),
    text(
      'Range',
      [...'a1-,= ', 'bytes='],
      (it) => requestWith({ range: it }).range(1_000),
      inHeader('range', '/embed.js'),
      'bytes=',
    ),
    text(
      'cookies',
      [...'a=; "%', '%41'],
      (it) => cookieOf(requestWith({ cookie: it }), 'form_visit'),
      inHeader('cookie', '/f/FORM'),
      'form_visit=',
    ),
    text('Content-Type', [...'a/;= "', 'charset='], mediaTypeOfHeader, inHeader('content-type')),
    text(
      'Content-Disposition',
      [...'a;= "\\%*\'', 'name=', 'filename*='],
      (it) => multipart(it),
      (it) => ({
        method: 'POST',
        path: '/api/forms/FORM/submissions',
        headers: { 'content-type': MULTIPART },
        body: multipartBody(String(it)),
      }),
      'form-data; name="a"; filename="',
      'form-data; ',
    ),
    text(
      'the boundary of a form post',
      [...'a;= "-\'', 'boundary='],
      (it) => readFormInputs(bodyOf(`multipart/form-data; ${it}`, '--a\r\n'), noFiles),
      inHeader('content-type'),
      'boundary=',
    ),
    text(
      'parts of a form post',
      ['a', '\r\n', '-', '--', '--a', '--a\r\n', '\r\n--a'],
      (it) =>
        readFormInputs(
          bodyOf(MULTIPART, `--a\r\nContent-Disposition: form-data; name="a"\r\n\r\n${it}`),
          noFiles,
        ),
      (it) => ({
        method: 'POST',
        path: '/api/forms/FORM/submissions',
        headers: { 'content-type': MULTIPART },
        body: String(it),
      }),
      '--a\r\n',
    ),
    text(
      'an encoded form post',
      'a=&%+1;',
      (it) =>
        readFormInputs(bodyOf('application/x-www-form-urlencoded', it), noFiles).then((inputs) =>
          readPosted(inputs, new PostedFiles()),
        ),
      (it) => posted('/f/FORM', String(it)),
      '_shown=',
      '_remove=',
    ),
    text(
      'a user agent',
      [...'a1/.;() ', 'Mozilla/5.0 ', 'bot', 'Android ', 'Version/', 'cu'],
      (it) => [isPreview(requestWith({ 'user-agent': it })), browserName(it.slice(0, 512))],
      inHeader('user-agent', '/f/FORM'),
      'Mozilla/5.0 (',
    ),
    text(
      'what a page is fetched for',
      'a ;=',
      (it) => isPreview(requestWith({ 'sec-purpose': it })),
      inHeader('sec-purpose', '/f/FORM'),
    ),
    text('Authorization', [...'a ', 'Bearer '], bearerOf, inHeader('authorization'), 'Bearer '),
    text(
      'an idempotency key',
      'a1 ',
      (it) => idempotencyKeyOf(requestWith({ 'idempotency-key': it })),
      inHeader('idempotency-key'),
    ),
    text(
      'tokens of links',
      'a1._-',
      (it) => [
        readMailLink(keys, it, 0),
        readFileLink(keys[0] ?? Buffer.alloc(0), it, 0),
        readSignInToken(keys, it, 0),
        readStreamToken(keys[0] ?? Buffer.alloc(0), it, 0),
      ],
      (it) => ({ method: 'GET', path: `/mail/${encodeURIComponent(String(it)).slice(0, 12_000)}` }),
      'stop.',
    ),
    text(
      'a code',
      'a1 \t',
      (it) => isRespondentCode(keys, 'id', it),
      (code) => posted('/f/FORM', new URLSearchParams({ _code: String(code) })),
    ),
    text(
      'a colour',
      '#a1',
      parseColor,
      (accentColor) =>
        sent('/api/forms/create', { ...sampleDefinition, settings: { theme: { accentColor } } }),
      '#',
    ),
    text(
      'settings',
      'a1:/.-=,+',
      (it) =>
        zodRead(
          settingsSchema,
          Object.fromEntries(
            Object.keys(settingsSchema.shape).map((name) => [
              name,
              name.endsWith('Origins') ? [it] : name === 'theme' ? { logo: it, accentColor: it } : it,
            ]),
          ),
        ),
      (it) =>
        sent('/api/forms/create', {
          ...sampleDefinition,
          settings: { redirectUrl: it, closesAt: it, locale: it, theme: { logo: it } },
        }),
      'https://',
      'http://127.',
      'data:image/png;base64,',
    ),
    text(
      'JSON',
      [...'[]{}":,1 \\e.-', '"a"', '"a":1,', '[1,'],
      (it) => parseJson(Buffer.from(it), 'body', messageLimits.standard.maxNodes),
      (it) => ({ method: 'POST', path: '/v1/forms/FORM/submissions', headers: JSON_TYPE, body: String(it) }),
      '{"a":',
      '"',
      '[[',
    ),
    text(
      'the lines of JSON',
      '[]{}":,1 \\',
      (it) => linesIn(JSON.stringify([it, { [it]: it }])),
      (it) => ({ method: 'POST', path: '/v1/forms/FORM/submissions', headers: JSON_TYPE, body: String(it) }),
    ),
    text(
      'what came, in an error',
      'a_:/@.1 -',
      (it) => [describeReceived('x', it), describeReceived(it, it), jsonPathOf(`definition.${it}`)],
      (source) => sent('/v1/forms/FORM/submissions', { answers: {}, source }),
      'https://',
    ),
    text(
      'words in mails and chats',
      'a.:/@ \n1<\u200b\u3002',
      (long) => {
        const it = long.slice(0, IN_MAIL);
        return [
          oneLine(it),
          withoutLinks(it),
          withBrokenLinks(it),
          withoutMarkup(it.slice(0, IN_CHAT)),
          lettersAndDigits(it),
          shortenRows([{ label: it, text: it }] as never),
          html`<p title="${it}">${it}</p>`,
        ];
      },
      (it) => sent('/v1/forms/FORM/submissions', { answers: { ...sampleAnswers, textarea: it } }),
    ),
  ];
}

/** As much of an answer as an email has, and as much of a value as a chat has. */
const [IN_MAIL, IN_CHAT] = [16 * 1024, 1000];

const idPrefixes = ['form', 'ver', 'sub', 'key', 'wh', 'dlv', 'upl', 'evt'] as const;

function valueReaders(): Reader[] {
  const definition = definitionRead();
  const form = compileForm(definition);
  return [
    {
      name: 'a definition',
      inputs: [...valuesOf(sampleDefinition), ...hostileDefinitions()],
      read(value) {
        refuse(checkDefinition(value, { ...allowed, keyless: true }));
      },
      door: (value) => sent('/api/forms/create', value),
    },
    {
      name: 'a definition that was accepted',
      inputs: hostileDefinitions(),
      read(value) {
        const checked = checkDefinition(value, { ...allowed, keyless: true });
        if (checked.ok) definitionFromMessage(definitionToMessage(checked.definition));
      },
      door: (value) => sent('/api/forms/create', value, null),
    },
    {
      name: 'questions',
      inputs: hostileQuestions(),
      read: (value) => refuse(checkQuestions(value, { allowPrivateUrls: false })),
      door: (value) => sent('/v1/sessions', { definition: value }),
    },
    {
      name: 'ids of fields',
      inputs: hostileQuestions(),
      read: (value) => withFieldIds(Object(value).fields),
      door: (value) => mcp('create_form', { definition: { name: 'Sample', ...Object(value) } }),
    },
    {
      name: 'what a session asks',
      inputs: [...hostileQuestions()],
      read: (value) => refuse(readSubject({ definition: value as JsonObject }, false)),
      door: (value) => mcp('ask_person', { questions: Object(value).fields }),
    },
    {
      name: 'a JSON Schema',
      inputs: [
        ...valuesOf(sampleSchema),
        { name: 'a shared schema of unknown keywords', make: sharedSchema },
      ],
      read(value) {
        const read = definitionFromSchema(value as JsonObject);
        refuse(read.ok ? checkQuestions(read.definition, { allowPrivateUrls: false }) : read);
      },
      door: (schema) => sent('/v1/sessions', { schema }),
    },
    {
      name: 'answers',
      inputs: [...valuesOf(sampleAnswers)],
      read: (value) => refuse(form.checkAnswers(value)),
      door: (answers) => sent('/v1/forms/FORM/submissions', { answers }),
    },
    {
      name: 'partial answers',
      inputs: [...valuesOf(sampleAnswers)],
      read: (value) => refuse(form.checkAnswers(value, { root: 'prefill', required: false })),
      door: (prefill) => sent('/v1/forms/FORM/sessions', { prefill }),
    },
    {
      name: 'metadata',
      inputs: [...valuesOf({ a: 'a', b: [{ c: 'c' }] })],
      read: (value) => refuse(jsonProblems(value, 'metadata', { exact: true, maxKib: 16 })),
      door: (metadata) => sent('/v1/forms/FORM/sessions', { metadata }),
    },
    {
      name: 'a template of JSON',
      inputs: [...valuesOf(sampleTemplate)],
      read(value) {
        const problems = templateProblems(value as JsonObject, 'template', templateNames);
        if (problems.length > 0) refuse(problems);
        else renderTemplate(value as JsonObject, sampleEvent);
      },
      door: (template) =>
        sent('/v1/webhooks', { url: 'https://example.com/', events: ['submission.created'], template }),
    },
    {
      name: 'the context of a session',
      inputs: [...valuesOf(sampleContext)],
      read(value) {
        const { data, error } = contextSchema.safeParse(value);
        if (error !== undefined) refuse(violationsOf(error, value));
        else refuse(contextProblems(create(SessionContextSchema, messageFrom(SessionContextSchema, data))));
      },
      door: (context) => sent('/v1/forms/FORM/sessions', { context }),
    },
    {
      name: 'headers of a webhook',
      inputs: [...valuesOf({ 'x-one': 'a', 'x-two': 'b' })],
      read: (value) => refuse(headerProblems(value as Record<string, string>)),
      door: (headers) =>
        sent('/v1/webhooks', { url: 'https://example.com/', events: ['submission.created'], headers }),
    },
    {
      name: 'the paths of what is wrong',
      inputs: hostileTexts(['.', '1', 'a', 'fields.', '0.', 'any.']),
      read: (path) => refuse([{ path: pathOf(String(path)), code: 'custom', message: '' }]),
      door: (path) => sent('/api/forms/create', { ...sampleDefinition, [String(path)]: 1 }),
    },
  ];
}

/** As many of everything as a definition may have, or a little more, which no text of it alone shows. */
function hostileDefinitions(): Hostile[] {
  const long = (n: number) => `f${n}`.padEnd(64, 'x');
  const fields = Array.from({ length: 100 }, (_, n) => ({ id: long(n), type: 'text' }));
  const base = {
    name: 'Sample',
    slug: 'sample',
    fields,
    delivery: { type: 'email' },
    settings: { locale: 'en' },
  };
  const languages = [
    'de',
    'fr',
    'es',
    'pt',
    'ja',
    'zh',
    'ar',
    'it',
    'nl',
    'pl',
    'sv',
    'da',
    'fi',
    'no',
    'cs',
    'el',
    'hu',
    'ro',
    'tr',
    'uk',
  ];
  const translated = (entry: (n: number) => [string, object], count: number) => ({
    ...base,
    translations: Object.fromEntries(
      languages.map((tag) => [
        tag,
        { fields: Object.fromEntries(Array.from({ length: count }, (_, n) => entry(n))) },
      ]),
    ),
  });
  const fixed = (name: string, make: (share: number) => unknown): Hostile => ({
    name,
    make: (size) => make(size / FULL),
  });
  return [
    fixed('a hundred long ids', (share) => ({ ...base, fields: fields.slice(0, 100 * share) })),
    fixed('a hundred long ids, and translations of fields with others', (share) =>
      translated((n) => [long(n).replace('x', 'y'), {}], 40 * share),
    ),
    fixed('a hundred long ids, and translations of these', (share) =>
      translated((n) => [long(n), { label: 'x' }], 30 * share),
    ),
    fixed('a hundred long ids, and unknown names in each field', (share) => ({
      ...base,
      fields: fields.slice(0, 100 * share).map((field, n) => ({
        ...field,
        ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`lable${at}${n}`, 1])),
      })),
    })),
    fixed('a hundred equal ids', (share) => ({
      ...base,
      fields: fields.slice(0, 100 * share).map((field) => ({ ...field, id: long(1) })),
    })),
    fixed('conditions on long ids', (share) => ({
      ...base,
      fields: fields.slice(0, 100 * share).map((field, n) => ({
        ...field,
        ...(n > 0 && {
          visibleWhen: {
            all: Array.from({ length: 5 }, (_, at) => ({ field: long(at % n), op: 'eq', value: 'a' })),
          },
        }),
      })),
    })),
    fixed('options with long values in translations', (share) => ({
      ...base,
      fields: [
        {
          id: 'it',
          type: 'select',
          options: Array.from({ length: 100 * share }, (_, n) => ({
            label: 'x',
            value: `${n}`.padEnd(200, 'v'),
          })),
        },
      ],
      translations: {
        de: {
          fields: {
            it: {
              options: Object.fromEntries(
                Array.from({ length: 100 * share }, (_, n) => [`${n}`.padEnd(200, 'w'), 'x']),
              ),
            },
          },
        },
      },
    })),
    fixed('costly patterns', (share) => ({
      ...base,
      fields: fields
        .slice(0, 100 * share)
        .map((field, n) => ({ ...field, pattern: `${'\\pL{1000}'.repeat(20)}${n}` })),
    })),
    fixed('options of many fields', (share) => ({
      ...base,
      fields: fields.slice(0, 100 * share).map((field) => ({
        ...field,
        type: 'select',
        options: Array.from({ length: 20 }, (_, n) => ({ label: 'a', value: `${n}` })),
      })),
    })),
  ];
}

/** More questions than a session may have. */
function hostileQuestions(): Hostile[] {
  const many = (name: string, question: (n: number) => object): Hostile => ({
    name,
    make: (size) => ({
      fields: Array.from({ length: size / JSON.stringify(question(1_000)).length }, (_, n) => question(n)),
    }),
  });
  return [
    many('equal labels', () => ({ label: '' + 'a' })),
    many('empty questions', () => ({})),
    many('labels without letters', (n) => ({ label: `${n}` })),
    many('long labels that begin alike', (n) => ({ label: `${'a'.repeat(60)}${n}` })),
    many('equal ids', () => ({ id: 'a' })),
    many('labels like ids that are given', (n) => (n % 2 === 0 ? { id: `a_${n}` } : { label: 'a' })),
    many('options', () => ({
      label: 'a',
      type: 'select',
      options: Array.from({ length: 200 }, (_, n) => ({ label: 'a', value: `${n}` })),
    })),
  ];
}

/** Every query that a route reads. */
function queryReaders(): Reader[] {
  return routes.flatMap(({ method, path, operation: { query } }): Reader[] => {
    if (query === undefined) return [];
    const names = Object.keys(query.shape);
    const alphabet = [
      ...'a1=&[]%+',
      '&a=',
      ...names.slice(0, 3).map((name) => `&${name}=1`),
      '&filter[a]=',
      ',a',
    ];
    return [
      {
        name: `the query of ${method} ${path}`,
        inputs: [
          ...hostileTexts(alphabet.slice(0, 8)),
          ...alphabet.slice(8).flatMap((unit) => [...hostileTexts([unit])]),
          {
            name: 'filters of fields',
            make: (size) => Array.from({ length: size / 12 }, (_, n) => `filter[a${n}]=1`).join('&'),
          },
          {
            name: 'unknown names',
            make: (size) => Array.from({ length: size / 6 }, (_, n) => `b${n}=`).join('&'),
          },
        ],
        read: (text) => readQuery({ query: parseQuery(String(text)) } as never, query as never),
        door: (text) => ({
          method: method.toUpperCase(),
          path: `${path.replace(':id', 'FORM')}?${String(text).slice(0, 15_000)}`,
        }),
      },
    ];
  });
}

/** Every body that a route reads by a schema. */
function bodyReaders(): Reader[] {
  return routes.flatMap(({ method, path, operation: { body } }): Reader[] => {
    if (body === undefined) return [];
    const { $defs = {}, ...schema } = z.toJSONSchema(body, {
      io: 'input',
      unrepresentable: 'any',
    }) as JsonSchema;
    // Definitions have a reader of their own.
    const isDefinition = Object.hasOwn(schema.properties ?? {}, 'delivery');
    const known = isDefinition ? new Set(Object.keys(definitionSchema.shape)) : new Set();
    const whole = Object.entries(Object(sampleOf(schema, $defs)));
    const sample = Object.fromEntries(whole.filter(([property]) => !known.has(property)));
    return [
      {
        name: `the body of ${method} ${path}`,
        inputs: valuesOf(sample),
        read: (value) => zodRead(body, value),
        door: (value) => ({ ...sent(path.replace(':id', 'FORM'), value), method: method.toUpperCase() }),
      },
    ];
  });
}

/** Every tool of MCP. */
const tools = [...formTools, askPerson, ...sessionTools, ...submissionTools];

function toolReaders(): Reader[] {
  return tools.map(({ name, config, call }) => {
    const { $defs = {}, ...schema } = config.inputSchema['~standard'].jsonSchema.input({
      target: 'draft-2020-12',
    }) as JsonSchema;
    return {
      name: `the arguments of ${name}`,
      inputs: valuesOf(sampleOf(schema, $defs)),
      read: (args) =>
        call(args, fakeExchange as never, { mcpReq: { requestState: () => undefined } } as never),
      door: (args) => mcp(name, args),
    };
  });
}

/** Calls nothing: what services do with their requests is read by other readers. */
const fakeExchange = {
  call: async () => {
    throw failed(Reason.NOT_FOUND, 'There is no such thing');
  },
  mayCall: () => true,
  keyId: 'key',
  baseUrl: 'https://example.com',
  allowPrivateUrls: false,
  logFault: String,
};

/** A value that fits a schema by its types. */
function sampleOf(schema: JsonSchema, defs: Record<string, JsonSchema>, depth = 0): unknown {
  const { $ref, anyOf, oneOf, allOf, properties, items, type } = schema;
  if (depth > 6) return 'a';
  const inside = (one: JsonSchema) => sampleOf(one, defs, depth + 1);
  if ($ref !== undefined) return inside(defs[$ref.replace('#/$defs/', '')] ?? {});
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [choice] = anyOf ?? oneOf ?? allOf ?? [];
  if (choice !== undefined) return inside(choice);
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, inside(one)]));
  }
  switch (String([type].flat()[0])) {
    case 'array':
      return [inside(items ?? {})];
    case 'object':
      return {
        one: typeof schema.additionalProperties === 'object' ? inside(schema.additionalProperties) : 'a',
      };
    case 'number':
    case 'integer':
      return schema.minimum ?? 1;
    case 'boolean':
      return true;
    default:
      return 'a';
  }
}

function zodRead(schema: z.ZodType, value: unknown): void {
  const { error } = schema.safeParse(value);
  if (error !== undefined) refuse(violationsOf(error, value));
}

function valuesOf(sample: unknown): Hostile[] {
  return [...hostileValues(sample)];
}

const app = express();

/** A request with these headers, as Express gives it. */
function requestWith(headers: Record<string, string>): Request {
  return Object.assign(Object.create(app.request), { app, method: 'GET', headers, query: {} });
}

function silentResponse(): Response {
  const response = { setHeader() {}, hasHeader: () => true, end() {}, status: () => response };
  return response as never;
}

function bodyOf(type: string, body: string): never {
  const bytes = Buffer.from(body);
  const headers = { 'content-type': type, 'content-length': String(bytes.length) };
  return Object.assign(Readable.from([bytes]), { headers }) as never;
}

const MULTIPART = 'multipart/form-data; boundary=a';

function multipartBody(disposition: string): string {
  return `--a\r\nContent-Disposition: ${disposition}\r\n\r\nx\r\n--a--\r\n`;
}

function multipart(disposition: string) {
  return readFormInputs(bodyOf(MULTIPART, multipartBody(disposition)), noFiles);
}

const JSON_TYPE = { 'content-type': 'application/json' };

function sent(path: string, body: unknown, key?: null): Call {
  return {
    method: 'POST',
    path,
    headers: JSON_TYPE,
    body: JSON.stringify(body).slice(0, MAX_MESSAGE_BYTES),
    ...(key === null && { key }),
  };
}

function posted(path: string, body: URLSearchParams | string): Call {
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: String(body),
  };
}

function mcp(name: string, args: unknown): Call {
  const call = sent('/mcp', {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args },
  });
  return { ...call, headers: { ...JSON_TYPE, accept: 'application/json, text/event-stream' } };
}

function upload(filename: string): Call {
  const content = Buffer.from('x').toString('base64');
  return sent('/headlessforms.v1.UploadsService/CreateUpload', {
    formId: 'FORM',
    fieldId: 'file',
    filename,
    content,
  });
}

/** Servers take 16 KiB of headers. */
function inHeader(name: string, path = '/v1/forms/FORM'): Door {
  return (text) => ({
    method: 'GET',
    path,
    headers: {
      [name]: String(text)
        .slice(0, 15_000)
        .replace(/[^\t -~]/g, '!'),
    },
  });
}

/** Reads what others wrote, as the function does that the service has for it. */
export type Reader = {
  name: string;
  inputs: Iterable<Hostile>;
  read: (made: unknown) => unknown;
  /** The call by which as much of it as possible reaches the function in a running service. */
  door: Door;
};

type Hostile = { name: string; make: (size: number) => unknown };

type Door = (made: unknown) => Call;

/** `FORM` in the path or the body is the id of a form of the sample. `key`: null for none. */
export type Call = {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  key?: null;
};

type JsonSchema = {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string | string[];
  const?: Json;
  enum?: Json[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
  minimum?: number;
};
