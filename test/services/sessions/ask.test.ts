import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SessionOutcome, SessionStatus, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { removeIdleQuestions } from '../../../src/store/forms/questions.ts';
import { startAgent } from '../../mcp/agent.ts';
import { engines, oneEngine } from '../../support/database.ts';
import { startReceiver } from '../../support/receiver.ts';
import { anyone, deniedAs, id, refusedAs } from '../../support/replies.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const question = { fields: [{ label: 'Which date suits?', type: 'date', required: true }] };
const answers = { which_date_suits: '2026-12-01' };
const context = {
  title: 'Release 4.2',
  text: 'Line one\nline two',
  items: [
    { label: 'Changes', value: 'https://example.com/4.2', kind: 'link' },
    { label: 'Diff', value: '-  old\n+  new', kind: 'diff' },
  ],
};

describe.each(engines)('a question of one call on %s', (engine) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  const ask = (body: object) => service.post('/v1/sessions', body);
  const asked = async (body: object = { definition: question }) => {
    const { json, status } = await ask(body);
    expect([status, json.error]).toEqual([201, undefined]);
    return json.session;
  };
  const submit = (sessionId: string, given: object = answers) =>
    service.post(`/v1/sessions/${sessionId}/submit`, { answers: given });

  it('makes one hidden form of equal questions, also of many at once, and another for another retention', async () => {
    const fields = [{ label: 'Only here?', type: 'boolean' }];
    const sessions = await Promise.all(Array.from({ length: 30 }, () => asked({ definition: { fields } })));
    const other = await asked({ definition: { fields }, retention_days: 7 });

    const forms = new Set(sessions.map(({ form_id }) => form_id));
    expect([forms.size, forms.has(other.form_id)]).toEqual([1, false]);
    const rows = await service.database.select('select id from forms where id = any($1)', [[...forms]]);
    expect(rows).toHaveLength(1);
  });

  it('ends once, whatever comes at the same time', async () => {
    for (let round = 0; round < 8; round += 1) {
      const session = await asked({
        definition: question,
        allow_decline: true,
        expires_in: 1 + (round % 2) * 60,
      });
      const calls = await Promise.all([
        submit(session.id),
        service.post(`/v1/sessions/${session.id}/decline`),
        service.post(`/v1/sessions/${session.id}/cancel`),
        submit(session.id),
      ]);
      const { json } = await service.get(`/v1/sessions/${session.id}`);
      const won = calls.filter(({ status }) => status < 300);
      // That of a session whose time was over first is told a moment later.
      const events = await until(async () => {
        const told = await service.database.select('select type from events where session_id = $1', [
          session.id,
        ]);
        return told.length > 0 && told;
      });

      expect(won.length).toBe(json.session.outcome === 'expired' ? 0 : 1);
      expect(json.session.outcome).not.toBeNull();
      expect(events).toHaveLength(1);
      expect(String(events[0]?.type).split('.')[1]).toBe(
        json.session.outcome === 'submitted' ? 'created' : json.session.outcome,
      );
    }
  });

  it('goes so many days after the end of its last session, and is made again then', async () => {
    const definition = { fields: [{ label: 'For a day?' }] };
    const first = await asked({ definition, retention_days: 1 });
    const day = "interval '25 hours'";
    const formId = first.form_id;
    const isThere = async () => (await service.get(`/v1/forms/${formId}`)).status;
    // The service looks each minute, too: whichever of the two finds the form first removes it.
    const look = async () => {
      await service.database.execute('update forms set question_due_at = now() where id = $1', [formId]);
      const { deleted } = await removeIdleQuestions(service.database, 100);
      removed.push(...deleted.map((form) => form.id));
      return isThere();
    };
    const removed: string[] = [];
    /** The service tells of what it removes in the audit log. */
    const told = () =>
      service.database.select(`select 1 from audit_entries where action = 'form.removed' and form_id = $1`, [
        formId,
      ]);

    const whileOpen = await look();
    await service.post(`/v1/sessions/${first.id}/cancel`);
    const whileKept = await look();
    await service.database.execute(
      `update sessions set cancelled_at = cancelled_at - ${day}, expires_at = expires_at - ${day} where id = $1`,
      [first.id],
    );
    await until(async () => (await look()) === 404);
    await until(async () => removed.length + (await told()).length === 1);
    const again = await asked({ definition, retention_days: 1 });

    expect([whileOpen, whileKept, again.form_id === formId]).toEqual([200, 200, false]);
  });

  // The database has no part in what follows.
  if (!oneEngine('pglite').includes(engine)) return;

  it('needs nothing but a key, and gives the answer to who waits', async () => {
    const session = await asked();
    const waiting = service.get(`/v1/sessions/${session.id}?wait=30`);
    await submit(session.id);
    const { json } = await waiting;

    expect(session).toMatchObject({
      form_id: id('form'),
      status: 'open',
      outcome: null,
      allow_decline: false,
    });
    expect(json.session).toMatchObject({ status: 'submitted', outcome: 'submitted' });
    expect(json.submission).toMatchObject({ answers, session_id: session.id });
  });

  it('gives the same answer by REST, gRPC and MCP', async () => {
    await using agent = await startAgent(service);
    const rpc = service.client(SessionsService);
    const schema = JSON.parse(JSON.stringify(z.toJSONSchema(z.object({ which_date_suits: z.iso.date() }))));
    const byRpc = (await rpc.createSession({ subject: { case: 'schema', value: schema } })).session?.id ?? '';
    const byMcp = (await agent.use('ask_person', { questions: question.fields })).facts.session_id;
    const byRest = (await asked()).id;

    for (const each of [byRpc, byMcp, byRest]) await submit(each);
    const rest = (await service.get(`/v1/sessions/${byRest}`)).json;
    const { session, submission } = await rpc.awaitSession({ sessionId: byRpc });
    const { facts } = await agent.use('wait_for_session', { session_id: byMcp });

    expect([rest.session.outcome, rest.submission.answers]).toEqual(['submitted', answers]);
    expect([session?.outcome, submission?.answers]).toEqual([SessionOutcome.SUBMITTED, answers]);
    expect([facts.outcome, facts.answers]).toEqual(['submitted', answers]);
  });

  it('is reached by its sessions alone', async () => {
    const { form_id: formId } = await asked();
    const listed = await service.get('/v1/forms?limit=100');
    const agent = await startAgent(service);
    const forms = await agent.use('list_forms', { limit: 100 });
    await agent[Symbol.asyncDispose]();
    const keyless = [
      await service.post(`/api/forms/${formId}/submissions`, { answers }, anyone),
      await service.post(`/api/forms/${formId}/activate?token=x`, { email: 'a@example.com' }, anyone),
      await service.get(`/api/forms/${formId}/activate?token=x`, anyone),
      await service.get(`/f/${formId}`, anyone),
      await service.post(`/f/${formId}`, undefined, anyone),
      await service.post(`/api/forms/${formId}/uploads?field=a&filename=a.txt`, undefined, anyone),
    ];
    const withKey = [
      await service.post(`/v1/forms/${formId}/submissions`, { answers }),
      await service.post(`/v1/forms/${formId}/sessions`),
      await service.post(`/v1/forms/${formId}/archive`),
      await service.post(`/v1/forms/${formId}/owner`, { email: 'a@example.com' }),
      await service.post(`/v1/forms/${formId}/versions`, {
        fields: [{ id: 'a', type: 'text' }],
        name: 'N',
        slug: 's',
        delivery: { type: 'email' },
      }),
    ];

    const ids = listed.json.forms.map(({ id: each }: { id: string }) => each);
    expect([ids, JSON.stringify(forms.facts)]).toEqual([
      expect.not.arrayContaining([formId]),
      expect.not.stringContaining(formId),
    ]);
    expect(keyless.map(({ status }) => status)).toEqual(keyless.map(() => 404));
    expect(withKey.map(({ status }) => status)).toEqual(withKey.map(() => 404));
    expect((await service.get(`/v1/forms/${formId}`)).json.form).toMatchObject({ owner_email: null });
    expect((await service.get(`/v1/forms/${formId}/submissions`)).status).toBe(200);
  });

  it('refuses what does not fit, at its place', async () => {
    const many = Array.from({ length: 21 }, (_, n) => ({ label: `Q${n}` }));
    const link = { label: 'x', value: 'javascript:alert(1)', kind: 'link' };

    expect(refusedAs(await ask({ definition: { ...question, delivery: { type: 'email' } } }))).toEqual([
      ['definition.delivery', 'unrecognized_keys'],
    ]);
    expect(refusedAs(await ask({ definition: { fields: many } }))).toEqual([
      ['definition.fields', 'too_big'],
    ]);
    expect(refusedAs(await ask({ definition: { fields: [{ label: 'A', type: 'select' }] } }))).toEqual([
      ['definition.fields.0.options', 'invalid_type'],
    ]);
    expect(refusedAs(await ask({ schema: { type: 'object', properties: { a: { type: 'null' } } } }))).toEqual(
      [['schema.properties.a.type', 'custom']],
    );
    expect(refusedAs(await ask({}))).toEqual([['', 'custom']]);
    expect(refusedAs(await ask({ definition: question, context: { items: [link] } }))).toEqual([
      ['context.items.0.value', 'invalid_string'],
    ]);
    expect(refusedAs(await ask({ definition: question, context: { text: 'x'.repeat(70_000) } }))).toEqual([
      ['context', 'too_big'],
    ]);
  });

  it('shows its context where the session and the submission are read, and its checksum alone in events', async () => {
    await using receiver = await startReceiver();
    await service.post('/v1/webhooks', {
      url: receiver.url,
      events: ['submission.created', 'session.declined'],
    });
    const session = await asked({ definition: question, context, allow_decline: true });
    const { submission_id } = (await submit(session.id)).json;
    const declining = await asked({ definition: question, context, allow_decline: true });
    await service.post(`/v1/sessions/${declining.id}/decline`, { reason: 'Not mine' });

    const read = await service.get(`/v1/submissions/${submission_id}`);
    const [first, second] = await receiver.expectRequests(2);
    const bodies = [first, second].map((request) => JSON.parse(request?.body ?? '{}'));
    const created = bodies.find(({ event }) => event === 'submission.created');
    const declined = bodies.find(({ event }) => event === 'session.declined');

    expect([session.context, read.json.submission.context]).toEqual([context, context]);
    expect(created.data).toMatchObject({
      outcome: 'submitted',
      contextChecksum: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(declined.data).toMatchObject({
      outcome: 'declined',
      reason: 'Not mine',
      contextChecksum: created.data.contextChecksum,
    });
    expect(JSON.stringify(bodies)).not.toContain('Release 4.2');
  });

  it('can be declined where that is allowed, and takes nothing afterwards', async () => {
    const session = await asked({ definition: question, allow_decline: true });
    const fixed = await asked();

    const declined = await service.post(`/v1/sessions/${session.id}/decline`, { reason: 'Ask Ann' });
    const refused = [
      await submit(session.id),
      await service.patch(`/v1/sessions/${session.id}`, { metadata: {} }),
      await service.post(`/v1/sessions/${session.id}/cancel`),
      await service.post(`/v1/sessions/${session.id}/decline`),
    ];

    expect(declined.json.session).toMatchObject({
      status: 'declined',
      outcome: 'declined',
      reason: 'Ask Ann',
    });
    for (const each of refused) expect(deniedAs(each)).toEqual([410, 'validation_failed', 'declined']);
    expect(deniedAs(await service.post(`/v1/sessions/${fixed.id}/decline`))).toEqual([
      409,
      'validation_failed',
      'conflict',
    ]);
    expect((await service.get(`/v1/sessions/${session.id}?wait=5`)).json.session.outcome).toBe('declined');
    const rpc = await service.client(SessionsService).getSession({ sessionId: session.id });
    expect([rpc.session?.status, rpc.session?.outcome]).toEqual([
      SessionStatus.DECLINED,
      SessionOutcome.DECLINED,
    ]);
    await using agent = await startAgent(service);
    const { facts } = await agent.use('get_session', { session_id: session.id });
    expect(facts).toMatchObject({
      outcome: 'declined',
      next: expect.stringContaining('do not assume consent'),
      untrusted: ['reason'],
    });
  });

  it('shows the submission to keys that may read answers alone', async () => {
    const session = await asked();
    await submit(session.id);
    const key = await service.givenKey(['sessions:read']);

    const { json } = await service.get(`/v1/sessions/${session.id}`, { key });

    expect([json.session.status, json.submission]).toEqual(['submitted', undefined]);
  });
});

describe('where keys are not required', () => {
  it('questions and contexts of strangers are refused, and hidden forms are not there for them', async () => {
    await using service = await startService({ env: { REQUIRE_API_KEY: 'false' } });
    const { json } = await service.post('/v1/sessions', { definition: question });
    const formId = json.session.form_id;
    const form = await service.givenPublishedForm({});

    const denied = [
      await service.post('/v1/sessions', { definition: question }, anyone),
      await service.post('/v1/sessions', { schema: {} }, anyone),
      await service.post(`/v1/forms/${form.id}/sessions`, { context: { title: 'Pay here' } }, anyone),
    ];
    const hidden = [
      await service.get(`/v1/forms/${formId}/agent-schema`, anyone),
      await service.post(`/v1/forms/${formId}/sessions`, {}, anyone),
      await service.post(`/v1/forms/${formId}/submissions`, { answers }, anyone),
      await service.post(
        '/v1/webhooks',
        { url: 'https://example.com', events: ['session.expired'], form_id: formId },
        anyone,
      ),
      await service.post('/v1/sessions', { form_id: formId }, anyone),
    ];

    for (const each of denied) expect(deniedAs(each)).toEqual([401, 'unauthorized', 'missing_key']);
    expect(hidden.map(({ status }) => status)).toEqual(hidden.map(() => 404));
  });
});
