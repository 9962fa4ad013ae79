import type { MessageInitShape } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FormFieldSchema } from '../../gen/headlessforms/v1/definition_pb.js';
import { FailureSchema, ViolationCode } from '../../gen/headlessforms/v1/errors_pb.js';
import { definitionMessage } from '../support/definitions.ts';
import { startServices, type TestServices } from '../support/services.ts';

/** A value that none of the enums has. */
const UNKNOWN = 99 as never;

let rpc: TestServices;

beforeAll(async () => {
  rpc = await startServices('pglite');
});
afterAll(() => rpc[Symbol.asyncDispose]());

it.each<[string, string, (rpc: TestServices) => Promise<unknown>]>([
  ['definition.fields[0].type', 'FORM_FIELD_TYPE_TEXT, ', (rpc) => validate(rpc, { type: UNKNOWN })],
  [
    'definition.fields[0].answered_by',
    'ANSWERED_BY_ANYONE, ',
    (rpc) => validate(rpc, { answeredBy: UNKNOWN }),
  ],
  ['definition.fields[0].icon', 'RATING_ICON_STAR, ', (rpc) => validate(rpc, { type: 18, icon: UNKNOWN })],
  [
    'definition.settings.theme.mode',
    'THEME_MODE_LIGHT, ',
    ({ forms, owner }) =>
      forms.validateForm(
        { definition: definitionMessage({ settings: { theme: { mode: UNKNOWN } } }) },
        owner,
      ),
  ],
  [
    'definition.fields[0].type',
    'FORM_FIELD_TYPE_TEXT, ',
    ({ sessions, owner }) => {
      const definition = { fields: [{ label: 'Why?', type: UNKNOWN }] };
      return sessions.createSession({ subject: { case: 'definition', value: definition } }, owner);
    },
  ],
  ['status', 'SESSION_STATUS_OPEN, ', async (rpc) => rpc.sessions.listSessions(await asked(rpc), rpc.owner)],
  [
    'status',
    'SUBMISSION_STATUS_ACCEPTED, ',
    async (rpc) => rpc.submissions.listSubmissions(await asked(rpc), rpc.owner),
  ],
  [
    'format',
    'ANSWERS_SCHEMA_FORMAT_PROTO, ',
    async (rpc) => rpc.forms.getAnswersSchema(await asked(rpc), rpc.owner),
  ],
  [
    'format',
    'EXPORT_FORMAT_CSV, ',
    async (rpc) =>
      rpc.submissions
        .exportSubmissions(await asked(rpc), rpc.owner)
        [Symbol.asyncIterator]()
        .next(),
  ],
  [
    'events[0]',
    'WEBHOOK_EVENT_SUBMISSION_CREATED, ',
    ({ webhooks, owner }) =>
      webhooks.createWebhook({ url: 'https://example.com/', events: [UNKNOWN] }, owner),
  ],
])('%s names the values of its enum as RPCs have them: %s…', async (path, names, call) => {
  const error = ConnectError.from(await call(rpc).catch((reason: unknown) => reason));

  const [failure] = error.findDetails(FailureSchema);
  const found = failure?.violations.find((each) => each.path === path);
  expect(found?.code, error.rawMessage).toBe(ViolationCode.INVALID_ENUM_VALUE);
  expect(found?.message).toContain(`Expected one of ${names}`);
  expect(found?.message).not.toMatch(/"|UNSPECIFIED/);
});

function validate({ forms, owner }: TestServices, field: MessageInitShape<typeof FormFieldSchema>) {
  return forms.validateForm({ definition: definitionMessage({ fields: [{ id: 'a', ...field }] }) }, owner);
}

async function asked(rpc: TestServices) {
  const formId = await rpc.givenFormOf();
  return { formId, status: UNKNOWN, format: UNKNOWN };
}
