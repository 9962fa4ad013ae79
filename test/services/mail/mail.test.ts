import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { MailLinkPurpose, MailService, StopScope } from '../../../gen/headlessforms/v1/mail_pb.js';
import { type MailLink, mailLinkToken, SIGN_IN_MAILS } from '../../../src/domain/links.ts';
import { newSecretKey, parseSecretKey } from '../../../src/domain/secrets/secret-key.ts';
import { isMailStopped, listConfirmedRecipients } from '../../../src/store/mail/mail-recipients.ts';
import { engines } from '../../support/database.ts';
import { failureOf } from '../../support/failures.ts';
import { givenMailLink } from '../../support/owner.ts';
import { startServices, type TestServices } from '../../support/services.ts';

describe.each(engines)('MailService on %s', (engine) => {
  let rpc: TestServices;
  const now = Date.now();

  const formerKey = parseSecretKey(newSecretKey());

  beforeAll(async () => {
    rpc = await startServices(engine, { now: () => now, formerKey });
  });

  afterAll(() => rpc[Symbol.asyncDispose]());

  const mail = () => createClient(MailService, rpc.as());
  const tokenOf = (link: MailLink, expiresAt = Date.now() + 60_000) =>
    givenMailLink(rpc.database, link, { key: rpc.secretKey, expiresAt });

  it('tells what a link stands for, and changes nothing by telling', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const token = await tokenOf({ purpose: 'confirm-owner', formId: id, address: 'owner@example.com' });

    const link = await mail().getMailLink({ token });

    expect(link).toMatchObject({
      purpose: MailLinkPurpose.CONFIRM_OWNER,
      address: 'owner@example.com',
      formName: 'Contact',
    });
    expect(await confirmedAt(id)).toBeNull();
  });

  it('stops mail by a link of any age that the former key signed, which makes no other link', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const link = { formId: id, address: 'former@example.com' };
    const signed = (purpose: MailLink['purpose'], expiresAt: number | null, key = formerKey) =>
      mailLinkToken(key, { ...link, purpose }, expiresAt);
    const follow = (token: string) => mail().followMailLink({ token, stopScope: StopScope.FORM });
    const unknownKey = parseSecretKey(newSecretKey());

    await follow(signed('stop', null));

    expect(await isMailStopped(rpc.database, link)).toBe(true);
    const forged = [
      signed('confirm-recipient', now + 1000),
      signed('confirm-recipient', now + 1000, rpc.secretKey),
      signed('confirm-owner', now + 1000),
      signed('stop', null, unknownKey),
    ];
    for (const token of forged) {
      expect(await failureOf(follow(token))).toMatchObject({ reason: 'INVALID_TOKEN' });
    }
  });

  it('works until it expires', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const link = { purpose: 'confirm-recipient', formId: id, address: 'late@example.com' } as const;
    const late = await tokenOf(link, now);

    expect(await failureOf(mail().followMailLink({ token: late }))).toMatchObject({
      reason: 'INVALID_TOKEN',
    });
  });

  it('confirms the owner, once', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const token = await tokenOf({ purpose: 'confirm-owner', formId: id, address: 'owner@example.com' });

    await mail().followMailLink({ token });
    const first = await confirmedAt(id);

    expect(first).not.toBeNull();
    expect(await failureOf(mail().followMailLink({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
    expect(await failureOf(mail().getMailLink({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
    expect(await confirmedAt(id)).toEqual(first);
  });

  it('hands the form to the owner that was asked, and to nobody else', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const forms = createClient(FormsService, rpc.as(rpc.key));
    await forms.changeFormOwner({ formId: id, email: 'next@example.com' });
    const change = async (address: string) =>
      mail().followMailLink({ token: await tokenOf({ purpose: 'change-owner', formId: id, address }) });

    expect(await failureOf(change('another@example.com'))).toMatchObject({ reason: 'INVALID_TOKEN' });
    expect((await forms.getForm({ formId: id })).form?.ownerEmail).toBe('owner@example.com');
    await change('next@example.com');
    expect((await forms.getForm({ formId: id })).form?.ownerEmail).toBe('next@example.com');
    expect(await failureOf(change('owner@example.com'))).toMatchObject({ reason: 'INVALID_TOKEN' });
  });

  it('confirms a further recipient', async () => {
    const { id } = await rpc.givenForm(rpc.key);

    await mail().followMailLink({
      token: await tokenOf({ purpose: 'confirm-recipient', formId: id, address: 'b@example.com' }),
    });

    expect(await listConfirmedRecipients(rpc.database, [id])).toMatchObject([
      { formId: id, address: 'b@example.com' },
    ]);
  });

  it('stops the mail of one form, or all mail', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const other = await rpc.givenForm(rpc.key);
    const address = `${crypto.randomUUID()}@example.com`;
    const token = await tokenOf({ purpose: 'stop', formId: id, address });
    const stopped = (formId: string) => isMailStopped(rpc.database, { address, formId });

    await mail().followMailLink({ token });
    expect([await stopped(id), await stopped(other.id)]).toEqual([true, false]);

    await mail().followMailLink({ token, stopScope: StopScope.ALL });
    expect([await stopped(id), await stopped(other.id)]).toEqual([true, true]);
  });

  it('has an entry in the audit log for what is changed, and none for what is as it was', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const address = `${crypto.randomUUID()}@example.com`;
    const token = await tokenOf({ purpose: 'stop', formId: id, address });
    const actions = async () => {
      const where = "form_id = $1 and action like 'form.mails%' order by created_at, id";
      const entries = await rpc.database.select(`select action from audit_entries where ${where}`, [id]);
      return entries.map(({ action }) => action);
    };

    for (let count = 0; count < 3; count += 1) await mail().followMailLink({ token });
    expect(await actions()).toEqual(['form.mails_stopped']);
    for (let count = 0; count < 3; count += 1) await mail().startMail({ token });
    expect(await actions()).toEqual(['form.mails_stopped', 'form.mails_started']);
  });

  it('starts again what was stopped by the same link, with all that was stopped along with it', async () => {
    const [form, other] = [await rpc.givenForm(rpc.key), await rpc.givenForm(rpc.key)];
    const address = `${crypto.randomUUID()}@example.com`;
    const [token, otherToken, signInToken] = [form.id, other.id, SIGN_IN_MAILS].map((formId) =>
      mailLinkToken(rpc.secretKey, { purpose: 'stop', formId, address }, null),
    );
    const scopes = async () => {
      const links = [token, otherToken, signInToken].map((each) => mail().getMailLink({ token: each ?? '' }));
      return (await Promise.all(links)).map(({ stopped }) => StopScope[stopped]);
    };

    await mail().followMailLink({ token: otherToken ?? '' });
    await mail().followMailLink({ token: token ?? '', stopScope: StopScope.EVERYTHING });
    expect(await scopes()).toEqual(['EVERYTHING', 'EVERYTHING', 'EVERYTHING']);
    await mail().startMail({ token: token ?? '' });
    expect(await scopes()).toEqual(['UNSPECIFIED', 'FORM', 'UNSPECIFIED']);
    expect(await isMailStopped(rpc.database, { address, formId: 'none', unasked: true })).toBe(false);

    await mail().followMailLink({ token: signInToken ?? '' });
    await mail().followMailLink({ token: token ?? '' });
    await mail().startMail({ token: token ?? '' });
    expect(await scopes()).toEqual(['UNSPECIFIED', 'FORM', 'FORM']);
    expect(await mail().getMailLink({ token: signInToken ?? '' })).toMatchObject({ aboutSignIn: true });
  });

  it('starts nothing by a link that stands for something else', async () => {
    const { id: formId } = await rpc.givenForm(rpc.key);
    const token = await tokenOf({ purpose: 'confirm-recipient', formId, address: 'a@example.com' });

    expect(await failureOf(mail().startMail({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
    expect(await failureOf(mail().startMail({ token: 'x' }))).toMatchObject({ reason: 'INVALID_TOKEN' });
  });

  it('refuses wrong, changed and expired tokens', async () => {
    const link = { purpose: 'stop', formId: 'form_x', address: 'a@example.com' } as const;
    const right = mailLinkToken(rpc.secretKey, link, null);
    const tokens = ['', 'stop.', `${right}x`, right.replace('stop', 'confirm-owner')];

    for (const token of tokens) {
      expect(await failureOf(mail().getMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
      expect(await failureOf(mail().followMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
    }
  });

  async function confirmedAt(formId: string): Promise<unknown> {
    const [row] = await rpc.database.select('select owner_confirmed_at from forms where id = $1', [formId]);
    return row?.owner_confirmed_at ?? null;
  }
});
