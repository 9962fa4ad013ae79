import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { stopMail } from '../../src/store/mail/mail-recipients.ts';
import { oneEngine } from '../support/database.ts';
import { startMailServer } from '../support/mail-server.ts';
import { givenOwnerSession } from '../support/owner.ts';
import { program } from '../support/programs.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';

const OWNER = 'owner@example.com';
const WRITTEN = 'Ada.Lovelace@example.com';

describe.each(oneEngine('postgres'))('mails that failed, on %s', (engine) => {
  it('are sent again one by one, and no other mail is', async () => {
    await using outage = await givenFailedMails(1);
    const { service, mailServer, failed } = outage;
    const [id = ''] = failed;
    const confirmation = (await outage.deliveries()).find(({ event }) => event === 'confirmation');
    await service.database.execute(`update deliveries set status = 'failed' where id = $1`, [
      confirmation?.id,
    ]);

    outage.end();
    const replayed = await service.post(`/v1/webhook-deliveries/${id}/replay`);
    const refused = await service.post(`/v1/webhook-deliveries/${confirmation?.id}/replay`);
    const weak = await service.givenKey(['webhooks:read', 'submissions:read']);
    const forbidden = await service.call('POST', `/v1/webhook-deliveries/${id}/replay`, undefined, {
      key: weak,
    });

    expect([replayed.status, replayed.json.delivery]).toMatchObject([
      202,
      { id, status: 'pending', channel: 'mail' },
    ]);
    expect([refused.status, refused.json.error.reason]).toEqual([409, 'conflict']);
    expect(forbidden.status).toBe(401);
    const [mail] = await mailServer.expectMails(1);
    expect(mail?.recipients).toEqual([OWNER]);
    expect(mail?.text).toContain('0@example.com');
    const delivered = async () =>
      (await outage.deliveries()).find((each) => each.id === id && each.status === 'delivered');
    expect((await until(delivered)).attempts.map(({ response_status }) => response_status)).toEqual([
      550, 250,
    ]);
    expect(mailServer.mails).toHaveLength(1);
  });

  it('are sent again all at once by the command line, and by the form’s route', async () => {
    await using outage = await givenFailedMails(3);
    const { service, mailServer, formId } = outage;
    outage.end();

    const printed = await runCli(['replay', formId, '--server', service.url], service.key);
    await mailServer.expectMails(3);
    const none = await service.post(`/v1/forms/${formId}/replay`, { status: 'failed' });
    const wrong = await runCli(['replay', 'dlv_none', '--server', service.url], service.key);

    expect(printed).toEqual({ code: 0, output: `${formId}: 3 pending\n` });
    expect([none.status, none.json]).toEqual([
      202,
      { ok: true, count: 0, more: false, next_created_after: null },
    ]);
    expect(wrong).toEqual({ code: 1, output: 'dlv_none: There is no such delivery\n' });
  });

  it.each([
    ['the owner', {}],
    ['a recipient of the definition', { delivery: { type: 'email', to: [WRITTEN] } }],
  ])('go to %s by the address as it is written', async (_, definition) => {
    await using outage = await givenFailedMails(1, { address: WRITTEN, definition });
    const { service, mailServer, failed } = outage;

    outage.end();
    await service.post(`/v1/webhook-deliveries/${failed[0]}/replay`);

    const [mail] = await mailServer.expectMails(1);
    expect(mail?.recipients).toEqual([WRITTEN]);
    expect(mail?.to?.map(({ address }) => address)).toEqual([WRITTEN]);
  });

  it('go to nobody who has stopped them, or gets them no more', async () => {
    await using outage = await givenFailedMails(2);
    const { service, mailServer, formId, failed } = outage;
    const [first, second] = failed;
    outage.end();

    await stopMail(service.database, { address: OWNER, formId });
    await service.post(`/v1/webhook-deliveries/${first}/replay`);
    await until(async () => (await outage.states()).includes('failed The address has stopped these emails.'));
    await service.database.execute('delete from mail_stops');
    await givenOwnerSession(service, 'next@example.com', formId);
    await service.post(`/v1/webhook-deliveries/${second}/replay`);
    const handedOver = 'failed The address gets no answers any more.';
    await until(async () => (await outage.states()).includes(handedOver));

    expect(mailServer.mails).toEqual([]);
  });

  it('are sent again by their owner on the page of the submission, to the owner alone', async () => {
    await using outage = await givenFailedMails(1);
    const { service, mailServer, formId, failed } = outage;
    const [delivery = ''] = failed;
    const { submissions } = (await service.get(`/v1/forms/${formId}/submissions`)).json;
    const path = `/owner/submissions/${submissions[0].id}`;
    const page = async (cookie: string) =>
      (await fetch(new URL(path, service.url), { headers: { cookie } })).text();
    const post = (cookie: string, html: string, id: string) =>
      fetch(new URL(`${path}/replay`, service.url), {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie, origin: service.url },
        body: new URLSearchParams({
          csrf: /name="csrf" value="([\w-]+)"/.exec(html)?.[1] ?? '',
          delivery: id,
        }),
      });
    outage.end();

    const cookie = `owner=${await givenOwnerSession(service, OWNER, formId)}`;
    const shown = await page(cookie);
    const others = await post(cookie, shown, 'dlv_none');
    const sent = await post(cookie, shown, delivery);
    await mailServer.expectMails(1);
    await until(
      async () => (await outage.states()).filter((state) => state.startsWith('delivered')).length === 1,
    );
    const next = `owner=${await givenOwnerSession(service, 'next@example.com', formId)}`;
    const refused = await post(next, await page(next), delivery);

    expect(shown).toContain('Send again');
    expect([others.status, sent.status, refused.status]).toEqual([404, 303, 404]);
    expect(sent.headers.get('location')).toBe(`../../..${path}#done`);
    expect(await page(next)).not.toContain('Send again');
    expect(mailServer.mails).toHaveLength(1);
  });

  /** A form whose confirmed owner's mails were all refused, until `end`. */
  async function givenFailedMails(count: number, { address = OWNER, definition = {} } = {}) {
    await using opened = new AsyncDisposableStack();
    let isOver = false;
    const mailServer = opened.use(await startMailServer(() => (isOver ? undefined : 550)));
    const service = opened.use(await startService({ engine, env: { SMTP_URL: mailServer.url } }));
    const { id: formId } = await service.givenPublishedForm(definition);
    const deliveries = async () =>
      (await service.get(`/v1/forms/${formId}/deliveries`)).json.deliveries as {
        id: string;
        event: string;
        status: string;
        error: string | null;
        attempts: { response_status: number | null }[];
      }[];
    await service.database.execute(
      'update forms set owner_email = $1, owner_confirmed_at = now() where id = $2',
      [address, formId],
    );
    for (let n = 0; n < count; n += 1) {
      await service.post(`/api/forms/${formId}/submissions`, { answers: { email: `${n}@example.com` } });
    }
    const failed = await until(async () => {
      const ids = (await deliveries()).flatMap(({ id, event, status }) =>
        event === 'owner' && status === 'failed' ? [id] : [],
      );
      return ids.length === count && ids;
    });
    const owned = opened.move();
    return {
      service,
      mailServer,
      formId,
      failed,
      deliveries,
      states: async () => (await deliveries()).map(({ status, error }) => `${status} ${error}`),
      end: () => {
        isOver = true;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }
});

async function runCli(args: string[], key: string): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [...program('cli'), ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, KEY: key },
  });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await once(child, 'close');
  return { code, output: (await output).join('') };
}
