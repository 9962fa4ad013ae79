import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { startService, type TestService } from '../../support/server.ts';

/** The parts of a JSON body that a model reads as one word or more: names, numbers and marks between them. */
const wordsOf = (body: unknown) =>
  JSON.stringify(body).match(/[\p{L}\p{N}]+|[^\p{L}\p{N}\s]+/gu)?.length ?? 0;

const options = (...labels: [string, string][]) => labels.map(([value, label]) => ({ value, label }));

/** What a company asks before it takes a machine back. */
const returns = {
  name: 'Return of a machine',
  slug: 'return',
  description: 'Tells our workshop what is wrong and how the machine comes back.',
  fields: [
    {
      id: 'order_number',
      type: 'text',
      required: true,
      pattern: '[A-Z]{2}[0-9]{6}',
      answeredBy: 'agent',
      patternMessage: 'An order number has two letters and six digits, such as AB123456',
      agentHint: 'From the order system',
    },
    { id: 'customer_tier', type: 'hidden', agentHint: 'gold, silver or none, from the CRM' },
    {
      id: 'full_name',
      type: 'text',
      label: 'Name of the contact',
      required: true,
      maxLength: 120,
      placeholder: 'Ada Lovelace',
    },
    { id: 'email', type: 'email', label: 'Email address', required: true, placeholder: 'name@example.com' },
    {
      id: 'phone',
      type: 'phone',
      label: 'Phone',
      placeholder: '+41 44 123 45 67',
      description: 'Only for questions about the collection.',
    },
    {
      id: 'reason',
      type: 'select',
      label: 'Why does it come back?',
      required: true,
      options: options(
        ['broken', 'It is broken'],
        ['wrong', 'It is not what was ordered'],
        ['late', 'It came too late'],
        ['other', 'Another reason'],
      ),
    },
    {
      id: 'fault',
      type: 'textarea',
      label: 'What does not work?',
      required: true,
      maxLength: 2000,
      placeholder: 'It stops after ten minutes with E17',
      agentHint: 'Symptoms, not causes; name error codes',
      visibleWhen: { field: 'reason', op: 'eq', value: 'broken' },
    },
    {
      id: 'parts',
      type: 'multi_select',
      label: 'Which parts are concerned?',
      options: options(['motor', 'Motor'], ['belt', 'Belt'], ['panel', 'Control panel'], ['frame', 'Frame']),
      visibleWhen: { field: 'reason', op: 'in', value: ['broken', 'wrong'] },
    },
    {
      id: 'collection',
      type: 'radio',
      label: 'How does it come back?',
      required: true,
      options: options(['pickup', 'We collect it'], ['parcel', 'By parcel'], ['shop', 'To a shop']),
      page: 2,
    },
    {
      id: 'pickup_date',
      type: 'date',
      label: 'Day of collection',
      required: true,
      page: 2,
      visibleWhen: { field: 'collection', op: 'eq', value: 'pickup' },
    },
    {
      id: 'floor',
      type: 'number',
      label: 'Floor',
      min: -2,
      max: 60,
      page: 2,
      description: 'Without a lift we send two people.',
      visibleWhen: {
        all: [
          { field: 'collection', op: 'eq', value: 'pickup' },
          { not: { field: 'customer_tier', op: 'eq', value: 'gold' } },
        ],
      },
    },
    {
      id: 'photo',
      type: 'file',
      label: 'A picture of the damage',
      accept: ['image/*'],
      maxFiles: 3,
      page: 2,
      visibleWhen: { field: 'reason', op: 'eq', value: 'broken' },
    },
    { id: 'satisfied', type: 'boolean', label: 'Would you order from us again?', page: 3 },
    {
      id: 'consent',
      type: 'checkbox',
      label: 'I agree that the machine is opened for inspection',
      required: true,
      answeredBy: 'human',
      page: 3,
    },
  ],
  delivery: {
    type: 'email',
    subject: 'A machine comes back',
    replyTo: 'email',
    autoresponse: {
      to: 'email',
      subject: 'We have your announcement',
      message: 'Thank you. We answer within a day.',
    },
  },
  settings: {
    allowPartial: true,
    submitLabel: 'Announce the return',
    successMessage: 'Thank you. We answer within a day.',
    locale: 'en',
    allowedOrigins: ['https://www.example.com'],
    embedOrigins: ['https://www.example.com'],
    redirectUrl: 'https://www.example.com/returns/thanks',
    retentionDays: 730,
    theme: { accentColor: '#0b6e4f' },
    spam: { honeypot: true, minSeconds: 3 },
  },
};

