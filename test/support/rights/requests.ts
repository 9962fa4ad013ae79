import { type DescField, type DescMethod, fromJson, type JsonValue, type Message } from '@bufbuild/protobuf';
import type { Party } from './actors.ts';
import { definitionJson, eve, marks, type World } from './world.ts';

/**
 * How many requests `requestOf` makes of a method: one with the first value of each field, and one more for each
 * further value of one. Throws if a field has none.
 */
export function countRequests({ input }: DescMethod, world: World, party: Required<Party>): number {
  return 1 + input.fields.reduce((sum, field) => sum + valuesOf(field, world, party).length - 1, 0);
}

/** One of the requests of a method. */
export function requestOf(
  { input }: DescMethod,
  index: number,
  world: World,
  party: Required<Party>,
): Message {
  const json: Record<string, JsonValue> = {};
  let left = index;
  for (const field of input.fields) {
    const [first, ...others] = valuesOf(field, world, party);
    const isVaried = left > 0 && left <= others.length;
    const value = isVaried ? others[left - 1] : first;
    left -= others.length;
    // Of the fields of which only one can be set, the last one that is varied is.
    if (value === undefined || (field.oneof !== undefined && !isVaried && hasOther(json, field))) continue;
    for (const other of field.oneof?.fields ?? []) delete json[other.jsonName];
    json[field.jsonName] = value;
  }
  return fromJson(input, json);
}

function hasOther(json: Record<string, JsonValue>, { oneof }: DescField): boolean {
  return oneof?.fields.some(({ jsonName }) => jsonName in json) === true;
}

/** What callers set a field to, in JSON; undefined leaves it out. */
function valuesOf({ localName, parent }: DescField, world: World, party: Required<Party>): Value[] {
  const values = (byMessage[parent.name]?.[localName] ?? byName[localName])?.(world, party);
  if (values === undefined) throw new Error(`${parent.name}.${localName} needs values in ${import.meta.url}`);
  return values;
}

const unset = () => [undefined];

const byName: Record<string, Values> = {
  formId: ({ formId }) => [formId],
  submissionId: ({ submissionId }) => [submissionId],
  webhookId: ({ webhookId }) => [webhookId],
  deliveryId: ({ deliveryId }) => [deliveryId],
  uploadId: ({ uploadId }) => [uploadId],
  // It is a secret: known to those alone who were given it.
  sessionId: (_world, { sessionIds }) => [...sessionIds, 'sess_unknown'],
  keyId: ({ adminKey }, { keyIds }) => [adminKey.id, ...keyIds],
  token: (_world, { tokens }) => [...tokens, 'unknown'],
  activationToken: (_world, { tokens }) => [...tokens, 'unknown'],
  formerSessionToken: unset,
  deviceToken: unset,
  issueToken: unset,
  browser: unset,
  begun: unset,
  code: () => ['123456'],
  respondent: () => [undefined, { email: eve.address }],

  email: () => [eve.address],
  url: () => [eve.url],
  events: () => [['WEBHOOK_EVENT_SUBMISSION_CREATED', 'WEBHOOK_EVENT_SESSION_EXPIRED']],
  secret: () => [undefined, 'a secret that Eve knows'],
  active: () => [undefined, true, false],
  traceparent: () => [undefined, true],
  ed25519: () => [undefined, true],
  headers: () => [undefined, { values: { 'X-Eve': 'Eve' } }],
  effectiveIn: () => [undefined, '3600s'],
  definition: () => definitions,
  stopped: () => [true, false],
  stopScope: () => ['STOP_SCOPE_FORM', 'STOP_SCOPE_EVERYTHING'],
  keepRecipients: () => [undefined, true],
  everywhere: () => [undefined, true],
  stay: () => [undefined, true],
  people: () => [undefined, { delimiter: ',' }],
  signIn: () => [undefined, true],

  scopes: (_world, { scopes }) => [
    ['forms:read'],
    scopes,
    ['*'],
    ['submissions:read'],
    ['submissions:delete'],
  ],
  project: ({ name }) => [undefined, name, 'default', 'another'],
  name: () => ['A key of Eve'],
  expiresIn: () => [undefined, '60s', '86400s'],
  revokeChildren: () => [undefined, true],
  timeZone: () => [undefined, 'Europe/Zurich'],
  includeMentions: () => [undefined, true],

  answeredBy: () => [undefined, 'ANSWER_CHANNEL_MCP_USER'],
  answers: ({ uploadId }) => [{ home: 'Eve' }, { map: { upload_id: uploadId } }],
  prefill: () => [undefined],
  metadata: () => [undefined, { note: 'Eve' }],
  extendBy: () => [undefined, '60s'],
  expireTime: unset,
  returnUrl: () => [undefined, 'https://eve.example.com/back'],
  source: () => [undefined, 'eve'],
  value: () => [marks.reading],
  idempotencyKey: () => [undefined, 'eve'],
  createdAfter: unset,
  createdBefore: unset,
  includeDefinition: () => [undefined, true],
  includeQrSvg: () => [undefined, true],
  number: () => [1],
  language: unset,
  version: unset,
  status: unset,
  format: () => ['EXPORT_FORMAT_CSV', 'EXPORT_FORMAT_NDJSON'],
  // From the first event on.
  cursor: () => [`evt_${'0'.repeat(26)}`],
  text: () => ['Ada'],
  timeout: () => ['1s'],
  filter: unset,
  pageSize: unset,
  pageToken: unset,
  skip: unset,
  filters: unset,
  includeTotal: () => [undefined, true],
  slug: unset,
  action: unset,
  actor: unset,
  resource: unset,

  againstFormId: ({ formId }) => [undefined, formId],
  schemaFormat: () => [undefined, 'ANSWERS_SCHEMA_FORMAT_PROTO'],
  lenient: () => [undefined, true],
  step: () => [undefined, 2],
  includeForm: () => [undefined, true],
  key: ({ formKey }) => [formKey],
  owner: () => [undefined, eve.address],
  managedBy: () => [undefined, 'eve/'],
  expectedVersionId: unset,
  allowBreaking: () => [undefined, true],

  callback: () => [undefined, { url: eve.url }],
  notify: ({ webhookId }) => [
    undefined,
    { email: eve.address, message: 'Eve', remindAfter: ['60s'] },
    { webhookId },
  ],
  context: () => [undefined, { title: 'Eve' }],
  allowDecline: () => [undefined, true],
  returnOutcome: () => [undefined, true],
  retentionDays: () => [undefined, 1],
  schema: () => [undefined, { type: 'object', properties: { home: { type: 'string' } } }],
  template: () => [undefined, { text: '{{data.answers.home}}' }],
  reason: () => [undefined, 'No'],
  declineReason: () => [undefined, 'No'],

  texts: () => [
    {
      name: 'Census',
      fields: [
        { fieldId: 'home', label: 'Home' },
        { fieldId: 'map', label: 'Another map' },
      ],
    },
  ],
  validateOnly: () => [undefined, true],
  fieldId: () => ['map'],
  filename: () => ['eve.txt'],
  content: () => [Buffer.from('Eve').toString('base64')],

  preview: () => [undefined, true],
  posted: () => [undefined, true],
  unproven: () => [undefined, true],
  inputs: () => [[], [{ name: 'home', values: ['Eve'] }]],
  goal: () => [
    'HOSTED_GOAL_FORWARD',
    'HOSTED_GOAL_BACK',
    'HOSTED_GOAL_PAGE',
    'HOSTED_GOAL_SAVE',
    'HOSTED_GOAL_DECLINE',
  ],
  goalPage: () => [undefined, 1],
  page: () => [1],
  shown: () => [undefined, ['home', 'map']],
  violations: unset,
  honeypot: unset,
  nextUrl: () => [undefined, 'https://eve.example.com'],
  errorUrl: () => [undefined, 'https://eve.example.com'],
  pageUrl: () => [undefined, 'https://eve.example.com'],
};

