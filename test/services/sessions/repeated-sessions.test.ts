import { Code } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { engines } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices, type TestServices, withKey } from '../../support/services.ts';

const asking = (label: string) => ({
  subject: {
    case: 'schema' as const,
    value: { type: 'object', properties: { ok: { type: 'boolean', title: label } } },
  },
  idempotencyKey: 'deploy 4.2',
});

describe.each(engines)('a request for a session that is repeated with its key, on %s,', (engine) => {
  let services: TestServices;
  let formId: string;

  beforeAll(async () => {
    services = await startServices(engine);
    formId = await services.givenFormOf([{ id: 'note', type: 'text' }]);
  });
  afterAll(() => services?.[Symbol.asyncDispose]());

  /** A caller whose keys nobody has used, in the project of the others. */
  const givenCaller = async (scopes = ['*']) =>
    withKey(await services.givenKey({ scopes, project: 'default' }));

  async function count(table: string): Promise<number> {
    const [row] = await services.database.select(`select count(*)::int as count from ${table}`);
    return Number(row?.count);
  }

  it('asks the person once, though the question is reworded or kept for longer', async () => {
    const { createSession } = services.sessions;
    const caller = await givenCaller();
    const notify = { email: 'ann@example.com' };
    const request = { ...asking('May we deploy?'), notify };
    const first = await createSession(request, caller);
    const [sessions, forms, events] = [await count('sessions'), await count('forms'), await count('events')];

    const again = await createSession(request, caller);
    const refused = [
      await expectFailure(createSession({ ...asking('Deploy now?'), notify }, caller), Reason.CONFLICT),
      await expectFailure(createSession({ ...request, retentionDays: 7 }, caller), Reason.CONFLICT),
      await expectFailure(createSession({ ...request, allowDecline: true }, caller), Reason.CONFLICT),
    ];

    expect(again.session?.id).toBe(first.session?.id);
    for (const { code, sessionId, nextCall } of refused) {
      expect([code, sessionId, nextCall]).toEqual([Code.AlreadyExists, first.session?.id, 'GET_SESSION']);
    }
    expect([await count('sessions'), await count('forms'), await count('events')]).toEqual([
      sessions,
      forms,
      events,
    ]);
  });

  it('opens one session of calls at once with different questions', async () => {
    const { createSession } = services.sessions;
    const caller = await givenCaller();
    const before = await count('sessions');

    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, (_, n) => createSession(asking(`Question ${n % 3}?`), caller)),
    );

    const opened = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.session?.id] : []));
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    expect(await count('sessions')).toBe(before + 1);
    expect(new Set(opened).size).toBe(1);
    expect(refused).toEqual(Array(4).fill(Code.AlreadyExists));
  });

  it('is another request of another key, which never gets the secret of the first', async () => {
    const { createSession } = services.sessions;
    const request = { ...asking('Secret?'), callback: { url: 'https://example.com/ended' } };
    const ofForm = {
      subject: { case: 'formId' as const, value: formId },
      callback: request.callback,
      idempotencyKey: 'of a form',
    };
    const [one, other] = [await givenCaller(), await givenCaller()];

    const replies = [
      await createSession(request, one),
      await createSession(request, other),
      await createSession(ofForm, one),
      await createSession(ofForm, other),
    ];

    expect(new Set(replies.map(({ session }) => session?.id)).size).toBe(4);
    expect(new Set(replies.map(({ callbackSecret }) => callbackSecret)).size).toBe(4);
    expect(await createSession(ofForm, other)).toEqual(replies[3]);
  });

  it('counts for each form apart, and for questions once in the project', async () => {
    const { createSession } = services.sessions;
    const caller = await givenCaller();
    const other = await services.givenFormOf([{ id: 'note', type: 'text' }]);
    const of = (value: string) =>
      createSession({ subject: { case: 'formId', value }, idempotencyKey: 'deploy 4.2' }, caller);

    const ids = [await of(formId), await of(other), await createSession(asking('Apart?'), caller)];

    expect(new Set(ids.map(({ session }) => session?.id)).size).toBe(3);
  });

  it('gets the submission that has ended the session, with a key that may read it', async () => {
    const { createSession, submitSession } = services.sessions;
    const reader = await givenCaller(['sessions:write', 'submissions:read']);
    const writer = await givenCaller(['sessions:write']);
    const ask = async (caller: typeof reader) => {
      const { session } = await createSession(asking('May we?'), caller);
      await submitSession({ sessionId: session?.id ?? '', answers: { ok: true } }, services.owner);
      return createSession(asking('May we?'), caller);
    };

    const read = await ask(reader);
    const unread = await ask(writer);

    expect(read.session?.submissionId).toBe(read.submission?.id);
    expect(read.submission?.answers).toEqual({ ok: true });
    expect(unread.session?.submissionId).toMatch(/^sub_/);
    expect(unread.submission).toBeUndefined();
  });

  it('is refused at its place where JSON can not hold it, as without a key', async () => {
    const { createSession, updateSession } = services.sessions;
    const { session } = await createSession({ subject: { case: 'formId', value: formId } }, services.owner);
    const sessionId = session?.id ?? '';
    const surrogate = { metadata: { text: '\ud800' } };
    const violationsOf = async (idempotencyKey: string) => {
      const calls = [
        updateSession({ sessionId, ...surrogate, idempotencyKey }, services.owner),
        updateSession({ sessionId, prefill: { note: '\ud800' }, idempotencyKey }, services.owner),
        createSession(
          { subject: { case: 'formId', value: formId }, ...surrogate, idempotencyKey },
          services.owner,
        ),
        createSession({ ...asking('\ud800'), idempotencyKey }, services.owner),
      ];
      return Promise.all(calls.map(async (call) => (await expectFailure(call, Reason.INVALID)).violations));
    };

    const without = await violationsOf('');
    const keyed = await violationsOf('not to be told');

    expect(without.flat()).toHaveLength(4);
    expect(keyed).toEqual(without);
  });
});
