import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConfirmationState, FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { stopMail } from '../../src/store/mail/mail-recipients.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { awaitWholeDay } from '../support/utc-day.ts';

describe('what is said of a confirmation', () => {
  let service: TestService;
  let mailServer: Awaited<ReturnType<typeof startMailServer>>;
  beforeAll(async () => {
    mailServer = await startMailServer();
    service = await startService({ env: { SMTP_URL: mailServer.url } });
  });
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await mailServer?.[Symbol.asyncDispose]();
  });

  beforeEach(awaitWholeDay);

  async function activate(email: string, key: string | null = service.key): Promise<string> {
    const { activate_url } = await service.givenDraft({}, { key });
    return (await service.post(activate_url, { email }, { key: null })).json.message;
  }

  /** The page in German that answers a post of the activation's page. */
  async function activateByPage(email: string, key: string | null = service.key): Promise<string> {
    const { activate_url } = await service.givenDraft({}, { key });
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'accept-language': 'de' };
    const body = new URLSearchParams({ email }).toString();
    return (await service.call('POST', activate_url, body, { key: null, headers })).text;
  }

  it('is that it is on its way only where it is sent, however fast forms are made', async () => {
    const email = 'often@example.com';

    const said: string[] = [];
    for (let n = 0; n < 5; n += 1) said.push(await activate(n % 2 ? email : `often+${n}@example.com`));
    const ofStranger = await activate(email, null);

    const sent = said.filter((message) => message.includes('A confirmation is on its way to often'));
    const later = said.filter((message) => message.includes('on another day'));
    expect([sent.length, later.length]).toEqual([3, 2]);
    expect(ofStranger).toBe(
      `The form is published. A confirmation is on its way to ${email}. If no email arrives, that address has stopped our emails or was asked too often today. Responses are held until it confirms; it gets at most 3 notices a day about them.`,
    );
    const waiting = () => service.database.select("select from delivery_queue where error like 'Waits:%'");
    await until(async () => mailServer.mails.length >= 4 && (await waiting()).length === 2);
    expect(mailServer.mails).toHaveLength(4);
  });

  it('is that answers are mailed at once where no confirmation is asked for, and so they are', async () => {
    const email = 'trusted@example.com';
    const env = { SMTP_URL: mailServer.url, OWNER_CONFIRMATION: 'off' };
    await using trusting = await startService({ env });
    const { id, activate_url } = await trusting.givenDraft({}, { key: null });

    const { message } = (await trusting.post(activate_url, { email }, { key: null })).json;
    const answers = { email: 'ada@example.com', message: 'See https://example.com' };
    await trusting.post(`/api/forms/${id}/submissions`, { answers }, { key: null });

    expect(message).toBe(`The form is published. A confirmation is on its way to ${email}.`);
    const mails = () => mailServer.mails.filter(({ recipients }) => recipients.includes(email));
    await until(() => mails().length === 2);
    const [answer] = mails().filter(({ text }) => text?.includes('ada@example.com'));
    expect(answer?.text).toContain('See https://example.com');
    expect(
      await trusting.database.select('select owner_confirmed_at from forms where id = $1', [id]),
    ).toEqual([{ owner_confirmed_at: null }]);
  });

  it('is that none is sent, and what to do, where mail was stopped', async () => {
    const email = 'quiet@example.com';
    await stopMail(service.database, { address: email, formId: '', scope: 'all' });

    const message = await activate(email);
    const page = await activateByPage(email);

    expect(message).toBe(
      `The form is published. ${email} gets no confirmation, because that address has stopped emails from this service. The link at the end of any earlier email starts them again.`,
    );
    expect(page).toContain('erhält keine Bestätigung, weil die E-Mails dieses Dienstes');
    expect(page).not.toContain('unterwegs');
  });

  it('is the same of every address where anybody can have made the form', async () => {
    const [fresh, confirmed, stopped, asked] = ['fresh', 'owner', 'silent', 'tired'].map(
      (name) => `${name}@example.com`,
    ) as [string, string, string, string];
    const known = await service.givenPublishedForm();
    await service.database.execute('update forms set owner_confirmed_at = now() where id = $1', [known.id]);
    await stopMail(service.database, { address: stopped, formId: '', scope: 'all' });
    for (let count = 0; count < 4; count += 1) await activate(asked);
    const replies: Record<string, unknown>[] = [];
    const pages: string[] = [];

    for (const email of [fresh, confirmed, stopped, asked]) {
      const { activate_url } = await service.givenDraft({}, { key: null });
      const { json } = await service.post(activate_url, { email }, { key: null });
      replies.push({ ...json, form: undefined, message: json.message.replaceAll(email, 'x') });
      const page = await activateByPage(email, null);
      pages.push(page.replaceAll(email, 'x').replaceAll(/form_\w+|base64,[\w+/=]+/g, ''));
    }

    expect(replies[0]?.message).toContain('A confirmation is on its way to x.');
    expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
    expect(new Set(pages).size).toBe(1);
    expect(pages[0]).toContain('Eine Bestätigung ist unterwegs an x. Keine E-Mail?');
  });

  it('is told by RPC, too, and to who asks for a link to sign in where mails are written', async () => {
    await using unsent = await startService();
    const forms = unsent.client(FormsService, 'connect', null);
    const { id, activate_url } = await unsent.givenDraft();
    const token = new URL(activate_url, unsent.url).searchParams.get('token') ?? '';

    const activated = await forms.activateForm({
      formId: id,
      activationToken: token,
      email: 'ada@example.com',
    });
    const [written, sent] = [unsent, service].map((each) =>
      each.client(OwnersService, 'connect', null).requestSignIn({ email: 'ada@example.com' }),
    );

    expect(activated).toMatchObject({
      confirmation: ConfirmationState.WRITTEN,
      message:
        'The form is published. The confirmation to ada@example.com is saved to a file, because SMTP_URL is not set.',
    });
    expect([(await written)?.mailWritten, (await sent)?.mailWritten]).toEqual([true, false]);
  });
});