const filters = () => [undefined, { source: 'eve' }];

const byMessage: Record<string, Record<string, Values>> = {
  // Of all forms of a project by default.
  CreateWebhookRequest: { formId: ({ formId }) => [formId, undefined], filter: filters },
  UpdateWebhookRequest: { filter: filters },
  GetHostedRequest: { formId: ({ formId }) => [undefined, formId] },
  UpdateSessionRequest: { answers: () => [undefined, { home: 'Eve' }], metadata: () => [{ note: 'Eve' }] },
  GetAnswersSchemaRequest: { format: () => [1, 2] },
  CreateSessionRequest: {
    definition: () => [undefined, { fields: [{ id: 'home', type: 'FORM_FIELD_TYPE_TEXT' }] }],
  },
  // One that is open would be waited for.
  AwaitSessionRequest: { sessionId: ({ endedSessionId }) => [endedSessionId] },
  WatchSubmissionsRequest: { source: unset },
  ListSubmissionsRequest: { sessionId: unset },
  SendRespondentCodeRequest: {
    formId: ({ formId }) => [undefined, formId],
    browser: () => ['eve'.repeat(9)],
  },
  GiveRespondentCodeRequest: {
    formId: ({ formId }) => [undefined, formId],
    browser: () => ['eve'.repeat(9)],
  },
  PostHostedRequest: { formId: ({ formId }) => [undefined, formId] },
  CreateUploadRequest: { sessionId: (_world, { sessionIds }) => [undefined, ...sessionIds] },
  UploadFileRequest: { sessionId: (_world, { sessionIds }) => [undefined, ...sessionIds] },
  ReplayDeliveriesRequest: { formId: ({ formId }) => [undefined, formId] },
  PublishOwnedFormTextsRequest: { expectedVersionId: ({ versionId }) => [versionId] },
  // It may have been given the other name before.
  DeleteOwnedFormRequest: { name: () => ['Test', 'Census'] },
  EndOwnerSessionRequest: { sessionId: () => ['unknown'] },
};

/** The definition that is there, and one for each way to change what becomes of the answers. */
const definitions = [
  definitionJson(),
  definitionJson({ description: 'Another version' }),
  definitionJson({ delivery: { webhook: { url: eve.url } } }),
  definitionJson({ delivery: { email: { to: [eve.address] } } }),
  definitionJson({ settings: { allowPartial: true, retentionDays: 1 } }),
  definitionJson({ settings: { allowPartial: true, maxSubmissions: 1, publicPage: false, review: true } }),
] as JsonValue[];

type Value = JsonValue | undefined;
type Values = (world: World, party: Required<Party>) => Value[];
