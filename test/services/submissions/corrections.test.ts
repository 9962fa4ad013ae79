import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { CORRECTION_MS, mailLinkToken } from '../../../src/domain/links.ts';
import { hashSecret } from '../../../src/domain/secrets/new-secrets.ts';
import {
  findExpiredSubmissions,
  removeFoundSubmissions,
} from '../../../src/store/submissions/submission-removal.ts';
import { engines } from '../../support/database.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { givenOwnerSession } from '../../support/owner.ts';
import { startReceiver } from '../../support/receiver.ts';
import { refusedAs } from '../../support/replies.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const fields = [
  { id: 'name', label: 'Name', type: 'text', required: true },
  { id: 'email', label: 'Email', type: 'email' },
  {
    id: 'topic',
    label: 'Topic',
    type: 'select',
    options: ['red', 'blue'].map((value) => ({ value, label: value })),
  },
  { id: 'paper', label: 'Paper', type: 'file', maxFiles: 2 },
  { id: 'news', label: 'News', type: 'boolean', defaultValue: true },
  { id: 'secret', type: 'hidden', defaultValue: 'hidden-secret' },
  { id: 'verdict', type: 'text', answeredBy: 'agent' },
  { id: 'note', label: 'Note', type: 'text' },
];

describe.each(engines)('corrections on %s', (engine) => {
  let service: TestService;
  let mails: Awaited<ReturnType<typeof startMailServer>>;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  beforeAll(async () => {
    mails = await startMailServer();
    receiver = await startReceiver();
    service = await startService({ engine, env: { SMTP_URL: mails.url, WEBHOOK_ALLOW_PRIVATE: 'true' } });
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await receiver?.[Symbol.asyncDispose]();
    await mails?.[Symbol.asyncDispose]();
  });

  it('counts the newest in lists, counts and exports, and names both', async () => {
    const form = await givenForm();
    const sent = await send(`/f/${form.id}`, { name: 'Ada', topic: 'red' });
    const corrected = await correct(sent, { name: 'Ada Lovelace', topic: 'blue' });

    const [former, latest] = await Promise.all([read(sent.id), read(corrected.id)]);
    expect(former).toMatchObject({ status: 'replaced', replaced_by: corrected.id, answers: { name: 'Ada' } });
    expect(latest).toMatchObject({
      status: 'accepted',
      replaces: sent.id,
      answers: { name: 'Ada Lovelace', topic: 'blue', secret: 'hidden-secret' },
      source: 'hosted',
    });
    const list = async (query: string) => {
      const { json } = await service.get(`/v1/forms/${form.id}/submissions?total=true&${query}`);
      return [json.total, json.submissions.map(({ id }: { id: string }) => id)];
    };
    expect(await list('')).toEqual([1, [corrected.id]]);
    expect(await list('filter[topic]=red')).toEqual([0, []]);
    expect(await list('replaced=true')).toEqual([1, [sent.id]]);
    expect(await list('status=replaced&offset=1')).toEqual([1, []]);
    const { text } = await service.get(`/v1/forms/${form.id}/submissions/export?format=ndjson`);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ id, replaces }) => [id, replaces])).toEqual([[corrected.id, sent.id]]);
    const owner = service.client(
      OwnersService,
      'connect',
      await givenOwnerSession(service, 'owner@example.com', form.id),
    );
    const { choices, countedCount } = await owner.getOwnedFormStatistics({ formId: form.id });
    expect([countedCount, choices.find(({ fieldId }) => fieldId === 'topic')?.options]).toMatchObject([
      1,
      [
        { label: 'red', count: 0 },
        { label: 'blue', count: 1 },
      ],
    ]);
    const found = await owner.searchOwnedSubmissions({ formId: form.id, text: 'Ada' });
    expect(found.submissions.map(({ submission }) => submission?.id)).toEqual([corrected.id]);
  });

  it('announces the correction as any submission, and `submission.replaced` beside it', async () => {
    const form = await givenForm();
    const path = `/${form.id}`;
    await service.post('/v1/webhooks', {
      form_id: form.id,
      url: `${receiver.url}${path}`,
      events: ['submission.created', 'submission.replaced'],
    });
    const sent = await send(`/f/${form.id}`, { name: 'Ada' });
    const corrected = await correct(sent, { name: 'Ada L.' });
    const hits = () =>
      receiver.received.filter((hit) => hit.path === path).map(({ body }) => JSON.parse(body));
    await until(
      () => hits().length >= 3,
      15_000,
      () => `${hits().length} of 3`,
    );

    const byId = new Map(hits().map((hit) => [`${hit.event} ${hit.data.submissionId}`, hit.data]));
    expect([...byId.keys()].sort()).toEqual(
      [
        `submission.completed ${sent.id}`,
        `submission.completed ${corrected.id}`,
        `submission.replaced ${sent.id}`,
      ].sort(),
    );
    expect(byId.get(`submission.completed ${corrected.id}`)).toMatchObject({ replaces: sent.id });
    expect(byId.get(`submission.completed ${sent.id}`)).not.toHaveProperty('replaces');
    expect(byId.get(`submission.replaced ${sent.id}`)).toEqual({
      submissionId: sent.id,
      formId: form.id,
      sessionId: null,
      replacedBy: corrected.id,
    });
  });

  it('stores one of two corrections at once, and answers what is sent twice the same', async () => {
    const form = await givenForm();
    for (let round = 0; round < 3; round += 1) {
      const sent = await send(`/f/${form.id}`, { name: 'Ada' });
      const pages = await Promise.all([open(sent), open(sent)]);
      const both = await Promise.all(
        pages.map(({ issued }, n) =>
          post(`/f/${sent.id}`, { name: `Ada ${n}`, _issued: issued }, sent.cookie),
        ),
      );
      expect(both.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409]);
      const won = both.findIndex(({ status }) => status === 200);
      const again = await post(
        `/f/${sent.id}`,
        { name: `Ada ${won}`, _issued: pages[won]?.issued ?? '' },
        sent.cookie,
      );
      expect([again.status, correctionIn(again).id]).toEqual([200, correctionIn(both[won] as Reply).id]);
      // The link is spent.
      expect((await get(`/f/${sent.id}`, sent.cookie)).status).toBe(401);
      expect((await post(`/f/${sent.id}`, { name: 'Late' }, sent.cookie)).status).toBe(409);
    }
    const { json } = await service.get(`/v1/forms/${form.id}/submissions?total=true`);
    expect(json.total).toBe(3);
    const counted = await service.database.select(
      'select sum(accepted)::int as accepted from form_counters where form_id = $1',
      [form.id],
    );
    expect(counted).toEqual([{ accepted: 3 }]);
  });

  it('can be corrected again', async () => {
    const form = await givenForm();
    const first = await send(`/f/${form.id}`, { name: 'One' });
    const second = await correct(first, { name: 'Two' });
    const third = await correct(second, { name: 'Three' });

    expect(await read(second.id)).toMatchObject({ replaces: first.id, replaced_by: third.id });
    const { json } = await service.get(`/v1/forms/${form.id}/submissions?total=true`);
    expect([json.total, json.submissions[0].answers.name]).toEqual([1, 'Three']);
  });

  it('shows the person’s own answers, never hidden ones or those of agents, which pass on', async () => {
    const form = await givenForm();
    const made = await service.post(`/v1/forms/${form.id}/sessions`, {
      prefill: { verdict: 'agent-secret', note: 'prefilled-secret', topic: 'blue' },
      metadata: { order: 7 },
    });
    const { id: sessionId } = made.json.session;
    const shown = { name: 'Ada', topic: 'red', note: 'prefilled-secret', _shown: 'name topic news note' };
    const sent = await send(`/f/${sessionId}`, shown);
    expect((await read(sent.id)).provenance.note.by).toBe('prefill');

    const page = await open(sent);
    expect(page.text).toContain('value="Ada"');
    expect(page.text).toMatch(/value="red" selected|selected[^>]*value="red"/);
    expect(page.text).not.toMatch(/-secret/);
    // News had a default, and was cleared.
    expect(page.text).not.toMatch(/name="news"[^>]* checked/);

    const corrected = await correct(sent, {
      name: 'Ada L.',
      topic: 'blue',
      note: 'forged',
      secret: 'forged',
      _shown: 'name topic news',
    });
    const latest = await read(corrected.id);
    expect(latest).toMatchObject({
      session_id: sessionId,
      metadata: { order: 7 },
      answers: {
        name: 'Ada L.',
        topic: 'blue',
        note: 'prefilled-secret',
        secret: 'hidden-secret',
        verdict: 'agent-secret',
      },
    });
    expect([latest.provenance.note.by, latest.provenance.name.by]).toEqual(['prefill', 'human']);
    const { json } = await service.get(`/v1/sessions/${sessionId}`);
    expect([json.session.submission_id, json.submission.id]).toEqual([corrected.id, corrected.id]);
    expect(corrected.text).not.toMatch(/-secret/);
  });

  it('passes files on, and takes others', async () => {
    const form = await givenForm();
    const upload = async (path: string, filename: string, cookie: string, issued: string) => {
      const reply = await fetch(`${service.url}${path}/uploads?field=paper&filename=${filename}`, {
        method: 'POST',
        headers: {
          origin: service.url,
          'content-type': 'application/octet-stream',
          'x-form-issued': issued,
          cookie,
        },
        body: `The text of ${filename}`,
      });
      expect(reply.status).toBe(201);
      const { upload: stored } = (await reply.json()) as { upload: { upload_id: string } };
      return { id: stored.upload_id };
    };
    const blank = await get(`/f/${form.id}`);
    const [kept, dropped] = [
      await upload(`/f/${form.id}`, 'kept.txt', '', blank.issued),
      await upload(`/f/${form.id}`, 'dropped.txt', '', blank.issued),
    ];
    const inputs = new URLSearchParams({ name: 'Ada', _issued: blank.issued, _page: '1', _go: 'forward' });
    for (const { id } of [kept, dropped]) inputs.append('paper', id);
    const sent = correctionIn(await post(`/f/${form.id}`, inputs));
    const page = await open(sent);
    expect(page.text).toContain('kept.txt');
    const fresh = await upload(`/f/${sent.id}`, 'fresh.txt', sent.cookie, page.issued);
    const changed = new URLSearchParams({ name: 'Ada', _issued: page.issued, _page: '1', _go: 'forward' });
    for (const { id } of [kept, fresh]) changed.append('paper', id);
    const corrected = correctionIn(await post(`/f/${sent.id}`, changed, sent.cookie));

    const { answers } = await read(corrected.id);
    expect(answers.paper).toMatchObject([{ filename: 'kept.txt', size: 20 }, { filename: 'fresh.txt' }]);
    const held = await service.database.select(
      'select filename, submission_id from uploads where form_id = $1 order by filename',
      [form.id],
    );
    expect(held).toEqual([
      { filename: 'dropped.txt', submission_id: sent.id },
      { filename: 'fresh.txt', submission_id: corrected.id },
      { filename: 'kept.txt', submission_id: corrected.id },
    ]);
    expect((await service.get(`/v1/uploads/${kept.id}`)).text).toBe('The text of kept.txt');
    // Nobody else names it.
    const foreign = await send(`/f/${form.id}`, { name: 'Eve' });
    const stolen = await post(
      `/f/${foreign.id}`,
      { name: 'Eve', paper: kept.id, _issued: (await open(foreign)).issued },
      foreign.cookie,
    );
    expect(stolen.status).toBe(422);
  });

  it('takes no second place of the form or of the mailbox, and none while it is closed', async () => {
    const full = await givenForm({ settings: { allowCorrection: true, maxSubmissions: 1 } });
    const sent = await send(`/f/${full.id}`, { name: 'Ada' });
    expect((await get(`/f/${full.id}`)).status).toBe(410);
    const corrected = await correct(sent, { name: 'Ada L.' });
    expect((await post(`/api/forms/${full.id}/submissions`, { name: 'Eve' })).status).toBe(410);

    await service.database.execute('update forms set closed_at = now() where id = $1', [full.id]);
    // What was read of the form is at most a second old.
    await until(
      async () => (await get(`/f/${corrected.id}`, corrected.cookie)).status === 410,
      10_000,
      () => 'the form is open',
    );
    const closed = await get(`/f/${corrected.id}`, corrected.cookie);
    const posted = await post(`/f/${corrected.id}`, { name: 'Late' }, corrected.cookie);
    expect([closed.status, posted.status]).toEqual([410, 410]);
    // The person may have it nowhere else.
    expect(posted.text).toMatch(/Name.*Late/s);
    expect((await read(corrected.id)).replaced_by).toBeUndefined();
  });

  it('links to the correction in the receipt where the address was proven', async () => {
    const form = await givenForm({
      settings: { allowCorrection: true, onePerRespondent: true },
      delivery: { type: 'email', autoresponse: { to: 'email', subject: 'Thanks', message: 'We have it.' } },
    });
    const ada = `ada-${engine}@example.com`;
    const browser = await givenCode(`/f/${form.id}`, ada);
    const sent = await send(`/f/${form.id}`, { name: 'Ada', email: ada }, browser);
    const link = await receiptLink(ada);
    expect(new URL(link).pathname).toMatch(/^\/mail\/correct\./);
    const path = new URL(link).pathname;

    // What scans email opens links, and changes nothing.
    const shown = [await get(path), await get(path)];
    expect(shown.map(({ status, cookie }) => [status, cookie])).toEqual([
      [200, ''],
      [200, ''],
    ]);
    expect(shown[0]?.text).toMatch(/<form method="post">.*<button>Show my answers<\/button>/s);
    expect(shown[0]?.text).not.toContain('value="Ada"');
    const oneClick = await post(path, { 'List-Unsubscribe': 'One-Click' });
    expect(oneClick.status).toBe(400);

    const pressed = await post(path, {});
    expect([pressed.status, pressed.location]).toEqual([303, expect.stringMatching(`/f/${sent.id}$`)]);
    const corrected = await correct({ id: sent.id, cookie: pressed.cookie }, { name: 'Ada L.', email: ada });
    const latest = await read(corrected.id);
    expect(latest.respondent.email).toBe(ada);
    expect(latest.provenance.name.verified).toBe(true);
    expect((await get(path)).status).toBe(401);
    expect((await get(`/f/${sent.id}`, sent.cookie)).status).toBe(401);

    // The mailbox has answered, by whichever submission.
    expect((await post(`/f/${form.id}`, { name: 'Again', email: ada }, browser)).status).toBe(409);
    // An address that was only typed gets no link.
    const other = await givenForm({
      delivery: { type: 'email', autoresponse: { to: 'email', subject: 'Typed', message: 'We have it.' } },
    });
    await send(`/f/${other.id}`, { name: 'Eve', email: `eve-${ada}` });
    const typed = await mailTo(`eve-${ada}`, 'Typed');
    expect(typed.text).not.toContain('/mail/correct.');
  });

  it('opens for nobody else: without the cookie, with another’s, by another site, forged, or after seven days', async () => {
    const form = await givenForm();
    const [sent, other] = [
      await send(`/f/${form.id}`, { name: 'Ada' }),
      await send(`/f/${form.id}`, { name: 'Eve' }),
    ];
    const token = decodeURIComponent(sent.cookie.split('=')[1] ?? '');
    const rows = await service.database.select(
      'select token_hash, purpose from mailed_links where address = $1',
      [sent.id],
    );
    expect(rows).toEqual([{ token_hash: hashSecret(token), purpose: 'correct' }]);

    const forged = mailLinkToken(
      Buffer.alloc(32, 7) as never,
      { purpose: 'correct', formId: form.id, address: sent.id },
      Date.now() + CORRECTION_MS,
    );
    for (const cookie of ['', other.cookie, `correction=${forged}`, 'correction=nonsense']) {
      expect([cookie, (await get(`/f/${sent.id}`, cookie)).status]).toEqual([cookie, 401]);
      expect((await post(`/f/${sent.id}`, { name: 'Eve' }, cookie)).status).toBe(401);
    }
    const crossed = await fetch(`${service.url}/f/${sent.id}`, {
      method: 'POST',
      headers: { origin: 'https://evil.example', cookie: sent.cookie },
      body: new URLSearchParams({ name: 'Eve' }),
    });
    expect(crossed.status).toBe(401);
    await service.database.execute('delete from mailed_links where address = $1', [sent.id]);
    expect((await get(`/f/${sent.id}`, sent.cookie)).status).toBe(401);
    expect((await read(sent.id)).status).toBe('accepted');
    expect(CORRECTION_MS).toBe(7 * 24 * 3_600_000);
    // Where the form's setting is off there is no link, and those that were given are worth nothing.
    const off = await service.post(`/v1/forms/${form.id}/versions`, definitionOf({ settings: {} }));
    expect([off.status, off.text]).toEqual([201, expect.anything()]);
    const plain = await post(`/f/${form.id}`, { name: 'Ada', _issued: (await get(`/f/${form.id}`)).issued });
    expect([plain.status, plain.cookie]).toEqual([200, '']);
    expect((await get(`/f/${other.id}`, other.cookie)).status).toBe(401);
  });

  it.each(['deletion', 'erasure', 'retention'] as const)('%s of one takes both', async (way) => {
    const form = await givenForm();
    const first = await send(`/f/${form.id}`, { name: `Typo ${way}` });
    const second = await correct(first, { name: 'Right' });
    const third = await correct(second, { name: 'Right again' });
    const others = await send(`/f/${form.id}`, { name: 'Other' });
    if (way === 'deletion') await service.delete(`/v1/submissions/${second.id}`);
    if (way === 'erasure') {
      const { json } = await service.post('/v1/erasures', { value: `Typo ${way}`, form_id: form.id });
      expect(json.erased_submissions).toBe(3);
    }
    if (way === 'retention') {
      await service.database.execute('update forms set retention_days = 1 where id = $1', [form.id]);
      const old = first.id.replace(/^sub_.{10}/, 'sub_0000000001');
      await service.database.execute('update submissions set id = $2 where id = $1', [first.id, old]);
      await service.database.execute('update events set submission_id = $2 where submission_id = $1', [
        first.id,
        old,
      ]);
      await service.database.execute('update submissions set replaces = $2 where replaces = $1', [
        first.id,
        old,
      ]);
      const { ids } = await findExpiredSubmissions(service.database, 10);
      expect(ids).toEqual([old]);
      const announcement = { at: Date.now(), schedule: [0] };
      const removed = await service.database.transaction((tx) =>
        removeFoundSubmissions(tx, ids, announcement),
      );
      expect(removed.map(({ count }) => count)).toEqual([3]);
    }
    const left = await service.database.select('select id from submissions where form_id = $1', [form.id]);

    expect(left).toEqual([{ id: others.id }]);
    const counted = await service.database.select(
      'select sum(accepted)::int as accepted from form_counters where form_id = $1',
      [form.id],
    );
    expect(counted).toEqual([{ accepted: 1 }]);
    expect((await get(`/f/${third.id}`, third.cookie)).status).toBe(401);
    const events = await service.database.select(
      'select distinct submission_id from events where form_id = $1 and submission_id is not null',
      [form.id],
    );
    expect(events).toEqual([{ submission_id: others.id }]);
  });

  it('refuses the setting for forms made without a key', async () => {
    const refused = await service.post(
      '/api/forms/create',
      { ...definitionOf(), fields: fields.slice(0, 2), slug: 'keyless' },
      { key: null },
    );

    expect(refusedAs(refused)).toEqual([['settings.allowCorrection', 'custom']]);
  });

  function definitionOf(more: object = {}) {
    return {
      name: 'Survey',
      slug: 'survey',
      fields,
      delivery: { type: 'email' },
      settings: { allowCorrection: true },
      ...more,
    };
  }

  function givenForm(more: object = {}) {
    return service.givenPublishedForm(definitionOf(more));
  }

  async function read(id: string) {
    const { json } = await service.get(`/v1/submissions/${id}`);
    return json.submission;
  }

  /** Fills a page and submits it. */
  async function send(path: string, inputs: Record<string, string>, cookie = '') {
    const { issued } = await get(path, cookie);
    return correctionIn(await post(path, { ...inputs, _issued: issued }, cookie));
  }

  function open({ id, cookie }: Sent) {
    return get(`/f/${id}`, cookie);
  }

  async function correct(sent: Sent, inputs: Record<string, string>) {
    const page = await open(sent);
    expect([page.status, page.headers.get('cache-control')]).toEqual([
      200,
      expect.stringContaining('no-store'),
    ]);
    expect(page.text).toContain('You’re correcting the response');
    return correctionIn(await post(`/f/${sent.id}`, { ...inputs, _issued: page.issued }, sent.cookie));
  }

  /** What the page of thanks links to, and the cookie that it opens with. */
  function correctionIn({ text, cookie, status, headers }: Reply): Sent & { text: string } {
    expect([status, headers.get('cache-control')]).toEqual([200, expect.stringContaining('no-store')]);
    const [, id = ''] = /href="[^"]*f\/(sub_\w+)">Correct your response</.exec(text) ?? [];
    expect([id, cookie]).toEqual([
      expect.stringMatching(/^sub_/),
      expect.stringMatching(/^correction=correct/),
    ]);
    return { id, cookie, text };
  }

  async function get(path: string, cookie = '') {
    return replyOf(await fetch(service.url + path, { headers: { accept: 'text/html', cookie } }));
  }

  async function post(path: string, inputs: Record<string, string> | URLSearchParams, cookie = '') {
    const body = new URLSearchParams(inputs);
    if (!body.has('_go') && path.startsWith('/f/'))
      for (const [name, value] of [
        ['_page', '1'],
        ['_go', 'forward'],
      ] as const)
        body.set(name, value);
    const headers = { origin: service.url, accept: 'text/html', cookie };
    return replyOf(await fetch(service.url + path, { method: 'POST', headers, body, redirect: 'manual' }));
  }

  async function replyOf(response: Response): Promise<Reply> {
    const text = await response.text();
    const cookies = response.headers.getSetCookie().map((each) => each.split(';')[0] ?? '');
    return {
      status: response.status,
      headers: response.headers,
      text,
      location: response.headers.get('location'),
      cookie: cookies.find((each) => /^(correction|respondent)=/.test(each)) ?? '',
      issued: /name="_issued" value="([^"]*)"/.exec(text)?.[1] ?? '',
    };
  }

  async function givenCode(path: string, email: string): Promise<string> {
    const { cookie } = await post(path, { _code: 'send', email, _go: '' });
    const { subject = '' } = await mailTo(email, /^\d{6} /);
    const given = await post(path, { _code: 'give', code: subject.slice(0, 6), _go: '' }, cookie);
    expect(given.status).toBe(303);
    return cookie;
  }

  async function receiptLink(to: string): Promise<string> {
    const { text = '', html = '' } = await mailTo(to, 'Thanks');
    const link = /http\S+\/mail\/correct\.\S+/.exec(text)?.[0] ?? '';
    expect(html).toContain(link);
    return link;
  }

  async function mailTo(to: string, subject: string | RegExp) {
    const find = () =>
      mails.mails.find(
        (mail) => mail.recipients.includes(to) && (mail.subject ?? '').match(subject) !== null,
      );
    await until(
      () => find() !== undefined,
      15_000,
      () => `no mail to ${to}`,
    );
    const found = find();
    if (found === undefined) throw new Error('No mail');
    return found;
  }
});

type Reply = {
  status: number;
  headers: Headers;
  text: string;
  location: string | null;
  cookie: string;
  issued: string;
};

type Sent = { id: string; cookie: string };
