import { timestampFromDate, timestampFromMs, timestampMs, timestampNow } from '@bufbuild/protobuf/wkt';
import { type Client, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { MailService } from '../../../gen/headlessforms/v1/mail_pb.js';
import { FormAvailability, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import {
  ExportFormat,
  SubmissionStatus,
  SubmissionsService,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { fileLink, signInToken } from '../../../src/domain/links.ts';
import {
  confirmRecipient,
  isMailStopped,
  listConfirmedRecipients,
  stopMail,
} from '../../../src/store/mail/mail-recipients.ts';
import { confirmOwner } from '../../../src/store/owners/owners.ts';
import { engines } from '../../support/database.ts';
import { definitionOf, emailField } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { forged } from '../../support/forged.ts';
import { postsOf } from '../../support/hosted.ts';
import { givenMailLink, givenSignInLink } from '../../support/owner.ts';
import { startServices, type TestServices } from '../../support/services.ts';
import { until } from '../../support/until.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';

describe.each(engines)('OwnersService on %s', (engine) => {
  let rpc: TestServices;

  beforeAll(async () => {
    rpc = await startServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  const owners = (token?: string) => createClient(OwnersService, rpc.as(token));
  const mail = () => createClient(MailService, rpc.as());
  const linkFor = (address: string, { agoMs = 0, browser }: { agoMs?: number; browser?: string } = {}) => {
    const given = { key: rpc.secretKey, now: rpc.clock.ms - agoMs, ...(browser && { browser }) };
    return givenSignInLink(rpc.database, address, given);
  };

  async function signedIn(address: string) {
    const { sessionToken } = await owners().signIn({ token: await linkFor(address) });
    return { token: sessionToken, ...owners(sessionToken) };
  }

  /** A form of an owner of its own, who has confirmed and is signed in. */
  async function givenOwner({ address = `${crypto.randomUUID()}@example.com`, confirmed = true } = {}) {
    const { id, token } = await rpc.givenDraft(rpc.key, {
      fields: [
        { id: 'email', type: FormFieldType.EMAIL, required: true },
        { id: 'colour', type: FormFieldType.SELECT, options: [{ label: 'Deep red', value: 'r' }] },
        { id: 'note', type: FormFieldType.TEXTAREA },
        { id: 'cv', type: FormFieldType.FILE },
      ],
    });
    await rpc.forms.activateForm({ formId: id, activationToken: token, email: address });
    const owner = await signedIn(address);
    if (confirmed) await owner.confirmOwnedForm({ formId: id });
    return { formId: id, address, owner };
  }

  async function givenSubmission(formId: string, answers: JsonObject = {}) {
    const given = { email: 'ada@example.com', ...answers };
    return (await rpc.submissions.createSubmission({ formId, answers: given })).submissionId;
  }

  /** A submission with a file. */
  async function givenFile(formId: string) {
    const { upload } = await rpc.uploads.createUpload({
      target: { case: 'formId', value: formId },
      fieldId: 'cv',
      filename: 'cv.txt',
      content: new TextEncoder().encode('my life'),
    });
    const uploadId = upload?.id ?? '';
    return { uploadId, submissionId: await givenSubmission(formId, { cv: { upload_id: uploadId } }) };
  }

  describe('signing in', () => {
    it('answers the same to owners and to others, with the same work, and refuses what is no address', async () => {
      const { address } = await givenOwner();
      const mails = async () =>
        (await rpc.database.select("select receiver, mail from delivery_queue where kind = 'sign_in'")).map(
          ({ mail }) => mail,
        );

      const before = (await mails()).length;
      const answers = [
        await owners().requestSignIn({ email: address }),
        await owners().requestSignIn({ email: 'nobody@example.com' }),
      ];

      expect(answers[0]).toEqual(answers[1]);
      expect((await mails()).slice(before)).toEqual([
        { to: address, signIn: true, languages: expect.any(String), askedFrom: expect.any(String) },
        {
          to: 'nobody@example.com',
          signIn: true,
          languages: expect.any(String),
          askedFrom: expect.any(String),
        },
      ]);
      for (const email of ['', 'nobody', 'a@example.com, b@example.com'])
        expect(await failureOf(owners().requestSignIn({ email }))).toMatchObject({ reason: 'INVALID' });
    });

    it('tells of a link without using it, and opens one session by it, however many ask at once', async () => {
      const token = await linkFor('Ada@Example.com');

      expect((await owners().getSignInLink({ token })).address).toBe('ada@example.com');
      expect((await owners().getSignInLink({ token })).address).toBe('ada@example.com');
      const asked = await Promise.allSettled(Array.from({ length: 4 }, () => owners().signIn({ token })));

      expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await failureOf(owners().signIn({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
      expect(await failureOf(owners().getSignInLink({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
    });

    it('refuses links that are forged, of another purpose, or older than 15 minutes', async () => {
      const token = await linkFor('ada@example.com');
      for (const wrong of ['', `${token}x`, 'stop.x.y.z', (await signedIn('ada@example.com')).token])
        expect(await failureOf(owners().signIn({ token: wrong }))).toMatchObject({ reason: 'INVALID_TOKEN' });

      const old = await linkFor('ada@example.com', { agoMs: 15 * 60_000 });
      const young = await linkFor('ada@example.com', { agoMs: 14 * 60_000 });
      expect(await failureOf(owners().signIn({ token: old }))).toMatchObject({ reason: 'INVALID_TOKEN' });
      await owners().signIn({ token: young });
    });

    it('signs in by a link in the browser alone that asked for it, where one did', async () => {
      const token = await linkFor('ada@example.com', { browser: 'a secret of hers' });

      expect((await owners().getSignInLink({ token })).elsewhere).toBe(true);
      expect((await owners().getSignInLink({ token, browser: 'another' })).elsewhere).toBe(true);
      for (const browser of ['', 'another'])
        expect(await failureOf(owners().signIn({ token, browser }))).toMatchObject({
          reason: 'INVALID_TOKEN',
        });
      expect((await owners().getSignInLink({ token, browser: 'a secret of hers' })).elsewhere).toBe(false);
      await owners().signIn({ token, browser: 'a secret of hers' });
    });

    it('makes nothing of a link that is signed but was never mailed', async () => {
      const forged = signInToken(rpc.secretKey, 'ada@example.com', rpc.clock.ms);

      expect(await failureOf(owners().signIn({ token: forged }))).toMatchObject({ reason: 'TOKEN_USED' });
      expect(await failureOf(owners().getSignInLink({ token: forged }))).toMatchObject({
        reason: 'TOKEN_USED',
      });
    });

    it('voids the links that were mailed to sign in when all sessions are ended', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const [waiting, others] = [await linkFor(address), await linkFor('other@example.com')];
      const { signOut } = await signedIn(address);

      await signOut({ everywhere: true });

      expect(await failureOf(owners().signIn({ token: waiting }))).toMatchObject({ reason: 'TOKEN_USED' });
      await owners().signIn({ token: others });
    });

    it('ends the session that the browser had, and lists and ends the others', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0';
      const first = await signedIn(address);
      const withAgent = createClient(OwnersService, rpc.as(undefined, { 'user-agent': agent }));
      const opened = await withAgent.signIn({
        token: await linkFor(address),
        formerSessionToken: first.token,
        stay: true,
      });
      const second = owners(opened.sessionToken);
      const third = await signedIn(address);
      const stranger = await signedIn('stranger@example.com');

      expect(await failureOf(first.getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
      const { sessions } = await third.listOwnerSessions({});
      expect(sessions.map(({ browser, current }) => [browser, current])).toEqual(
        expect.arrayContaining([
          ['', true],
          ['Firefox, Linux', false],
        ]),
      );
      expect(sessions).toHaveLength(2);
      const sessionId = sessions.find(({ current }) => !current)?.id ?? '';
      const days = (timestampMs(opened.expireTime ?? timestampNow()) - rpc.clock.ms) / 86_400_000;
      expect(days).toBeCloseTo(30, 1);
      expect(JSON.stringify(sessions.map(({ id }) => id))).not.toContain(third.token);

      await stranger.endOwnerSession({ sessionId });
      await third.endOwnerSession({ sessionId: 'a\0b' });
      expect((await second.getOwner({})).address).toBe(address);
      await third.endOwnerSession({ sessionId });
      expect(await failureOf(second.getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
      expect((await third.getOwner({})).address).toBe(address);
    });

    it('asks for a fresh sign-in to hand over and to delete', async () => {
      const { formId, owner } = await givenOwner();
      const { submissionId } = await givenFile(formId);
      const started = rpc.clock.ms;
      const again = { reason: 'SIGN_IN_AGAIN' };

      rpc.clock.ms = started + 15 * 60_000 + 1000;
      expect(await failureOf(owner.deleteOwnedSubmission({ submissionId }))).toMatchObject(again);
      expect(await failureOf(owner.offerOwnedForm({ formId, email: 'b@example.com' }))).toMatchObject(again);
      expect((await owner.getOwnedSubmission({ submissionId })).submission?.submission?.id).toBe(
        submissionId,
      );
      rpc.clock.ms = started + 15 * 60_000 - 1000;
      await owner.offerOwnedForm({ formId, email: 'b@example.com' });
      await owner.deleteOwnedSubmission({ submissionId });
      rpc.clock.ms = started;
    });

    it('ends a session after 12 hours, at its end, or with all sessions of the address', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const other = await signedIn('other@example.com');
      const [first, second, third] = [
        await signedIn(address),
        await signedIn(address),
        await signedIn(address),
      ];
      const ended = { reason: 'INVALID_KEY' };

      await first.signOut({});
      expect(await failureOf(first.getOwner({}))).toMatchObject(ended);
      expect((await second.getOwner({})).address).toBe(address);

      await second.signOut({ everywhere: true });
      expect(await failureOf(second.getOwner({}))).toMatchObject(ended);
      expect(await failureOf(third.getOwner({}))).toMatchObject(ended);
      expect((await other.getOwner({})).address).toBe('other@example.com');

      const started = rpc.clock.ms;
      rpc.clock.ms = started + 12 * 60 * 60_000 - 60_000;
      expect((await other.getOwner({})).address).toBe('other@example.com');
      rpc.clock.ms = started + 12 * 60 * 60_000;
      expect(await failureOf(other.getOwner({}))).toMatchObject(ended);
      rpc.clock.ms = started;
    });

    it('knows a device that has signed in by its token, for that address and a year', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const { deviceToken } = await owners().signIn({ token: await linkFor(address) });
      const started = rpc.clock.ms;
      const isKnown = async (email: string, token: string) => {
        rpc.clock.ms += 1;
        await owners().requestSignIn({ email, deviceToken: token });
        const rows = await rpc.database.select(
          "select mail->>'isKnown' as known, share from delivery_queue where receiver = $1 order by id desc limit 1",
          [email.toLowerCase()],
        );
        return [rows[0]?.known ?? '', rows[0]?.share];
      };

      expect(await isKnown(address, deviceToken)).toEqual(['true', '']);
      expect(await isKnown(address.toUpperCase(), deviceToken)).toEqual(['true', '']);
      for (const [email, token] of [
        ['other@example.com', deviceToken],
        [address, `${deviceToken}x`],
        [address, await linkFor(address)],
        [address, ''],
      ] as const)
        expect(await isKnown(email, token)).toEqual(['', ' keyless']);
      rpc.clock.ms = started + 366 * 24 * 60 * 60_000;
      expect(await isKnown(address, deviceToken)).toEqual(['', ' keyless']);
      rpc.clock.ms = started;
      expect(await failureOf(owners(deviceToken).getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
    });

    it('stores neither links nor sessions in a form that opens anything', async () => {
      const token = await linkFor('ada@example.com');
      const { sessionToken } = await owners().signIn({ token });

      const rows = JSON.stringify([
        await rpc.database.select('select * from owner_sessions'),
        await rpc.database.select('select * from used_sign_in_links'),
      ]);

      expect(rows).not.toContain(token);
      expect(rows).not.toContain(sessionToken);
    });
  });

  describe('credentials', () => {
    it('are no API keys here, and sessions open nothing else', async () => {
      const { owner } = await givenOwner();
      for (const { localName } of OwnersService.methods) {
        expect(await failureOf(outcomeOf(owners(rpc.key), localName, {})), localName).toMatchObject({
          reason: 'INVALID_KEY',
        });
      }
      const withNothing = owners();
      expect(await failureOf(withNothing.listOwnedForms({}))).toMatchObject({ reason: 'MISSING_KEY' });
      const forms = createClient(FormsService, rpc.as(owner.token));
      expect(await failureOf(forms.listForms({}))).toMatchObject({ reason: 'INVALID_KEY' });
      const submissions = createClient(SubmissionsService, rpc.as(owner.token));
      expect(await failureOf(submissions.listSubmissions({}))).toMatchObject({ reason: 'INVALID_KEY' });
    });

    it('show each owner their own forms alone, by every call', async () => {
      const { formId, owner, address } = await givenOwner();
      const { owner: stranger } = await givenOwner();
      const { submissionId, uploadId } = await givenFile(formId);
      const request = { formId, submissionId, uploadId, text: 'ada', format: ExportFormat.CSV };
      const own = new Set([
        'signOut',
        'listOwnerSessions',
        'endOwnerSession',
        'getOwner',
        'listOwnedForms',
        'requestSignIn',
        'getSignInLink',
        'signIn',
      ]);

      for (const { localName } of OwnersService.methods) {
        if (own.has(localName)) continue;
        expect(await failureOf(outcomeOf(stranger, localName, request)), localName).toMatchObject({
          reason: 'NOT_FOUND',
        });
      }
      expect((await stranger.listOwnedForms({})).forms.map(({ id }) => id)).not.toContain(formId);
      expect((await owner.getOwnedForm({ formId })).form?.acceptedCount).toBe(1);
      const inCapitals = await signedIn(address.toUpperCase());
      expect((await inCapitals.listOwnedForms({})).forms.map(({ id }) => id)).toEqual([formId]);
    });

    it('open nothing once they have ended or expired, or are made up, by any call', async () => {
      const { formId, owner, address } = await givenOwner();
      const { submissionId, uploadId } = await givenFile(formId);
      const request = {
        formId,
        submissionId,
        uploadId,
        text: 'ada',
        format: ExportFormat.CSV,
        email: address,
      };
      const started = rpc.clock.ms;
      const ended = await signedIn(address);
      await ended.signOut({});
      const open = new Set(['requestSignIn', 'getSignInLink', 'signIn']);
      const methods = OwnersService.methods.filter(({ localName }) => !open.has(localName));
      const expectRefused = async (token: string | undefined, reason: string) => {
        for (const { localName } of methods)
          expect(await failureOf(outcomeOf(owners(token), localName, request)), localName).toMatchObject({
            reason,
          });
      };

      await expectRefused(undefined, 'MISSING_KEY');
      await expectRefused(ended.token, 'INVALID_KEY');
      await expectRefused(forged(owner.token), 'INVALID_KEY');
      rpc.clock.ms = started + 12 * 60 * 60_000;
      await expectRefused(owner.token, 'INVALID_KEY');
      rpc.clock.ms = started;

      expect(methods.length).toBeGreaterThan(15);
      expect((await owner.getOwnedSubmission({ submissionId })).files).toHaveLength(1);
    });

    it('show an owner who has not confirmed nothing but that the form is there', async () => {
      const { formId, owner } = await givenOwner({ confirmed: false });
      const { submissionId, uploadId } = await givenFile(formId);
      const request = { formId, submissionId, uploadId, text: 'ada', format: ExportFormat.CSV };

      expect((await owner.listOwnedForms({})).forms).toMatchObject([{ id: formId, confirmed: false }]);
      for (const { localName } of OwnersService.methods) {
        if (/SignIn|signIn|signOut|OwnerSession|getOwner$|listOwnedForms|confirmOwnedForm/.test(localName))
          continue;
        expect(await failureOf(outcomeOf(owner, localName, request)), localName).toMatchObject({
          reason: 'CONFLICT',
        });
      }

      await owner.confirmOwnedForm({ formId });
      expect((await owner.getOwnedSubmission({ submissionId })).submission?.submission?.id).toBe(
        submissionId,
      );
    });
  });

  describe('a hand-over', () => {
    /** A form that its owner offers to another, with a recipient that was added and has confirmed. */
    async function givenOffer() {
      const given = await givenOwner();
      const { formId, owner } = given;
      const [next, added] = [`${crypto.randomUUID()}@example.com`, `${crypto.randomUUID()}@example.com`];
      await owner.addFormRecipient({ formId, email: added });
      await confirmRecipient(rpc.database, { formId, address: added });
      await owner.offerOwnedForm({ formId, email: next });
      const token = await givenMailLink(
        rpc.database,
        { purpose: 'change-owner', formId, address: next },
        { key: rpc.secretKey },
      );
      const recipients = async () =>
        (await listConfirmedRecipients(rpc.database, [formId])).map(({ address }) => address);
      return { ...given, next, added, token, recipients };
    }

    it('ends what the former owner had and gave, and tells them', async () => {
      const { formId, owner, address, next, added, token, recipients } = await givenOffer();
      const link = { formId, address } as const;
      const old = await givenMailLink(
        rpc.database,
        { purpose: 'confirm-owner', ...link },
        { key: rpc.secretKey },
      );
      const { uploadId } = await givenFile(formId);
      const fileUrl = (ownerEpoch: number) =>
        fileLink(
          { secretKey: rpc.secretKey, baseUrl: '', now: rpc.clock.ms },
          { id: formId, ownerEpoch },
          uploadId,
        );
      const open = async (url: string) => {
        for await (const _ of createClient(UploadsService, rpc.as()).getLinkedUpload({
          token: url.slice('/files/'.length),
        }))
          return 'read';
        return 'empty';
      };
      expect(await open(fileUrl(0))).toBe('read');
      expect((await mail().getMailLink({ token })).recipients).toEqual([added]);

      await mail().followMailLink({ token });

      expect(await failureOf(owner.getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
      expect(await recipients()).toEqual([]);
      expect(await failureOf(open(fileUrl(0)))).toMatchObject({ reason: 'EXPIRED' });
      expect(await open(fileUrl(1))).toBe('read');
      expect(await failureOf(mail().followMailLink({ token: old }))).toMatchObject({
        reason: 'INVALID_TOKEN',
      });
      const told = await rpc.database.select(
        "select body from events where form_id = $1 and type = 'owner.changed'",
        [formId],
      );
      expect(told.map(({ body }) => JSON.stringify(body))).toEqual([expect.stringContaining(address)]);
      expect((await (await signedIn(next)).getOwnedForm({ formId })).form?.id).toBe(formId);
    });

    it('is taken back by its owner, whose link then does nothing', async () => {
      const { formId, owner, next, token } = await givenOffer();
      const offeredTo = async () => (await owner.getOwnedForm({ formId })).form?.offeredTo;

      expect(await offeredTo()).toBe(next);
      await owner.withdrawOwnedFormOffer({ formId });

      expect(await offeredTo()).toBe('');
      expect(await failureOf(mail().followMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
      expect((await owner.getOwnedForm({ formId })).form?.id).toBe(formId);
    });

    it('leaves the recipients that were added if the new owner says so', async () => {
      const { added, token, recipients } = await givenOffer();

      await mail().followMailLink({ token, keepRecipients: true });

      expect(await recipients()).toEqual([added]);
    });

    it('is not needed to get what the owner gets: adding oneself is refused', async () => {
      const { formId, owner, address } = await givenOwner();

      expect(await failureOf(owner.addFormRecipient({ formId, email: address.toUpperCase() }))).toMatchObject(
        { reason: 'CONFLICT' },
      );
      expect((await owner.getOwnedForm({ formId })).form?.recipients).toEqual([]);
    });

    it('confirms no recipient by a link from before it was removed', async () => {
      const { formId, owner, added, recipients } = await givenOffer();
      const link = { purpose: 'confirm-recipient', formId, address: added } as const;
      const token = await givenMailLink(rpc.database, link, { key: rpc.secretKey });

      await owner.removeFormRecipient({ formId, email: added });
      await owner.addFormRecipient({ formId, email: added });

      expect(await failureOf(mail().followMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
      expect(await recipients()).toEqual([]);
    });
  });

  describe('texts', () => {
    const texts = (name: string, more: object = {}) => ({ name, fields: [], ...more });

    it('are changed by a new version through the gate of all, never by an old one, nor what is not theirs', async () => {
      const { formId, owner } = await givenOwner();
      await rpc.forms.publishFormVersion(
        {
          formId,
          definition: definitionOf(
            [
              { id: 'email', type: 'email', required: true, label: 'Address', description: 'Yours' },
              { id: 'colour', type: 'select', options: [{ label: 'Red', value: 'r' }] },
            ],
            {},
            { type: 'email', to: ['other@example.com'] },
          ),
        },
        rpc.owner,
      );
      const read = async () => (await owner.getOwnedForm({ formId })).form;
      const expectedVersionId = (await read())?.versionId ?? '';
      const closeTime = timestampFromMs(rpc.clock.ms + 86_400_000);
      const wanted = texts('Cake orders', {
        description: 'By Friday',
        successMessage: 'Thanks!',
        closeTime,
        maxSubmissions: 50,
        fields: [{ fieldId: 'colour', label: 'Icing', options: [{ value: 'r', label: 'Dark red' }] }],
      });

      const checked = await owner.publishOwnedFormTexts({ formId, texts: wanted, validateOnly: true });
      expect([(await read())?.name, checked.definition?.name]).toEqual(['Test', 'Cake orders']);
      const { versionId } = await owner.publishOwnedFormTexts({ formId, texts: wanted, expectedVersionId });
      const again = await owner.publishOwnedFormTexts({ formId, texts: wanted, expectedVersionId });
      const stale = () => owner.publishOwnedFormTexts({ formId, texts: texts('Late'), expectedVersionId });
      const unnamed = () => owner.publishOwnedFormTexts({ formId, texts: texts('No version') });

      expect(again.versionId).toBe(versionId);
      expect(versionId).not.toBe(expectedVersionId);
      expect(await failureOf(stale())).toMatchObject({ reason: 'CONFLICT' });
      expect(await failureOf(unnamed())).toMatchObject({ reason: 'INVALID' });
      const { form } = await rpc.forms.getForm({ formId }, rpc.owner);
      expect(form?.definition).toMatchObject({
        name: 'Cake orders',
        description: 'By Friday',
        settings: { successMessage: 'Thanks!', maxSubmissions: 50, closesAt: closeTime },
        fields: [
          { id: 'email', label: 'Address', description: 'Yours', required: true },
          { id: 'colour', label: 'Icing', options: [{ value: 'r', label: 'Dark red' }] },
        ],
        delivery: { channel: { case: 'email', value: { to: ['other@example.com'] } } },
      });
      expect(checked.definition?.delivery).toBeUndefined();
    });

    it('are refused with their places, and where a file keeps the form with its name', async () => {
      const { formId, owner } = await givenOwner();
      const refused = () =>
        owner.publishOwnedFormTexts({
          formId,
          texts: texts('', { fields: [{ fieldId: 'email', label: '' }] }),
          validateOnly: true,
        });
      const unknown = () =>
        owner.publishOwnedFormTexts({
          formId,
          texts: texts('A', { fields: [{ fieldId: 'nobody', label: 'B' }] }),
        });

      expect((await failureOf(refused())).violations.map(([path]) => path)).toEqual([
        'definition.name',
        'definition.fields[0].label',
      ]);
      expect((await failureOf(unknown())).violations[0]?.[0]).toBe('texts.fields[0].field_id');
      await rpc.database.execute("update forms set managed_by = 'forms/', key = $2 where id = $1", [
        formId,
        formId.slice(0, 60),
      ]);
      const kept = { reason: 'CONFLICT', message: expect.stringContaining(`kept in forms/${formId}`) };
      expect(await failureOf(owner.publishOwnedFormTexts({ formId, texts: texts('A') }))).toMatchObject(kept);
      expect(await failureOf(owner.deleteOwnedForm({ formId, name: 'Contact' }))).toMatchObject(kept);
      expect((await owner.getOwnedForm({ formId })).form).toMatchObject({
        name: 'Contact',
        keptIn: `forms/${formId}`,
      });
    });

    it('go with the form when its owner deletes it by its name', async () => {
      const { formId, owner } = await givenOwner();
      const { submissionId } = await givenFile(formId);

      expect(await failureOf(owner.deleteOwnedForm({ formId, name: 'contact' }))).toMatchObject({
        reason: 'INVALID',
        violations: [['name', 'custom']],
      });
      await owner.deleteOwnedForm({ formId, name: ' Contact ' });

      expect(await failureOf(owner.getOwnedForm({ formId }))).toMatchObject({ reason: 'NOT_FOUND' });
      expect(await failureOf(owner.getOwnedSubmission({ submissionId }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
      expect((await owner.listOwnedForms({})).forms).toEqual([]);
    });
  });

  describe('submissions', () => {
    it('come no more to a form that its owner has closed, by no call, until it is opened again', async () => {
      const { formId, owner } = await givenOwner();
      const answers = { email: 'ada@example.com' };
      const { session } = await rpc.sessions.createSession(
        { subject: { case: 'formId', value: formId } },
        rpc.owner,
      );
      const sessionId = session?.id ?? '';
      const inputs = [{ name: 'email', values: ['ada@example.com'] }];
      const attempts: [string, () => Promise<unknown>][] = [
        ['submission', () => rpc.submissions.createSubmission({ formId, answers })],
        ['managed', () => rpc.submissions.createManagedSubmission({ formId, answers }, rpc.owner)],
        ['check', () => rpc.submissions.checkAnswers({ formId, answers })],
        ['post', () => rpc.hosted.submitPostedForm({ formId, inputs })],
        [
          'session',
          () => rpc.sessions.createSession({ subject: { case: 'formId', value: formId } }, rpc.owner),
        ],
        ['session’s change', () => rpc.sessions.updateSession({ sessionId, answers }, rpc.owner)],
        ['session’s answers', () => rpc.sessions.submitSession({ sessionId, answers }, rpc.owner)],
        ['saved', () => postsOf(rpc.hosted).save({ sessionId, inputs })],
        ['hosted', () => postsOf(rpc.hosted).submit({ sessionId, inputs })],
        [
          'upload',
          () => rpc.uploads.createUpload({ target: { case: 'formId', value: formId }, fieldId: 'cv' }),
        ],
      ];

      await owner.closeOwnedForm({ formId });
      const first = (await owner.getOwnedForm({ formId })).form?.closeTime;
      rpc.clock.ms += 10;
      await owner.closeOwnedForm({ formId });

      for (const [what, attempt] of attempts)
        expect(await failureOf(attempt()), what).toMatchObject({ reason: 'CLOSED' });
      expect((await rpc.hosted.getHosted({ sessionId })).session?.state).toBe(HostedState.CLOSED);
      expect((await owner.getOwnedForm({ formId })).form?.closeTime).toEqual(first);
      expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.closeTime).toEqual(first);
      await owner.reopenOwnedForm({ formId });
      await givenSubmission(formId);
      expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.closeTime).toBeUndefined();
    });

    it('come no more to a form that its settings end or that is full, and its owner is told which', async () => {
      const { formId, owner } = await givenOwner();
      const publish = async (settings: object) => {
        const definition = definitionOf(emailField, settings);
        await rpc.forms.publishFormVersion({ formId, definition }, rpc.owner);
      };
      const seen = async () => {
        const [listed] = (await owner.listOwnedForms({})).forms;
        const { form } = await owner.getOwnedForm({ formId });
        expect(listed?.availability).toBe(form?.availability);
        return [form?.availability, form?.submissionLimit?.count, form?.submissionLimit?.max];
      };
      const { OPEN, CLOSED, ENDED, FULL } = FormAvailability;

      expect(await seen()).toEqual([OPEN, undefined, undefined]);
      await publish({ maxSubmissions: 1 });
      expect(await seen()).toEqual([OPEN, 0, 1]);
      const submissionId = await givenSubmission(formId);
      await expect.poll(seen).toEqual([FULL, 1, 1]);
      await owner.deleteOwnedSubmission({ submissionId });
      expect(await seen()).toEqual([OPEN, 0, 1]);
      const closesAt = new Date(rpc.clock.ms + 1000);
      await publish({ maxSubmissions: 1, closesAt: closesAt.toISOString() });
      expect(await seen()).toEqual([OPEN, 0, 1]);
      rpc.clock.ms += 1000;
      expect(await seen()).toEqual([ENDED, 0, 1]);
      const { form } = await owner.getOwnedForm({ formId });
      expect(form?.settingsCloseTime).toEqual(timestampFromDate(closesAt));
      await owner.closeOwnedForm({ formId });
      expect(await seen()).toEqual([CLOSED, 0, 1]);
    });

    it('are mailed to the owner no more, or again, as the owner says', async () => {
      const { formId, owner, address } = await givenOwner();
      const stopped = async () => (await owner.getOwnedForm({ formId })).form?.mailsStopped;

      expect(await stopped()).toBe(false);
      await owner.setOwnedFormMails({ formId, stopped: true });
      expect([await stopped(), await isMailStopped(rpc.database, { address, formId })]).toEqual([true, true]);
      await stopMail(rpc.database, { address, formId: '', scope: 'all' });
      await owner.setOwnedFormMails({ formId, stopped: false });
      expect([await stopped(), await isMailStopped(rpc.database, { address, formId })]).toEqual([
        false,
        false,
      ]);
    });

    it('go by mail to those whom the owner adds once they confirm, ten at most, and no more once removed', async () => {
      const { formId, owner } = await givenOwner();
      const recipients = async () => (await owner.getOwnedForm({ formId })).form?.recipients;
      const asked = async () => {
        const rows = await rpc.database.select(
          "select body from events where form_id = $1 and type = 'recipients.added'",
          [formId],
        );
        return rows.map(({ body }) => JSON.parse(String(body)).addresses);
      };

      await owner.addFormRecipient({ formId, email: 'Bob@example.com' });
      await owner.addFormRecipient({ formId, email: 'bob@example.com' });
      expect(await recipients()).toMatchObject([{ address: 'Bob@example.com', confirmed: false }]);
      expect(await asked()).toEqual([['Bob@example.com']]);
      await confirmRecipient(rpc.database, { formId, address: 'bob@example.com' });
      expect(await recipients()).toMatchObject([{ address: 'Bob@example.com', confirmed: true }]);

      const added = await Promise.allSettled(
        Array.from({ length: 12 }, (_, n) => owner.addFormRecipient({ formId, email: `r${n}@example.com` })),
      );
      expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(9);
      await owner.removeFormRecipient({ formId, email: 'BOB@example.com' });
      expect(await recipients()).toHaveLength(9);
      expect((await listConfirmedRecipients(rpc.database, [formId])).map(({ address }) => address)).toEqual(
        [],
      );
      expect(await failureOf(owner.addFormRecipient({ formId, email: 'bob' }))).toMatchObject({
        reason: 'INVALID',
      });
    });

    it('belong, with the form, to whom the owner hands it over, once they agree', async () => {
      const { formId, owner, address } = await givenOwner();
      const next = `${crypto.randomUUID()}@example.com`;

      await owner.offerOwnedForm({ formId, email: next });
      expect((await owner.getOwnedForm({ formId })).form?.offeredTo).toBe(next);
      expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.ownerEmail).toBe(address);
      await confirmOwner(rpc.database, formId, next);

      expect(await failureOf(owner.getOwnedForm({ formId }))).toMatchObject({ reason: 'NOT_FOUND' });
      const taken = await signedIn(next);
      expect((await taken.getOwnedForm({ formId })).form).toMatchObject({ confirmed: true, offeredTo: '' });
    });

    it.each<[string, (owner: Client<typeof OwnersService>, formId: string) => Promise<unknown>]>([
      ['offered on', (owner, formId) => owner.offerOwnedForm({ formId, email: 'other@example.com' })],
      ['closed', (owner, formId) => owner.closeOwnedForm({ formId })],
      ['opened again', (owner, formId) => owner.reopenOwnedForm({ formId })],
      ['given a recipient', (owner, formId) => owner.addFormRecipient({ formId, email: 'bob@example.com' })],
      ['rid of one', (owner, formId) => owner.removeFormRecipient({ formId, email: 'ada@example.com' })],
    ])(
      'are not %s by an owner from whom somebody takes the form over at that moment',
      async (what, change) => {
        const { formId, owner } = await givenOwner();
        const next = `${crypto.randomUUID()}@example.com`;
        await owner.offerOwnedForm({ formId, email: next });
        await owner.addFormRecipient({ formId, email: 'ada@example.com' });
        const isClosed = what === 'opened again';
        if (isClosed) await owner.closeOwnedForm({ formId });
        const begun = Promise.withResolvers<void>();
        const asked = Promise.withResolvers<void>();
        const taking = rpc.database.transaction(async (tx) => {
          await confirmOwner(tx, formId, next);
          begun.resolve();
          await asked.promise;
        });
        await begun.promise;

        const refused = failureOf(change(owner, formId));
        // The embedded database reads nothing, either, while a transaction goes on.
        if (engine === 'postgres') await until(async () => (await waitingForLocks(rpc)) > 0);
        asked.resolve();
        await taking;

        expect(await refused).toMatchObject({ reason: 'NOT_FOUND' });
        const { form } = await (await signedIn(next)).getOwnedForm({ formId });
        expect(form).toMatchObject({
          confirmed: true,
          offeredTo: '',
          recipients: [{ address: 'ada@example.com' }],
        });
        expect(form?.closeTime !== undefined).toBe(isClosed);
      },
    );

    it('are no way to have many asked from one client, who makes forms without a key', async () => {
      async function givenAsker(key: string | undefined, address: string) {
        const { id: formId, token } = await rpc.givenDraft(key);
        const email = `${crypto.randomUUID()}@example.com`;
        await rpc.forms.activateForm({ formId, activationToken: token, email });
        const { token: session, confirmOwnedForm } = await signedIn(email);
        await confirmOwnedForm({ formId });
        const client = createClient(OwnersService, rpc.as(session, { 'x-forwarded-for': address }));
        return (n: number) => client.offerOwnedForm({ formId, email: `${n}@example.net` });
      }
      const ask = await givenAsker(undefined, '203.0.113.7');
      for (let n = 0; n < 100; n += 1) await ask(n);

      const again = await givenAsker(undefined, '203.0.113.7');
      expect(await failureOf(again(100))).toMatchObject({ reason: 'RATE_LIMITED' });
      await (await givenAsker(undefined, '203.0.113.8'))(101);
      await (await givenAsker(rpc.key, '203.0.113.7'))(102);
    });

    it('are listed newest first, by status, time and page, with words instead of values', async () => {
      const { formId, owner } = await givenOwner();
      const started = rpc.clock.ms;
      const ids: string[] = [];
      for (const colour of ['r', undefined, 'r']) {
        rpc.clock.ms += 1000;
        ids.unshift(
          await givenSubmission(formId, colour === undefined ? { note: 'n'.repeat(5000) } : { colour }),
        );
      }
      const inputs = [{ name: 'email', values: ['a@example.com'] }];
      const { submissionId: spamId } = await rpc.hosted.submitPostedForm({ formId, inputs, honeypot: 'x' });
      const listed = async (request: object) =>
        (await owner.listOwnedSubmissions({ formId, ...request })).submissions.map(
          ({ submission }) => submission?.id,
        );

      const first = await owner.listOwnedSubmissions({ formId, pageSize: 2 });
      const second = await owner.listOwnedSubmissions({
        formId,
        pageSize: 2,
        pageToken: first.nextPageToken,
      });

      expect([...first.submissions, ...second.submissions].map(({ submission }) => submission?.id)).toEqual(
        ids,
      );
      expect(second.nextPageToken).toBe('');
      expect(first.submissions[0]?.texts.map(({ fieldId, text }) => [fieldId, text])).toEqual([
        ['email', 'ada@example.com'],
        ['colour', 'Deep red'],
      ]);
      expect(first.submissions[1]?.texts.at(-1)?.text).toHaveLength(301);
      expect(await listed({ filter: { status: SubmissionStatus.SPAM } })).toEqual([spamId]);
      const createdAfter = timestampFromMs(started + 2000);
      const createdBefore = timestampFromMs(started + 3000);
      expect(await listed({ filter: { createdAfter, createdBefore } })).toEqual([ids[1]]);
      const { form } = await owner.getOwnedForm({ formId });
      expect(form).toMatchObject({ acceptedCount: 3, spamCount: 1, confirmed: true });
      expect(form?.definition?.fields.map(({ id }) => id)).toEqual(['email', 'colour', 'note', 'cv']);
      expect(form?.definition?.delivery).toBeUndefined();
    });

    it('are marked as read up to one, each page leads to those around it, and each answer to its neighbours', async () => {
      const { formId, owner, address } = await givenOwner();
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        rpc.clock.ms += 1000;
        ids.unshift(await givenSubmission(formId));
      }
      const read = async () => {
        const { form } = await owner.getOwnedForm({ formId });
        return [form?.unreadCount, form?.readSubmissionId];
      };
      const tokens = async (pageToken: string) => {
        const page = await owner.listOwnedSubmissions({ formId, pageSize: 2, pageToken });
        return [page.submissions[0]?.submission?.id, page.previousPageToken, page.nextPageToken];
      };
      const neighbours = async (submissionId = '') => {
        const shown = await owner.getOwnedSubmission({ submissionId });
        return [shown.newerSubmissionId, shown.olderSubmissionId];
      };

      expect(await read()).toEqual([5, '']);
      await owner.markOwnedSubmissionsRead({ formId, submissionId: ids[1] ?? '' });
      await owner.markOwnedSubmissionsRead({ formId, submissionId: ids[3] ?? '' });
      expect(await read()).toEqual([1, ids[1]]);
      expect(await failureOf(owner.markOwnedSubmissionsRead({ formId, submissionId: 'x' }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
      expect(await tokens('')).toEqual([ids[0], '', ids[1]]);
      expect(await tokens(ids[1] ?? '')).toEqual([ids[2], '', ids[3]]);
      expect(await tokens(ids[3] ?? '')).toEqual([ids[4], ids[1], '']);
      expect(await neighbours(ids[0])).toEqual(['', ids[1]]);
      expect(await neighbours(ids[4])).toEqual([ids[3], '']);

      // Who takes the form over has read none of them.
      const next = `${crypto.randomUUID()}@example.com`;
      await owner.offerOwnedForm({ formId, email: next });
      await confirmOwner(rpc.database, formId, next);
      const listed = await (await signedIn(next)).listOwnedForms({});
      expect(listed.forms).toMatchObject([{ id: formId, unreadCount: 5, readSubmissionId: '' }]);
      expect(address).not.toBe(next);
    });

    it('are found by a text in an answer or a label, in any case, page by page', async () => {
      const { formId, owner } = await givenOwner();
      const ids: string[] = [];
      for (const note of ['Needle', 'hay', 'needles', 'hay', 'NEEDLE']) {
        rpc.clock.ms += 1;
        ids.unshift(await givenSubmission(formId, { note, ...(note === 'hay' && { colour: 'r' }) }));
      }
      const search = (text: string, more: object = {}) =>
        owner.searchOwnedSubmissions({ formId, text, ...more });
      const idsOf = ({ submissions }: Awaited<ReturnType<typeof search>>) =>
        submissions.map(({ submission }) => submission?.id);

      const first = await search(' needle ', { pageSize: 2 });
      const second = await search('needle', { pageSize: 2, pageToken: first.nextPageToken });

      expect(idsOf(first)).toEqual([ids[0], ids[2]]);
      expect(first).toMatchObject({ searchedCount: 3, truncated: false });
      expect(idsOf(second)).toEqual([ids[4]]);
      expect(second).toMatchObject({ searchedCount: 5, truncated: false, nextPageToken: '' });
      expect(idsOf(await search('deep'))).toEqual([ids[1], ids[3]]);
      expect(idsOf(await search('note'))).toEqual([]);
      for (const text of ['', ' ', 'x'.repeat(201), 'a\0'])
        expect(await failureOf(search(text))).toMatchObject({ reason: 'INVALID' });
      for (const pageToken of ['x', 'sub_x.1', `${ids[0]}.x`])
        expect(await failureOf(search('a', { pageToken }))).toMatchObject({ reason: 'BAD_REQUEST' });
    });

    it('are counted by day, and by what was chosen', async () => {
      const { formId, owner } = await givenOwner();
      await givenSubmission(formId, { colour: 'r' });
      await givenSubmission(formId);

      const counted = await owner.getOwnedFormStatistics({ formId });

      expect(counted).toMatchObject({ countedCount: 2, truncated: false });
      expect(counted.days).toHaveLength(30);
      expect(counted.days.at(-1)).toMatchObject({
        date: new Date(rpc.clock.ms).toISOString().slice(0, 10),
        count: 2,
      });
      expect(counted.choices).toMatchObject([
        { fieldId: 'colour', answeredCount: 1, otherCount: 0, options: [{ label: 'Deep red', count: 1 }] },
      ]);
    });

    it('are counted for every type that is no text, with averages, ranges, places and rows', async () => {
      const { formId, owner } = await givenOwner();
      const [a, b] = [
        { value: 'a', label: 'A' },
        { value: 'b', label: 'B' },
      ];
      await rpc.forms.publishFormVersion(
        {
          formId,
          definition: definitionOf([
            { id: 'email', type: 'email' },
            { id: 'laptop', type: 'boolean' },
            { id: 'stars', type: 'rating' },
            { id: 'again', type: 'scale', min: 0, max: 10 },
            { id: 'age', type: 'number' },
            { id: 'order', type: 'ranking', options: [a, b] },
            { id: 'grid', type: 'matrix', rows: [{ value: 'x', label: 'X' }], options: [a, b] },
            { id: 'terms', type: 'checkbox' },
          ]),
        },
        rpc.owner,
      );
      for (let n = 0; n < 12; n += 1) {
        await givenSubmission(formId, {
          laptop: n < 3,
          stars: 1 + (n % 2),
          again: n < 9 ? 10 : 0,
          age: n * 10,
          order: n < 3 ? ['a', 'b'] : ['b', 'a'],
          grid: { x: 'b' },
        });
      }

      const { choices } = await owner.getOwnedFormStatistics({ formId });

      const counts = (id: string) =>
        choices.find(({ fieldId }) => fieldId === id)?.options.map(({ label, count }) => [label, count]);
      const only = (id: string) => choices.find(({ fieldId }) => fieldId === id);
      expect(choices.map(({ fieldId }) => fieldId)).toEqual([
        'laptop',
        'stars',
        'again',
        'age',
        'order',
        'grid',
        'terms',
      ]);
      expect(counts('laptop')).toEqual([
        ['Yes', 3],
        ['No', 9],
      ]);
      expect(counts('stars')?.slice(0, 3)).toEqual([
        ['1', 6],
        ['2', 6],
        ['3', 0],
      ]);
      expect([only('stars')?.average, only('stars')?.netPromoterScore]).toEqual([1.5, undefined]);
      expect(only('again')).toMatchObject({ average: 7.5, netPromoterScore: 50 });
      expect(only('age')).toMatchObject({ average: 55, answeredCount: 12, otherCount: 0 });
      expect(counts('age')).toHaveLength(10);
      expect(counts('age')?.[0]).toEqual(['0 – 11', 2]);
      expect(counts('age')?.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(12);
      expect(only('order')?.options.map(({ averagePlace }) => averagePlace)).toEqual([1.75, 1.25]);
      expect(only('grid')).toMatchObject({ label: 'Grid: X', options: [{ count: 0 }, { count: 12 }] });
      expect([only('terms')?.answeredCount, only('terms')?.average]).toEqual([0, undefined]);
    });

    it('are shown whole, with files, origins and deliveries', async () => {
      const { formId, owner } = await givenOwner();
      const { submissionId, uploadId } = await givenFile(formId);

      const shown = await owner.getOwnedSubmission({ submissionId });
      const pieces: string[] = [];
      for await (const { content } of owner.getOwnedUpload({ uploadId }))
        pieces.push(Buffer.from(content).toString());

      expect(shown).toMatchObject({ formName: 'Contact', files: [{ id: uploadId, filename: 'cv.txt' }] });
      expect(shown.submission?.texts.map(({ text }) => text)).toEqual(['ada@example.com', 'cv.txt']);
      expect(Object.keys(shown.submission?.submission?.provenance ?? {})).toEqual(['email', 'cv']);
      expect(pieces.join('')).toBe('my life');
    });

    it('are deleted with their files, for good', async () => {
      const { formId, owner } = await givenOwner();
      const { submissionId, uploadId } = await givenFile(formId);

      await owner.deleteOwnedSubmission({ submissionId });

      expect(await failureOf(owner.getOwnedSubmission({ submissionId }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
      expect(await failureOf(readAll(owner.getOwnedUpload({ uploadId })))).toMatchObject({
        reason: 'NOT_FOUND',
      });
      expect((await owner.getOwnedForm({ formId })).form?.acceptedCount).toBe(0);
    });

    it.each([',', ';'])('are exported for people, parted by %s', async (delimiter) => {
      const { formId, owner } = await givenOwner();
      const submissionId = await givenSubmission(formId, { colour: 'r', note: '=1+1' });
      const people = { delimiter, language: 'en', received: 'Received', reference: 'Reference' };

      let text = '';
      for await (const { data } of owner.exportOwnedSubmissions({
        formId,
        format: ExportFormat.CSV,
        people,
      })) {
        text += Buffer.from(data).toString('utf8');
      }

      const [head = '', line = ''] = text.slice(1).split('\r\n');
      expect(head.split(delimiter)).toEqual(['Received', 'Email', 'Colour', 'Note', 'Cv', 'Reference']);
      expect(line.split(delimiter)).toEqual([
        expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d$/),
        'ada@example.com',
        'Deep red',
        "'=1+1",
        '',
        submissionId,
      ]);
      const refused = { formId, format: ExportFormat.CSV, people: { ...people, delimiter: '\t' } };
      expect(await failureOf(readAll(owner.exportOwnedSubmissions(refused)))).toMatchObject({
        reason: 'BAD_REQUEST',
      });
    });

    it('are exported like those of a key', async () => {
      const { formId, owner } = await givenOwner();
      await givenSubmission(formId, { note: '=1+1' });
      const exported = async (messages: AsyncIterable<{ data: Uint8Array }>) => {
        let text = '';
        for await (const { data } of messages) text += Buffer.from(data).toString('utf8');
        return text;
      };

      for (const format of [ExportFormat.CSV, ExportFormat.NDJSON]) {
        const own = await exported(owner.exportOwnedSubmissions({ formId, format }));
        expect(own).toBe(await exported(rpc.submissions.exportSubmissions({ formId, format }, rpc.owner)));
        expect(own).toContain('=1+1');
      }
      expect(
        await failureOf(exported(owner.exportOwnedSubmissions({ formId, format: ExportFormat.UNSPECIFIED }))),
      ).toMatchObject({ reason: 'BAD_REQUEST' });
    });
  });
});

describe('the limits of owners', () => {
  it('count sign-in requests by client address, and calls by owner', async () => {
    await using rpc = await startServices('pglite', { settings: { rateLimit: true } });
    const from = (address: string, token?: string) =>
      createClient(OwnersService, rpc.as(token, { 'x-forwarded-for': address }));
    const ask = (address: string) => from(address).requestSignIn({ email: 'ada@example.com' });
    const limited = { reason: 'RATE_LIMITED' };

    for (let count = 0; count < 20; count += 1) await ask('192.0.2.1');
    expect(await failureOf(ask('192.0.2.1'))).toMatchObject(limited);
    await ask('192.0.2.2');

    for (let count = 0; count < 139; count += 1) await ask(`192.0.2.${10 + (count % 50)}`);
    expect(await failureOf(ask('192.0.2.100'))).toMatchObject(limited);
    for (let count = 0; count < 80; count += 1) await ask(`2001:db8:0:${count % 9}::1`);
    expect(await failureOf(ask('2001:db8:0:20::1'))).toMatchObject(limited);
    for (let count = 0; count < 80; count += 1)
      await ask(`2001:db8:0:${(1 + (count % 9)).toString(16)}00::1`);
    expect(await failureOf(ask('2001:db8:0:aa00::1'))).toMatchObject(limited);
    await ask('2001:db8:1::1');

    const signIn = async (address: string) => {
      const token = await givenSignInLink(rpc.database, address, { key: rpc.secretKey });
      return (await from('192.0.2.3').signIn({ token })).sessionToken;
    };
    const [ada, bob] = [await signIn('ada@example.com'), await signIn('bob@example.com')];
    const search = (token: string, client: string) =>
      from(client, token).searchOwnedSubmissions({ formId: 'form_x', text: 'a' });
    for (let count = 0; count < 30; count += 1) await failureOf(search(ada, `192.0.2.${count}`));
    expect(await failureOf(search(ada, '192.0.2.99'))).toMatchObject(limited);
    expect(await failureOf(search(bob, '192.0.2.99'))).toMatchObject({ reason: 'NOT_FOUND' });
    for (let count = 0; count < 300; count += 1) await from('192.0.2.4', ada).getOwner({});
    expect(await failureOf(from('192.0.2.4', ada).getOwner({}))).toMatchObject(limited);
  });
});

/** Calls an RPC by its name, and reads what it answers to the end. */
async function outcomeOf(client: object, name: string, request: object): Promise<unknown> {
  const answer: unknown = Reflect.apply(Reflect.get(client, name), client, [request]);
  return isStream(answer) ? readAll(answer) : answer;
}

function isStream(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

async function readAll(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** How many statements of the test's own database wait for what another transaction holds. */
async function waitingForLocks({ database }: TestServices): Promise<number> {
  const [row] = await database.select(
    `select count(*)::int as waiting from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return Number(row?.waiting);
}
