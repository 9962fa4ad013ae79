import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { csrfToken } from '../../../src/pages/owner/session.ts';
import { oneEngine } from '../../support/database.ts';
import { givenSignInLink } from '../../support/owner.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe.each(oneEngine('postgres'))('the audit log on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  /** The entries that fit a query, once so much was done; newest first. Reads within a second are one entry. */
  async function entries(query: Record<string, string>, done: number, key?: string): Promise<Entry[]> {
    const path = `/v1/audit?${new URLSearchParams(query).toString()}`;
    const list = async () => (await service.get(path, key === undefined ? {} : { key })).json.entries;
    const counted = (found: Entry[]) => found.reduce((sum, { count }) => sum + count, 0);
    await until(async () => counted(await list()) >= done);
    return list();
  }

  it('has what calls by REST and by gRPC, and owners on their pages, have done', async () => {
    const project = `p-${crypto.randomUUID().slice(0, 8)}`;
    const key = await service.givenKey(['*'], project);
    const form = await service.givenPublishedForm({}, { key });
    const answers = { email: 'eve@example.com', message: 'Hello' };
    const sent = await service.post(`/api/forms/${form.id}/submissions`, { answers }, { key: null });
    const id = sent.json.submission_id;
    await service.get(`/v1/submissions/${id}`, { key });
    await service.client(SubmissionsService, 'grpc', key).getSubmission({ submissionId: id });
    await service.get(`/v1/forms/${form.id}/submissions/export?format=csv`, { key });
    const owner = await signedIn('owner@example.com');
    await owner.post(`forms/${form.id}/confirm`);
    await owner.get(`submissions/${id}`);
    await owner.post(`submissions/${id}/delete`);
    await service.post(`/v1/forms/${form.id}/archive`, {}, { key });

    const found = await entries({ resource: form.id }, 9, key);

    const actor = `key:${await idOf(key)}`;
    expect(
      found.map((entry) => [entry.actor.replace(/^owner:.*/, 'owner'), entry.action, entry.resource]),
    ).toEqual(
      expect.arrayContaining([
        [actor, 'form.created', form.id],
        [`key:${await idOf(service.key)}`, 'form.activated', form.id],
        [actor, 'submission.read', id],
        [actor, 'submission.exported', form.id],
        ['owner', 'form.owner_confirmed', form.id],
        ['owner', 'submission.read', id],
        ['owner', 'submission.deleted', id],
        [actor, 'form.archived', form.id],
      ]),
    );
    const counted = found.filter((entry) => entry.action === 'submission.read' && entry.actor === actor);
    expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(2);
    expect(found.every(({ client_address: from }) => from === '127.0.0.1')).toBe(true);
    expect(JSON.stringify(found)).not.toMatch(/example\.com|Hello/);
  });

  it('pages through what was done', async () => {
    const project = `p-${crypto.randomUUID().slice(0, 8)}`;
    const key = await service.givenKey(['*'], project);
    for (let n = 0; n < 5; n += 1) await service.givenDraft({}, { key });
    const found = await entries({ action: 'form.created' }, 5, key);

    const paged = await pages({ action: 'form.created' }, key);

    expect(paged).toEqual(found);
    expect(Object.keys(found[0] ?? {}).sort()).toEqual([
      'action',
      'actor',
      'client_address',
      'count',
      'created_at',
      'detail',
      'form_id',
      'request_id',
      'resource',
    ]);
  });

  it('refuses what is no filter, and times and cursors that are none', async () => {
    for (const query of [
      'limit=0',
      'cursor=x',
      'cursor=2026-13-01T00:00:00.000Z.1',
      'created_after=soon',
      'actor=',
      `action=${'x'.repeat(1_001)}`,
    ]) {
      const { status, json } = await service.get(`/v1/audit?${query}`);
      expect([query, status, json.error?.reason]).toEqual([query, 400, 'bad_request']);
    }
    const { entries: none } = (await service.get('/v1/audit?created_before=0001-01-02T00:00:00Z')).json;
    expect(none).toEqual([]);
  });

  it('makes a change fail that it can’t record, and changes nothing', async () => {
    const { id } = await service.givenPublishedForm();
    await service.database.execute('alter table audit_entries rename to audit_entries_away');
    try {
      const reply = await service.post(`/v1/forms/${id}/archive`, {});
      expect([reply.status, reply.json.error.reason]).toEqual([500, 'internal']);
    } finally {
      await service.database.execute('alter table audit_entries_away rename to audit_entries');
    }
    expect((await service.get(`/v1/forms/${id}`)).json.form.status).toBe('published');
  });

  /** All entries that fit a query, two at a time. */
  async function pages(query: Record<string, string>, key: string): Promise<Entry[]> {
    const found: Entry[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const asked = new URLSearchParams({ ...query, limit: '2', ...(cursor !== '' && { cursor }) });
      const { json } = await service.get(`/v1/audit?${asked.toString()}`, { key });
      found.push(...json.entries);
      cursor = json.next_cursor;
    }
    return found;
  }

  async function idOf(key: string): Promise<string> {
    const { keys } = (await service.get('/v1/keys', { key })).json;
    return keys.find((each: { id: string; last4: string }) => each.last4 === key.slice(-4))?.id;
  }

  async function signedIn(address: string) {
    const link = await givenSignInLink(service.database, address);
    const headers = { origin: service.url };
    const opened = await fetch(`${service.url}/owner/sign-in/${link}`, {
      method: 'POST',
      headers,
      redirect: 'manual',
    });
    const [cookie = ''] =
      opened.headers
        .getSetCookie()
        .find((set) => set.startsWith('owner='))
        ?.split(';') ?? [];
    const token = decodeURIComponent(cookie.slice(cookie.indexOf('=') + 1));
    const send = async (method: string, path: string, body?: URLSearchParams) => {
      const url = `${service.url}/owner/${path}`;
      const { status } = await fetch(url, {
        method,
        headers: { ...headers, cookie },
        body: body ?? null,
        redirect: 'manual',
      });
      expect([path, status]).toEqual([path, body === undefined ? 200 : 303]);
    };
    return {
      get: (path: string) => send('GET', path),
      post: (path: string) => send('POST', path, new URLSearchParams({ csrf: csrfToken(token) })),
    };
  }
});

type Entry = {
  actor: string;
  action: string;
  resource: string | null;
  count: number;
  client_address: string | null;
};
