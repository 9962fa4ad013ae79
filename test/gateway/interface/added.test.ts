import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { anIsoTime, deniedAs, id, refusedAs } from '../../support/replies.ts';
import { contactForm, startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe.each(oneEngine('pglite'))('the routes beside the interface on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('read and list forms, with who made them', async () => {
    const form = await service.givenPublishedForm();
    const publicDraft = await service.givenDraft({}, { key: null });

    const read = await service.get(`/v1/forms/${form.id}`);
    const list = await service.get('/v1/forms?limit=2');

    const listed = {
      id: form.id,
      name: 'Contact',
      slug: 'contact',
      status: 'published',
      current_version_id: form.current_version_id,
      created_by: id('key'),
      owner_email: 'owner@example.com',
      pending_owner_email: null,
      key: null,
      managed_by: null,
      created_at: anIsoTime,
      activated_at: anIsoTime,
      archived_at: null,
      closed_at: null,
    };
    expect(read.json.form).toEqual({
      ...listed,
      definition: expect.objectContaining({ name: 'Contact' }),
      share: expect.objectContaining({ page_url: expect.any(String), qr_url: expect.any(String) }),
    });
    expect(list.json.forms).toEqual([
      expect.objectContaining({ id: publicDraft.id, status: 'draft', created_by: 'public' }),
      listed,
    ]);
  });

  it('publish versions, reuse an unchanged one, and refuse drafts', async () => {
    const form = await service.givenPublishedForm();
    const draft = await service.givenDraft();
    const publish = (formId: string, definition: object) =>
      service.post(`/v1/forms/${formId}/versions`, { ...contactForm, ...definition });

    const changed = await publish(form.id, { name: 'Second' });
    const same = await publish(form.id, { name: 'Second' });
    const back = await publish(form.id, {});

    expect(changed.status).toBe(201);
    expect(changed.json.version).toEqual({
      id: id('ver'),
      number: 2,
      checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
      current: true,
      breaking: false,
      created_at: anIsoTime,
    });
    expect(changed.json.changes).toMatchObject([{ path: 'name', kind: 'text_changed', breaks: [] }]);
    expect(changed.json.form).toMatchObject({ name: 'Second', current_version_id: changed.json.version.id });
    expect(same.json.version).toEqual(changed.json.version);
    expect(back.json.version.id).toBe(form.current_version_id);
    expect(deniedAs(await publish(draft.id, {}))).toEqual([409, 'validation_failed', 'conflict']);
  });

  it('keep what a form promises, and say beforehand what a version would break', async () => {
    const settings = { compatibility: 'backward' };
    const form = await service.givenPublishedForm({ settings });
    const next = { ...contactForm, settings, fields: [{ id: 'other', type: 'text' }] };
    const publish = (query: string) => service.post(`/v1/forms/${form.id}/versions${query}`, next);

    const checked = await service.post(`/v1/forms/validate?against=${form.id}`, next);
    const refused = await publish('');
    const conflict = await publish('?allow_breaking=true&expected_version_id=ver_other');
    const published = await publish(`?allow_breaking=true&expected_version_id=${form.current_version_id}`);

    expect(checked.json).toMatchObject({ ok: true, breaking: true });
    expect(deniedAs(refused)).toEqual([409, 'validation_failed', 'breaking_change']);
    expect(refused.json.error.changes).toContainEqual({
      path: 'fields.email',
      kind: 'required_field_removed',
      breaks: ['clients', 'webhooks', 'csv', 'prefill', 'sessions'],
      backward_compatible: false,
      forward_compatible: false,
      open_sessions: 0,
      webhooks: 0,
      webhook_ids: [],
    });
    expect(checked.json.changes).toEqual(expect.arrayContaining(refused.json.error.changes));
    expect(deniedAs(conflict)).toEqual([409, 'validation_failed', 'conflict']);
    expect(published.json).toMatchObject({
      version: { number: 2, breaking: true },
      changes: checked.json.changes,
    });
    expect(deniedAs(await service.post('/v1/forms/validate?against=form_none', next))).toEqual([
      404,
      'not_found',
      'not_found',
    ]);
  });

  it('bring a form with a key to what a file says', async () => {
    const path = '/v1/forms/by-key/contact.v1';
    const file = { ...contactForm, owner: 'owner@example.com', managed_by: 'forms/' };

    const made = await service.put(path, file);
    const same = await service.put(path, file);
    const changed = await service.put(path, { ...file, name: 'Second' });
    const refused = await service.put(path, { ...contactForm, slug: '', owner: 1, more: true });

    expect(made.json).toMatchObject({
      outcome: 'created',
      form: { key: 'contact.v1', managed_by: 'forms/', status: 'published' },
    });
    expect(made.json.form.definition).not.toHaveProperty('owner');
    expect([same, changed].map(({ json }) => json.outcome)).toEqual(['unchanged', 'updated']);
    const misnamed = await service.get('/v1/forms?key=no%00key&managed_by=no%00folder');
    expect([misnamed.status, misnamed.json.error.details.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ['key', 'managed_by'],
    ]);
    expect((await service.get('/v1/forms?key=contact.v1')).json.forms).toMatchObject([
      { id: made.json.form.id, name: 'Second' },
    ]);
    expect(refusedAs(refused)).toEqual([
      ['owner', 'invalid_type'],
      ['slug', 'invalid_string'],
      ['more', 'unrecognized_keys'],
    ]);
    expect(refusedAs(await service.put('/v1/forms/by-key/Not%20a%20key', file))).toEqual([
      ['key', 'invalid_string'],
    ]);
    const given = await service.patch(`/v1/forms/${made.json.form.id}`, { managed_by: null });
    expect(given.json.form).toMatchObject({ key: 'contact.v1', managed_by: null });
  });

  it('list the versions of a form, newest first, and read one by its number', async () => {
    const form = await service.givenPublishedForm();
    await service.post(`/v1/forms/${form.id}/versions`, { ...contactForm, name: 'Second' });
    const versions = (rest: string) => service.get(`/v1/forms/${form.id}/versions${rest}`);

    const first = await versions('?limit=1');
    const last = await versions(`?limit=1&cursor=${first.json.next_cursor}`);
    const read = await versions('/1');

    const listed = {
      id: form.current_version_id,
      number: 1,
      checksum: expect.stringMatching(/^[0-9a-f]{64}$/),
      current: false,
      breaking: false,
      created_at: anIsoTime,
    };
    expect(first.json.versions).toMatchObject([{ number: 2, current: true }]);
    expect(last.json).toEqual({ versions: [listed], next_cursor: null });
    expect(read.json).toEqual({
      version: { ...listed, definition: expect.objectContaining({ name: 'Contact' }) },
    });
    for (const number of ['3', '0', '-1', '1.5', 'one', '99999999999']) {
      expect([number, ...deniedAs(await versions(`/${number}`))]).toEqual([
        number,
        404,
        'not_found',
        'not_found',
      ]);
    }
    expect(deniedAs(await versions('?cursor=x'))).toEqual([400, 'validation_failed', 'bad_request']);
  });

  it('delete an archived form, of which nothing is found then, and refuse any other', async () => {
    const form = await service.givenPublishedForm();
    const answers = { email: 'ann@example.com' };
    const submitted = await service.post(`/api/forms/${form.id}/submissions`, { answers });
    const early = await service.delete(`/v1/forms/${form.id}`);
    await service.post(`/v1/forms/${form.id}/archive`);

    const deleted = await service.delete(`/v1/forms/${form.id}`);

    expect(deniedAs(early)).toEqual([409, 'validation_failed', 'conflict']);
    expect([deleted.status, deleted.json]).toEqual([200, { ok: true }]);
    for (const gone of [
      await service.delete(`/v1/forms/${form.id}`),
      await service.get(`/v1/forms/${form.id}`),
      await service.get(`/v1/forms/${form.id}/versions`),
      await service.get(`/v1/forms/${form.id}/submissions`),
      await service.get(`/v1/submissions/${submitted.json.submission_id}`),
      await service.post(`/api/forms/${form.id}/submissions`, { answers }),
    ]) {
      expect(deniedAs(gone)).toEqual([404, 'not_found', 'not_found']);
    }
  });

  it('archive a form, whose submits, sessions and versions then answer 410', async () => {
    const form = await service.givenPublishedForm();
    const { session } = (await service.post(`/v1/forms/${form.id}/sessions`)).json;
    const answers = { email: 'ann@example.com' };

    const archived = await service.post(`/v1/forms/${form.id}/archive`);
    const again = await service.post(`/v1/forms/${form.id}/archive`);

    expect([archived.status, archived.json.form.status]).toEqual([200, 'archived']);
    expect(archived.json.form.archived_at).toEqual(anIsoTime);
    expect(again.json).toEqual(archived.json);
    for (const refused of [
      await service.post(`/api/forms/${form.id}/submissions`, { answers }),
      await service.post(`/v1/forms/${form.id}/submissions`, { answers }),
      await service.post(`/v1/sessions/${session.id}/submit`, { answers }),
      await service.patch(`/v1/sessions/${session.id}`, { extend_by: 5 }),
      await service.post(`/v1/forms/${form.id}/versions`, contactForm),
    ]) {
      expect(deniedAs(refused)).toEqual([410, 'validation_failed', 'archived']);
    }
  });

  it('ask another owner, and refuse a draft and a bad address', async () => {
    const form = await service.givenPublishedForm();
    const draft = await service.givenDraft();

    const asked = await service.post(`/v1/forms/${form.id}/owner`, { email: 'next@example.com' });
    const bad = await service.post(`/v1/forms/${form.id}/owner`, { email: 'nobody' });
    const early = await service.post(`/v1/forms/${draft.id}/owner`, { email: 'next@example.com' });

    expect([asked.status, asked.json]).toEqual([202, { ok: true }]);
    expect(refusedAs(bad)).toEqual([['email', 'invalid_string']]);
    expect(deniedAs(early)).toEqual([409, 'validation_failed', 'conflict']);
    expect((await service.get(`/v1/forms/${form.id}`)).json.form.owner_email).toBe('owner@example.com');
  });

  it('hand a form over once the other owner agrees, and say so to the former one by mail', async () => {
    const form = await service.givenPublishedForm({ name: 'Handed over' });
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [form.id]);
    const next = `${crypto.randomUUID()}@example.com`;
    const mailTo = async (address: string, text: RegExp) =>
      (await service.mails())
        .filter((mail) => mail.includes(`To: ${address}`))
        .flatMap((mail) => text.exec(mail.replaceAll('=\r\n', ''))?.[0] ?? [])[0];
    const confirm = /\/mail\/change-owner\.[\w.-]+/;

    await service.post(`/v1/forms/${form.id}/owner`, { email: next });
    await until(async () => (await mailTo(next, confirm)) !== undefined);
    const taken = await service.call('POST', (await mailTo(next, confirm)) ?? '', '', {
      key: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });

    expect(taken.status).toBe(200);
    expect((await service.get(`/v1/forms/${form.id}`)).json.form.owner_email).toBe(next);
    await until(async () => (await mailTo('owner@example.com', /a new owner: Handed over/)) !== undefined);
  });

  it('list the mails of a form among its deliveries', async () => {
    const form = await service.givenDraft();
    await service.post(form.activate_url, { email: 'mailed@example.com' });

    await expect
      .poll(async () => (await service.get(`/v1/forms/${form.id}/deliveries`)).json.deliveries)
      .toMatchObject([
        { channel: 'mail', address: 'mailed@example.com', webhook_id: null, status: 'delivered' },
      ]);
  });

  it('export as CSV that no spreadsheet runs, and as NDJSON', async () => {
    const form = await service.givenPublishedForm();
    await service.post(`/api/forms/${form.id}/submissions`, {
      answers: { email: 'ann@example.com', message: ' =1+1, "two"\nlines' },
    });
    const path = `/v1/forms/${form.id}/submissions/export`;

    const csv = await service.get(path);
    const ndjson = await service.get(`${path}?format=ndjson`);

    const [head, ...rows] = csv.text.split('\r\n');
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(head).toBe('id,created_at,status,source,session_id,email,message,_version,_metadata');
    expect(rows[0]).toMatch(
      /^sub_\w+,[\dT:.Z-]+,accepted,api,,ann@example\.com,"' =1\+1, ""two""\nlines",1,$/,
    );
    expect(JSON.parse(ndjson.text).answers).toEqual({
      email: 'ann@example.com',
      message: ' =1+1, "two"\nlines',
    });
  });

  it('export fields named like columns of the service, and what a submission belongs to', async () => {
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'status', type: 'text', label: 'Status, of the order' },
        { id: 'created_at', type: 'text', personal: true },
      ],
    });
    const { session } = (await service.post(`/v1/forms/${form.id}/sessions`, { metadata: { order: 5 } }))
      .json;
    await service.post(`/v1/sessions/${session.id}/submit`, { answers: { status: 'See you ;-)' } });
    const path = `/v1/forms/${form.id}/submissions/export`;

    const [head, row] = (await service.get(path)).text.split('\r\n');
    const line = JSON.parse((await service.get(`${path}?format=ndjson`)).text);

    expect(head).toBe(
      'id,created_at,status,source,session_id,"Status, of the order (status)",Created at (created_at) (personal),_version,_metadata',
    );
    expect(row).toMatch(/,accepted,api,sess_\w+,See you ;-\),,1,"\{""order"":5\}"$/);
    expect(line).toMatchObject({ version: 1, metadata: { order: 5 } });
  });

  it('delete a submission with everything of it', async () => {
    const form = await service.givenPublishedForm();
    const { json } = await service.post(`/api/forms/${form.id}/submissions`, {
      answers: { email: 'a@example.com' },
    });
    const path = `/v1/submissions/${json.submission_id}`;

    const deleted = await service.delete(path);

    expect([deleted.status, deleted.json]).toEqual([200, { ok: true }]);
    expect(deniedAs(await service.get(path))).toEqual([404, 'not_found', 'not_found']);
    expect(deniedAs(await service.delete(path))).toEqual([404, 'not_found', 'not_found']);
    const events = 'select 1 from events where submission_id = $1';
    expect(await service.database.select(events, [json.submission_id])).toEqual([]);
  });

  it('change, rotate, test and replay webhooks', async () => {
    const hook = { url: 'http://127.0.0.1:1/hook', events: ['submission.created'] };
    const { webhook } = (await service.post('/v1/webhooks', hook)).json;
    const path = `/v1/webhooks/${webhook.id}`;

    const off = await service.patch(path, { active: false, events: ['session.expired'] });
    const on = await service.patch(path, { active: true });
    const rotated = await service.post(`${path}/rotate-secret`, { effective_in: 604_800 });
    const tested = await service.post(`${path}/test`);
    const replayed = await service.post(`${path}/replay`);

    expect(off.json.webhook).toMatchObject({
      active: false,
      events: ['session.expired'],
      disabled_at: anIsoTime,
      disabled_reason: expect.any(String),
    });
    expect(on.json.webhook).toMatchObject({ active: true, disabled_at: null, disabled_reason: null });
    expect(rotated.json).toEqual({
      webhook: on.json.webhook,
      secret: expect.stringMatching(/^whsec_/),
      effective_at: anIsoTime,
    });
    expect([tested.status, tested.json.delivery.event]).toEqual([202, 'webhook.test']);
    expect([replayed.status, replayed.json]).toEqual([
      202,
      { ok: true, count: expect.any(Number), more: false, next_created_after: null },
    ]);
    expect(refusedAs(await service.post(`${path}/rotate-secret`, { effective_in: 604_801 }))).toEqual([
      ['effective_in', 'too_big'],
    ]);
    expect(refusedAs(await service.patch(path, { url: 'nowhere' }))).toEqual([['url', 'invalid_string']]);
    expect(refusedAs(await service.patch(path, { events: [] }))).toEqual([['events', 'too_small']]);
  });

  it('make, list and revoke keys', async () => {
    const made = await service.post('/v1/keys', { name: 'ci', scopes: ['forms:read'], expires_in: 60 });
    const { key, secret } = made.json;
    const asThatKey = { key: secret };

    expect(made.status).toBe(201);
    expect(made.json).toEqual({
      key: {
        id: id('key'),
        name: 'ci',
        scopes: ['forms:read'],
        project: 'default',
        last4: secret.slice(-4),
        created_at: anIsoTime,
        expires_at: anIsoTime,
        last_used_at: null,
        created_by: id('key'),
      },
      secret: expect.stringMatching(/^hfs_[0-9A-Za-z]{43}$/),
    });
    expect((await service.get('/v1/forms', asThatKey)).status).toBe(200);
    // The use of a key is written after the reply.
    await expect
      .poll(async () => (await service.get('/v1/keys')).json.keys)
      .toContainEqual({ ...key, last_used_at: anIsoTime });
    const list = await service.get('/v1/keys');
    expect(list.text).not.toContain(secret);
    const page = await service.get('/v1/keys?limit=1');
    const next = await service.get(`/v1/keys?limit=1&cursor=${page.json.next_cursor}`);
    expect([page.json.keys[0].id, list.json.next_cursor]).toEqual([key.id, null]);
    expect(next.json.keys).toHaveLength(1);
    expect(deniedAs(await service.get('/v1/keys?limit=0'))[0]).toBe(400);
    expect((await service.delete(`/v1/keys/${key.id}`)).json).toEqual({ ok: true });
    expect(deniedAs(await service.get('/v1/forms', asThatKey))).toEqual([401, 'unauthorized', 'invalid_key']);
    expect(deniedAs(await service.delete(`/v1/keys/${key.id}`))).toEqual([404, 'not_found', 'not_found']);
    expect(refusedAs(await service.post('/v1/keys', { name: 'ci', scopes: ['all'] }))).toEqual([
      ['scopes.0', 'invalid_enum_value'],
    ]);
  });
});
