import type { startMailServer } from '../support/mail-server.ts';
import type { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { FORM_KEY, KEY, type Known, WEBHOOK_SECRET } from './fixture.ts';

/**
 * Has a service of any version fill its tables, by HTTP alone: forms in every state, answers by every way, deliveries
 * that succeeded, failed and wait, sessions, keys and an owner who is signed in. What a version can't do yet is
 * left out.
 */
export async function makeRows({
  url,
  receiver,
  mails,
  refuseMails,
  refuseFiles,
}: Surroundings): Promise<Known> {
  const call = caller(url);

  const mailed = await call('POST', '/api/forms/create', mailedForm, { 'idempotency-key': FORM_KEY });
  await publish(mailed, 'owner@example.com');
  const hooked = await call('POST', '/api/forms/create', hookedForm(`${receiver.url}/ok`));
  await publish(hooked, 'owner@example.com');
  await call('POST', `/v1/forms/${idOf(hooked)}/versions`, {
    ...hookedForm(`${receiver.url}/ok`),
    name: 'Second version',
  });
  const keyless = await call(
    'POST',
    '/api/forms/create',
    { ...mailedForm, delivery: { type: 'email' } },
    { authorization: '' },
  );
  await publish(keyless, 'stranger@example.com');
  const draft = await call('POST', '/api/forms/create', { ...mailedForm, name: 'Draft' });
  const archived = await call('POST', '/api/forms/create', { ...mailedForm, name: 'Archived' });
  await publish(archived, 'owner@example.com');
  await call('POST', `/v1/forms/${idOf(archived)}/archive`);

  const events = ['submission.created', 'session.expired'];
  for (const path of ['later', 'gone']) {
    await call('POST', '/v1/webhooks', { url: `${receiver.url}/${path}`, events, secret: WEBHOOK_SECRET });
  }
  // Versions before headers, filters and Ed25519 refuse it.
  await call('POST', '/v1/webhooks', {
    url: `${receiver.url}/ok`,
    events,
    secret: WEBHOOK_SECRET,
    headers: { Authorization: 'Bearer of-the-receiver' },
    filter: { source: 'api', field_id: 'email', value: 'answer-1@example.com' },
    ed25519: true,
  }).catch(() => undefined);
  for (const address of ['owner@example.com', 'second@example.com']) {
    await post(await linkIn(address, /http\S+\/mail\/\S+/), {});
  }

  const upload = await call(
    'POST',
    `/api/forms/${idOf(hooked)}/uploads?field=cv&filename=cv.txt`,
    'A file.',
    {
      'content-type': 'application/octet-stream',
    },
  );
  const cv = { upload_id: String(upload.upload?.upload_id) };
  await call('POST', submissionsOf(hooked), { answers: { email: 'ada@example.com', cv } });
  const second = await call('POST', `/api/forms/${idOf(hooked)}/uploads?field=cv&filename=cv.txt`, 'Gone.', {
    'content-type': 'application/octet-stream',
  });
  const gone = { upload_id: String(second.upload?.upload_id) };
  await call('POST', submissionsOf(hooked), { answers: { email: 'gone@example.com', cv: gone } });
  for (let n = 0; n < 2; n += 1) {
    await call('POST', submissionsOf(hooked), answersOf(n), { 'idempotency-key': `answer-${n}` });
  }
  await call(
    'POST',
    submissionsOf(keyless),
    { answers: { email: 'eve@example.com' } },
    { authorization: '' },
  );
  await post(`${url}${submissionsOf(mailed)}`, { email: 'bot@example.com', _gotcha: 'filled' });
  await call('POST', submissionsOf(mailed), { answers: { email: 'grace@example.com', message: 'Hello' } });
  await call('POST', '/api/demo', { answers: { name: 'Ada', email: 'ada@example.com', message: 'Hello' } });

  const sessions = `/v1/forms/${idOf(hooked)}/sessions`;
  const open = await call('POST', sessions, {
    expires_in: 7200,
    prefill: { email: 'ada@example.com' },
    metadata: { ticket: 42 },
  });
  const submitted = await call('POST', sessions, {}, { 'idempotency-key': 'a-session' });
  await call('POST', `/v1/sessions/${submitted.session?.id}/submit`, {
    answers: { email: 'joan@example.com' },
  });
  const cancelled = await call('POST', sessions, {});
  await call('POST', `/v1/sessions/${cancelled.session?.id}/cancel`);
  const context = {
    title: 'Refund',
    items: [{ label: 'Ticket', value: 'https://example.com/1', kind: 'link' }],
  };
  // Versions before the questions refuse it.
  const declined = await call('POST', sessions, { context, allow_decline: true }).catch(() => undefined);
  if (declined) await call('POST', `/v1/sessions/${declined.session?.id}/decline`, { reason: 'Not mine' });
  // Of a hidden form; one waits to remind somebody, one was reported to its asker.
  const asked = {
    definition: { name: 'May we?', fields: [{ label: 'May we?', type: 'boolean' }] },
    context,
    allow_decline: true,
    notify: { email: 'asked@example.com', message: 'Please', remind_after: [7200] },
    callback: { url: `${receiver.url}/ok`, secret: WEBHOOK_SECRET },
  };
  // Versions before the notifications refuse it.
  await call('POST', '/v1/sessions', { ...asked, expires_in: 14_400 }).catch(() => undefined);
  const refused = await call('POST', '/v1/sessions', asked).catch(() => undefined);
  if (refused)
    await call('POST', `/v1/sessions/${refused.session?.id}/decline`, { reason: 'Not now' }).catch(
      () => undefined,
    );
  const respondent = { email: 'grace@example.com' };
  // Versions before respondents refuse it.
  const verified = await call('POST', sessions, { respondent }).catch(() => undefined);
  if (verified) await answerWithCode(`${url}/f/${verified.session?.id}`);
  // Versions before corrections refuse it.
  const correctable = await call('POST', '/api/forms/create', {
    ...hookedForm(`${receiver.url}/ok`),
    settings: { allowCorrection: true },
  }).catch(() => undefined);
  if (correctable) {
    await publish(correctable, 'owner@example.com');
    await answerAndCorrect(`${url}/f/${idOf(correctable)}`);
  }
  await call('PATCH', `/v1/sessions/${open.session?.id}`, { answers: { message: 'Not yet' } });

  await call('POST', '/v1/keys', { name: 'reads', scopes: ['submissions:read'] });
  const revoked = await call('POST', '/v1/keys', { name: 'revoked', scopes: ['*'] });
  await call('DELETE', `/v1/keys/${revoked.key?.id}`);
  const ownerCookie = await signIn();
  await post(await linkIn('grace@example.com', /http\S+\/mail\/\S+/), { stop: 'form' });
  refuseMails();
  await call('POST', submissionsOf(mailed), { answers: { email: 'late@example.com' } });
  await readEverything();
  refuseFiles();
  const removed = (await call('GET', `/v1/forms/${idOf(hooked)}/submissions?limit=100`)).submissions?.find(
    ({ answers }) => answers.email === 'gone@example.com',
  );
  // Versions without a table of what is to be removed refuse it.
  await call('DELETE', `/v1/submissions/${removed?.id}`).catch(() => undefined);
  return {
    activateUrl: String(draft.form?.activate_url),
    revokedKey: String(revoked.secret),
    ...(ownerCookie && { ownerCookie }),
  };

  async function publish({ form }: Reply, email: string): Promise<void> {
    await call('POST', String(form?.activate_url), { email }, { authorization: '' });
  }

  /** The last link of a kind that was mailed to an address. */
  async function linkIn(address: string, pattern: RegExp): Promise<string> {
    const find = () =>
      mails.mails
        .filter(({ recipients }) => recipients.includes(address))
        .map(({ text }) => pattern.exec(text ?? '')?.[0])
        .findLast((link) => link !== undefined);
    return until(find, 15_000, () => `there is no mail to ${address} with such a link`);
  }

  async function post(to: string, inputs: Record<string, string>, cookie?: string): Promise<Response> {
    const headers = { origin: url, ...(cookie && { cookie }) };
    return fetch(to, { method: 'POST', headers, body: new URLSearchParams(inputs), redirect: 'manual' });
  }

  /** Answers on the page of a form, and corrects that. */
  async function answerAndCorrect(page: string): Promise<void> {
    const sent = await post(page, { email: 'typo@example.com' });
    const [, link] = /href="[^"]*(f\/sub_\w+)"/.exec(await sent.text()) ?? [];
    const cookie = sent.headers.getSetCookie()[0]?.split(';')[0];
    const corrected = await post(`${url}/${link}`, { email: 'corrected@example.com' }, cookie);
    if (corrected.status !== 200) throw new Error(`Not corrected: ${await corrected.text()}`);
  }

  /** Answers on the page of a session that asks for a code. */
  async function answerWithCode(page: string): Promise<void> {
    const sent = await post(page, { _code: 'send' });
    const browser = sent.headers.getSetCookie()[0]?.split(';')[0];
    await post(page, { _code: 'give', code: await linkIn('grace@example.com', /^\d{6}$/m) }, browser);
    await post(page, { email: 'grace@example.com' }, browser);
  }

  async function signIn(): Promise<string | undefined> {
    const asked = await post(`${url}/owner/sign-in`, { email: 'owner@example.com' });
    if (asked.status === 404) return undefined;
    // A link works in the browser that asked for it.
    const browser = asked.headers.getSetCookie()[0]?.split(';')[0];
    const done = await post(await linkIn('owner@example.com', /http\S+\/owner\/sign-in\S+/), {}, browser);
    return done.headers
      .getSetCookie()
      .find((cookie) => cookie.startsWith('owner='))
      ?.split(';')[0];
  }

  /** What changes nothing, so that its statements are known. */
  async function readEverything(): Promise<void> {
    const form = `/v1/forms/${idOf(hooked)}`;
    const webhooks = await call('GET', '/v1/webhooks');
    for (const { id } of webhooks.webhooks ?? []) await call('GET', `/v1/webhooks/${id}/deliveries`);
    for (const path of [
      '/v1/forms',
      '/v1/keys',
      '/ready',
      form,
      `${form}/versions`,
      `${form}/versions/1`,
      `${form}/agent-schema`,
      `${form}/submissions`,
      `${form}/submissions?source=api&status=accepted&created_after=2020-01-01T00:00:00Z&limit=1`,
      `${form}/submissions/export?format=csv`,
      `${form}/sessions`,
      `${form}/deliveries`,
      `/v1/sessions/${open.session?.id}`,
      `/v1/uploads/${cv.upload_id}`,
      `/f/${open.session?.id}`,
      `/f/${idOf(hooked)}`,
    ]) {
      await call('GET', path);
    }
  }
}

