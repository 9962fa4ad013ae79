import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { oneEngine } from '../../support/database.ts';
import { startReceiver } from '../../support/receiver.ts';
import { deniedAs, refusedAs } from '../../support/replies.ts';
import { contactForm, startService, type TestService } from '../../support/server.ts';

describe.each(oneEngine('pglite'))('the routes of sessions beside the interface on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('list the sessions of a form, newest first, by page and by status', async () => {
    const { path, opened } = await givenSessions(3);
    const [oldest, middle, newest] = opened;
    await service.post(`/v1/sessions/${middle?.id}/cancel`);
    const answers = { email: 'ann@example.com' };
    await service.post(`/v1/sessions/${oldest?.id}/submit`, { answers });
    const ids = ({ json }: { json: { sessions: { id: string }[] } }) => json.sessions.map(({ id }) => id);

    const first = await service.get(`${path}?limit=2`);
    const second = await service.get(`${path}?limit=2&cursor=${first.json.next_cursor}`);

    expect(first.json.sessions[0]).toEqual((await service.get(`/v1/sessions/${newest?.id}`)).json.session);
    expect([ids(first), ids(second), second.json.next_cursor]).toEqual([
      [newest?.id, middle?.id],
      [oldest?.id],
      null,
    ]);
    expect(ids(await service.get(`${path}?status=open`))).toEqual([newest?.id]);
    expect(ids(await service.get(`${path}?status=submitted`))).toEqual([oldest?.id]);
    expect(ids(await service.get(`${path}?status=cancelled`))).toEqual([middle?.id]);
    expect(ids(await service.get(`${path}?status=expired`))).toEqual([]);
  });

  it('list sessions that hold more than a page may have', async () => {
    const note = 'x'.repeat(9_000);
    const fields = Array.from({ length: 25 }, (_, index) => ({ id: `note${index}`, type: 'text' }));
    const prefill = Object.fromEntries(fields.map(({ id }) => [id, note]));
    const { path, opened } = await givenSessions(12, { prefill }, {}, fields);

    const all = await service.get(`${path}?limit=11`);
    const page = await service
      .client(SessionsService)
      .listSessions({ formId: path.split('/')[3] ?? '', pageSize: 11 });

    const ids = opened.map(({ id }) => id).reverse();
    expect(all.json.sessions.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 11));
    expect(all.json.next_cursor).toBe(ids[10]);
    expect(page.sessions.map(({ id }) => id)).toEqual(ids.slice(0, 9));
    expect(page.nextPageToken).toBe(ids[8]);
  });

  it('refuse a status, a page and a form that are not there', async () => {
    const { path, opened } = await givenSessions(1);
    const { opened: others } = await givenSessions(1);
    const stranger = await service.givenKey(['sessions:read', 'sessions:write'], 'strangers');

    for (const query of ['status=gone', 'cursor=sess_none', `cursor=${others[0]?.id}`, 'limit=0']) {
      const refused = await service.get(`${path}?${query}`);
      expect(deniedAs(refused), query).toEqual([400, 'validation_failed', 'bad_request']);
      expect(refused.json.error.details[0].path).toBe(query.split('=')[0]);
    }
    for (const hidden of [
      await service.get(path, { key: stranger }),
      await service.get('/v1/forms/form_none/sessions'),
      await service.post(`/v1/sessions/${opened[0]?.id}/cancel`, undefined, { key: stranger }),
    ]) {
      expect(deniedAs(hidden)).toEqual([404, 'not_found', 'not_found']);
    }
    expect((await service.get(`/v1/forms/${(await service.givenDraft()).id}/sessions`)).json).toEqual({
      sessions: [],
      next_cursor: null,
    });
  });

  it('cancel a session, which then answers 410 to everybody, and tell webhooks that asked for it', async () => {
    await using receiver = await startReceiver();
    const { opened, formId } = await givenSessions(1, { metadata: { order: 7 } });
    const path = `/v1/sessions/${opened[0]?.id}`;
    const webhook = { url: receiver.url, events: ['session.cancelled'], form_id: formId };
    expect((await service.post('/v1/webhooks', webhook)).status).toBe(201);

    const cancelled = await service.post(`${path}/cancel`);
    const again = await service.post(`${path}/cancel`);
    const [told] = await receiver.expectRequests(1);

    expect([again.status, again.json]).toEqual([200, cancelled.json]);
    expect([cancelled.status, cancelled.json.session.status]).toEqual([200, 'cancelled']);
    expect((await service.get(path)).json).toEqual(cancelled.json);
    const answers = { email: 'ann@example.com' };
    for (const refused of [
      await service.post(`${path}/submit`, { answers }),
      await service.patch(path, { extend_by: 5 }),
      await service.post(
        `/f/${opened[0]?.id}`,
        { answers },
        { key: null, headers: { accept: 'application/json' } },
      ),
    ]) {
      expect(deniedAs(refused)).toEqual([410, 'validation_failed', 'cancelled']);
    }
    const page = await service.get(`/f/${opened[0]?.id}`, { key: null, headers: { accept: 'text/html' } });
    expect(page.status).toBe(410);
    expect(page.text).toContain('This link is no longer needed');
    expect(JSON.parse(told?.body ?? '')).toMatchObject({
      event: 'session.cancelled',
      data: { sessionId: opened[0]?.id, formId, metadata: { order: 7 } },
    });
  });

  it('refuse to cancel what has been submitted', async () => {
    const { opened } = await givenSessions(1);
    const path = `/v1/sessions/${opened[0]?.id}`;
    await service.post(`${path}/submit`, { answers: { email: 'ann@example.com' } });

    expect(deniedAs(await service.post(`${path}/cancel`))).toEqual([409, 'validation_failed', 'conflict']);
    expect((await service.get(path)).json.session.status).toBe('submitted');
  });

  it('let one of a submission and a cancellation win', async () => {
    const { opened } = await givenSessions(20);
    const answers = { email: 'ann@example.com' };

    const results = await Promise.all(
      opened.map(async ({ id }) => {
        const [submitted, cancelled] = await Promise.all([
          service.post(`/v1/sessions/${id}/submit`, { answers }),
          service.post(`/v1/sessions/${id}/cancel`),
        ]);
        const { status } = (await service.get(`/v1/sessions/${id}`)).json.session;
        return [submitted.status, cancelled.status, status].join();
      }),
    );

    const possible = ['201,409,submitted', '410,200,cancelled'];
    expect(results.filter((result) => !possible.includes(result))).toEqual([]);
  });

  it('send the person back: at once, or by a link where the form has a message', async () => {
    const return_url = 'https://shop.example/orders/7?paid=1';
    const plain = await givenSessions(1, { return_url }, { redirectUrl: 'https://form.example/' });
    const wordy = await givenSessions(1, { return_url }, { successMessage: 'Well done.' });
    const submit = (id = '') =>
      service.call('POST', `/f/${id}`, 'email=ann%40example.com&_step=1&_action=submit', {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
      });

    const atOnce = await submit(plain.opened[0]?.id);
    const byLink = await submit(wordy.opened[0]?.id);

    expect([atOnce.status, atOnce.headers.get('location')]).toEqual([303, return_url]);
    expect(byLink.status).toBe(200);
    expect(byLink.text).toContain('Well done.');
    expect(byLink.text).toContain('href="https://shop.example/orders/7?paid=1"');
  });

  it('take only HTTPS addresses to send the person back to', async () => {
    const form = await service.givenPublishedForm();

    for (const [return_url, code] of [
      ['http://shop.example/', 'invalid_string'],
      ['javascript:alert(1)', 'invalid_string'],
      ['https://user:password@shop.example/', 'invalid_string'],
      ['https://shop.example/\u0000', 'invalid_string'],
      [`https://shop.example/${'x'.repeat(2_048)}`, 'too_big'],
    ]) {
      const refused = await service.post(`/v1/forms/${form.id}/sessions`, { return_url });
      expect(refusedAs(refused), return_url).toEqual([['return_url', code]]);
    }
  });

  /** Sessions of a form of their own, the oldest first. */
  async function givenSessions(
    count: number,
    request: object = {},
    settings: object = {},
    fields: object[] = contactForm.fields,
  ) {
    const form = await service.givenPublishedForm({ settings, fields });
    const path = `/v1/forms/${form.id}/sessions`;
    const opened: { id: string }[] = [];
    while (opened.length < count) opened.push((await service.post(path, request)).json.session);
    return { formId: form.id, path, opened };
  }
});
