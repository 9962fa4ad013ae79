import { timestampMs, timestampNow } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { ExportFormat, SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { signInToken } from '../../../src/domain/links.ts';
import { engines } from '../../support/database.ts';
import { failureOf } from '../../support/failures.ts';
import { forged } from '../../support/forged.ts';
import { givenSignInLink } from '../../support/owner.ts';
import { startServices } from '../../support/services.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, outcomeOf, startOwnersServices } from './given.ts';

describe.each(engines)('sessions of owners on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  describe('signing in', () => {
    it('answers the same to owners and to others, with the same work, and refuses what is no address', async () => {
      const { address } = await rpc.givenOwner();
      const mails = async () =>
        (await rpc.database.select("select receiver, mail from delivery_queue where kind = 'sign_in'")).map(
          ({ mail }) => mail,
        );

      const before = (await mails()).length;
      const answers = [
        await rpc.owners().requestSignIn({ email: address }),
        await rpc.owners().requestSignIn({ email: 'nobody@example.com' }),
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
        expect(await failureOf(rpc.owners().requestSignIn({ email }))).toMatchObject({ reason: 'INVALID' });
    });

    it('tells of a link without using it, and opens one session by it, however many ask at once', async () => {
      const token = await rpc.linkFor('Ada@Example.com');

      expect((await rpc.owners().getSignInLink({ token })).address).toBe('ada@example.com');
      expect((await rpc.owners().getSignInLink({ token })).address).toBe('ada@example.com');
      const asked = await Promise.allSettled(Array.from({ length: 4 }, () => rpc.owners().signIn({ token })));

      expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await failureOf(rpc.owners().signIn({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
      expect(await failureOf(rpc.owners().getSignInLink({ token }))).toMatchObject({ reason: 'TOKEN_USED' });
    });

    it('refuses links that are forged, of another purpose, or older than 15 minutes', async () => {
      const token = await rpc.linkFor('ada@example.com');
      for (const wrong of ['', `${token}x`, 'stop.x.y.z', (await rpc.signedIn('ada@example.com')).token])
        expect(await failureOf(rpc.owners().signIn({ token: wrong }))).toMatchObject({
          reason: 'INVALID_TOKEN',
        });

      const old = await rpc.linkFor('ada@example.com', { agoMs: 15 * 60_000 });
      const young = await rpc.linkFor('ada@example.com', { agoMs: 14 * 60_000 });
      expect(await failureOf(rpc.owners().signIn({ token: old }))).toMatchObject({ reason: 'INVALID_TOKEN' });
      await rpc.owners().signIn({ token: young });
    });

    it('signs in by a link in the browser alone that asked for it, where one did', async () => {
      const token = await rpc.linkFor('ada@example.com', { browser: 'a secret of hers' });

      expect((await rpc.owners().getSignInLink({ token })).elsewhere).toBe(true);
      expect((await rpc.owners().getSignInLink({ token, browser: 'another' })).elsewhere).toBe(true);
      for (const browser of ['', 'another'])
        expect(await failureOf(rpc.owners().signIn({ token, browser }))).toMatchObject({
          reason: 'INVALID_TOKEN',
        });
      expect((await rpc.owners().getSignInLink({ token, browser: 'a secret of hers' })).elsewhere).toBe(
        false,
      );
      await rpc.owners().signIn({ token, browser: 'a secret of hers' });
    });

    it('makes nothing of a link that is signed but was never mailed', async () => {
      const forged = signInToken(rpc.secretKey, 'ada@example.com', rpc.clock.ms);

      expect(await failureOf(rpc.owners().signIn({ token: forged }))).toMatchObject({ reason: 'TOKEN_USED' });
      expect(await failureOf(rpc.owners().getSignInLink({ token: forged }))).toMatchObject({
        reason: 'TOKEN_USED',
      });
    });

    it('voids the links that were mailed to sign in when all sessions are ended', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const [waiting, others] = [await rpc.linkFor(address), await rpc.linkFor('other@example.com')];
      const { signOut } = await rpc.signedIn(address);

      await signOut({ everywhere: true });

      expect(await failureOf(rpc.owners().signIn({ token: waiting }))).toMatchObject({
        reason: 'TOKEN_USED',
      });
      await rpc.owners().signIn({ token: others });
    });

    it('ends the session that the browser had, and lists and ends the others', async () => {
      const address = `${crypto.randomUUID()}@example.com`;
      const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0';
      const first = await rpc.signedIn(address);
      const withAgent = createClient(OwnersService, rpc.as(undefined, { 'user-agent': agent }));
      const opened = await withAgent.signIn({
        token: await rpc.linkFor(address),
        formerSessionToken: first.token,
        stay: true,
      });
      const second = rpc.owners(opened.sessionToken);
      const third = await rpc.signedIn(address);
      const stranger = await rpc.signedIn('stranger@example.com');

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
      const { formId, owner } = await rpc.givenOwner();
      const { submissionId } = await rpc.givenFile(formId);
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
      const other = await rpc.signedIn('other@example.com');
      const [first, second, third] = [
        await rpc.signedIn(address),
        await rpc.signedIn(address),
        await rpc.signedIn(address),
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
      const { deviceToken } = await rpc.owners().signIn({ token: await rpc.linkFor(address) });
      const started = rpc.clock.ms;
      const isKnown = async (email: string, token: string) => {
        rpc.clock.ms += 1;
        await rpc.owners().requestSignIn({ email, deviceToken: token });
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
        [address, await rpc.linkFor(address)],
        [address, ''],
      ] as const)
        expect(await isKnown(email, token)).toEqual(['', ' keyless']);
      rpc.clock.ms = started + 366 * 24 * 60 * 60_000;
      expect(await isKnown(address, deviceToken)).toEqual(['', ' keyless']);
      rpc.clock.ms = started;
      expect(await failureOf(rpc.owners(deviceToken).getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
    });

    it('stores neither links nor sessions in a form that opens anything', async () => {
      const token = await rpc.linkFor('ada@example.com');
      const { sessionToken } = await rpc.owners().signIn({ token });

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
      const { owner } = await rpc.givenOwner();
      for (const { localName } of OwnersService.methods) {
        expect(await failureOf(outcomeOf(rpc.owners(rpc.key), localName, {})), localName).toMatchObject({
          reason: 'INVALID_KEY',
        });
      }
      const withNothing = rpc.owners();
      expect(await failureOf(withNothing.listOwnedForms({}))).toMatchObject({ reason: 'MISSING_KEY' });
      const forms = createClient(FormsService, rpc.as(owner.token));
      expect(await failureOf(forms.listForms({}))).toMatchObject({ reason: 'INVALID_KEY' });
      const submissions = createClient(SubmissionsService, rpc.as(owner.token));
      expect(await failureOf(submissions.listSubmissions({}))).toMatchObject({ reason: 'INVALID_KEY' });
    });

    it('show each owner their own forms alone, by every call', async () => {
      const { formId, owner, address } = await rpc.givenOwner();
      const { owner: stranger } = await rpc.givenOwner();
      const { submissionId, uploadId } = await rpc.givenFile(formId);
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
      const inCapitals = await rpc.signedIn(address.toUpperCase());
      expect((await inCapitals.listOwnedForms({})).forms.map(({ id }) => id)).toEqual([formId]);
    });

    it('open nothing once they have ended or expired, or are made up, by any call', async () => {
      const { formId, owner, address } = await rpc.givenOwner();
      const { submissionId, uploadId } = await rpc.givenFile(formId);
      const request = {
        formId,
        submissionId,
        uploadId,
        text: 'ada',
        format: ExportFormat.CSV,
        email: address,
      };
      const started = rpc.clock.ms;
      const ended = await rpc.signedIn(address);
      await ended.signOut({});
      const open = new Set(['requestSignIn', 'getSignInLink', 'signIn']);
      const methods = OwnersService.methods.filter(({ localName }) => !open.has(localName));
      const expectRefused = async (token: string | undefined, reason: string) => {
        for (const { localName } of methods)
          expect(await failureOf(outcomeOf(rpc.owners(token), localName, request)), localName).toMatchObject({
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
      const { formId, owner } = await rpc.givenOwner({ confirmed: false });
      const { submissionId, uploadId } = await rpc.givenFile(formId);
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