/** The body of a submission to the form with a webhook. */
export function answersOf(n: number) {
  return { answers: { email: `person-${n}@example.com`, message: `It's number ${n}` } };
}

export const mailedForm = {
  name: 'Mailed',
  slug: 'mailed',
  fields: [
    { id: 'email', type: 'email', required: true },
    { id: 'message', type: 'textarea' },
  ],
  delivery: {
    type: 'email',
    to: ['second@example.com'],
    autoresponse: { to: 'email', subject: 'Thank you', message: 'It has arrived.' },
  },
};

function hookedForm(url: string) {
  return {
    name: 'Hooked',
    slug: 'hooked',
    fields: [...mailedForm.fields, { id: 'cv', type: 'file' }],
    delivery: { type: 'webhook', url, secret: WEBHOOK_SECRET },
    settings: { retentionDays: 3650, allowPartial: true },
  };
}

/** Calls that are refused for another reason than that the version does not know the path are thrown. */
function caller(url: string) {
  return async (
    method: string,
    path: string,
    body?: object | string,
    headers: Record<string, string> = {},
  ): Promise<Reply> => {
    const { authorization = `Bearer ${KEY}`, ...more } = headers;
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(authorization !== '' && { authorization }),
        ...(typeof body === 'object' && { 'content-type': 'application/json' }),
        ...more,
      },
      ...(body !== undefined && { body: typeof body === 'object' ? JSON.stringify(body) : body }),
    });
    const text = await response.text();
    if (!response.ok && response.status !== 404)
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return response.headers.get('content-type')?.includes('json') ? (JSON.parse(text) as Reply) : {};
  };
}

function idOf({ form }: Reply): string {
  if (form === undefined) throw new Error('No form was made.');
  return form.id;
}

function submissionsOf(made: Reply): string {
  return `/api/forms/${idOf(made)}/submissions`;
}

type Surroundings = {
  url: string;
  receiver: Awaited<ReturnType<typeof startReceiver>>;
  mails: Awaited<ReturnType<typeof startMailServer>>;
  /** Has the mail server take no more. */
  refuseMails: () => void;
  /** Has the folder of uploads fail. */
  refuseFiles: () => void;
};

/** The parts of replies that are read here. */
type Reply = {
  form?: { id: string; activate_url?: string };
  upload?: { upload_id: string };
  session?: { id: string };
  key?: { id: string };
  secret?: string;
  webhooks?: { id: string }[];
  submissions?: { id: string; answers: { email?: string } }[];
};
