import { expect, it } from 'vitest';
import { type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { contactForm } from '../support/server.ts';
import { until } from '../support/until.ts';
import { type AttackedService, harmDone, MEMORY_MIB, startAttackedService } from './attacked-service.ts';

/** All of them reach one mailbox. */
const addresses = Array.from({ length: 12 }, (_, n) =>
  ['victim+N@gmail.com', 'v.ictim+N@gmail.com', 'VICTIM+N@googlemail.com', 'v.i.c.t.i.m@gmail.com'][
    n % 4
  ]?.replace('N', `${n}`),
);

/** To each form: with 24, more mails are asked for than the 240 by which this was found. */
const SUBMISSIONS = 24;

it('mails a stranger no word of who makes forms on their address without a key, until they confirm', async () => {
  await using mailServer = await startMailServer();
  await using service = await startAttackedService('pglite', { SMTP_URL: mailServer.url, RATE_LIMIT: 'off' });
  const formIds: string[] = [];

  const { addedMib } = await harmDone(service, async () => {
    for (const address of addresses) formIds.push(await makeForm(service, `${address}`));
    await Promise.all(formIds.map((formId) => submitManyTimes(service, formId)));
    for (const formId of formIds) await until(() => isSettled(service, formId), 30_000);
  });

  const toVictim = () =>
    mailServer.mails.filter(({ recipients }) => !recipients.includes('owner@example.com'));
  const notices = toVictim().filter(({ subject = '' }) => /\d new responses?$/.test(subject));
  expect([toVictim().length, notices.length]).toEqual([6, 3]);
  for (const mail of toVictim()) {
    const words = [mail.subject, mail.text, mail.html, mail.source].join('\n');
    expect(words).not.toMatch(/bargain|evil\.example|192\.0\.2\.1|hxxp:|Answerword|Subjectword/i);
    expect(urlsIn(mail).filter((url) => !url.startsWith(`${service.url}/mail/`))).toEqual([]);
  }

  const before = toVictim().length;
  const [confirmed = ''] = toVictim()
    .flatMap(urlsIn)
    .filter((url) => url.includes('/confirm-owner.'));
  const done = await fetch(confirmed, { method: 'POST', body: new URLSearchParams() });
  expect(done.status).toBe(200);
  await until(() => toVictim().length === before + SUBMISSIONS, 30_000);

  expect(
    toVictim()
      .slice(before)
      .every(({ text }) => text?.includes('Answerword')),
  ).toBe(true);

  expect(addedMib).toBeLessThan(MEMORY_MIB);
}, 90_000);

async function makeForm({ url }: AttackedService, email: string): Promise<string> {
  const definition = {
    ...contactForm,
    name: 'Contact hxxp://evil.example or evil。example or 192.0.2.1',
    delivery: { type: 'email', subject: 'Subjectword https://evil.example' },
  };
  const { form } = await post(`${url}/api/forms/create`, definition);
  await post(new URL(form.activate_url, url).href, { email });
  return form.id;
}

async function submitManyTimes({ url }: AttackedService, formId: string): Promise<void> {
  const answers = {
    email: 'stranger@evil.example',
    message: 'Answerword: a bargain at https://evil.example',
  };
  for (let sent = 0; sent < SUBMISSIONS; sent += 4) {
    const submit = () => post(`${url}/api/forms/${formId}/submissions`, { answers });
    await Promise.all(Array.from({ length: 4 }, submit));
  }
}

/** Whether each mail about the form was sent, given up, or found to wait. */
async function isSettled({ url, key }: AttackedService, formId: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${key}` };
  const reply = await fetch(`${url}/v1/forms/${formId}/deliveries?limit=100`, { headers });
  const { deliveries } = (await reply.json()) as { deliveries: { status: string; error: string | null }[] };
  // A confirmation, a notice, and one mail for each submission.
  return (
    deliveries.length === SUBMISSIONS + 2 &&
    deliveries.every(({ status, error }) => status !== 'pending' || error?.startsWith('Waits: ') === true)
  );
}

function urlsIn({ text = '', html = '' }: ReceivedMail): string[] {
  return `${text}\n${html}`.match(/\w+:\/\/[^\s"<]+/g) ?? [];
}

async function post(url: string, body: object) {
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { form: { id: string; activate_url: string } };
}