describe.each(oneEngine('pglite'))('the agent schema on %s', (engine) => {
  let service: TestService;
  let formId: string;

  beforeAll(async () => {
    service = await startService({ engine });
    formId = (await service.givenPublishedForm(returns)).id;
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('says in fewer than half of the words what the form asks', async () => {
    const raw = await service.get(`/v1/forms/${formId}`);
    const brief = await service.get(`/v1/forms/${formId}/agent-schema?brief=true`);

    const { form, questions, json_schema: schema, example } = brief.json;
    expect(wordsOf(brief.json) / wordsOf(raw.json)).toBeLessThan(0.5);
    expect(form).toEqual({ name: returns.name, description: returns.description });
    expect(questions).toHaveLength(returns.fields.length);
    expect(questions.slice(5, 8)).toEqual([
      'reason (required): Why does it come back? Options: broken = It is broken, wrong = It is not what was ' +
        'ordered, late = It came too late, other = Another reason',
      'fault (required, if reason is "broken"): What does not work? Symptoms, not causes; name error codes',
      'parts (if reason is one of "broken", "wrong"): Which parts are concerned? Options: motor, belt, ' +
        'panel = Control panel, frame',
    ]);
    expect(questions.at(-1)).toMatch(/^consent \(checkbox, required, by a person\): I agree/);
    expect(schema.required).toEqual(['order_number', 'full_name', 'email', 'reason', 'collection']);
    expect(schema.properties.consent).toEqual({ readOnly: true, 'x-answered-by': 'human' });
    expect(example).toMatchObject({ reason: 'broken', fault: expect.any(String), collection: 'pickup' });
    expect(example).not.toHaveProperty('consent');
    expect(problemsOf(schema, { ...example, order_number: 'AB123456' })).toBe('No errors');
    expect(problemsOf(schema, { ...example, order_number: 'AB1' })).toMatch(/order_number must match/);
  });

  it('says what is left to be answered in a session, and what a person must answer', async () => {
    const prefill = { order_number: 'AB123456', reason: 'late', customer_tier: 'none' };
    const { session } = (await service.post(`/v1/forms/${formId}/sessions`, { prefill })).json;
    await service.patch(`/v1/sessions/${session.id}`, { answers: { full_name: 'Ada', phone: null } });

    const left = await service.get(`/v1/sessions/${session.id}/agent-schema`);

    const { questions, json_schema: schema, example, session: shown } = left.json;
    expect(shown).toEqual({ url: session.url, expires_at: session.expires_at });
    expect(questions.map((text: string) => text.split(/\W/)[0])).toEqual([
      'email',
      'phone',
      'collection',
      'pickup_date',
      'floor',
      'satisfied',
      'consent',
    ]);
    expect(questions).toContain('floor (if collection is "pickup"): Without a lift we send two people.');
    expect(Object.keys(schema.properties)).toHaveLength(questions.length);
    expect(schema.required).toEqual(['email', 'collection']);
    expect(problemsOf(schema, example)).toBe('No errors');
  });

  it('is for who may read sessions, as long as the session is open', async () => {
    const prefill = { order_number: 'AB123456' };
    const { session } = (await service.post(`/v1/forms/${formId}/sessions`, { prefill })).json;
    const path = `/v1/sessions/${session.id}/agent-schema`;

    expect(
      (await service.get(path, { key: await service.givenKey(['sessions:write']) })).json.error.reason,
    ).toBe('insufficient_scope');
    await service.post(`/v1/sessions/${session.id}/cancel`);
    expect((await service.get(path)).status).toBe(410);
    expect((await service.get('/v1/sessions/sess_none/agent-schema')).status).toBe(404);
  });
});

/** What is wrong with answers by a JSON Schema. */
function problemsOf(schema: object, answers: object): string {
  const ajv = new Ajv2020({ strict: false });
  ajvFormats.default(ajv);
  ajv.validate(schema, answers);
  return ajv.errorsText();
}
