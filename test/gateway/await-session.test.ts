import { Code, ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SessionStatus, SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { oneEngine } from '../support/database.ts';
import { anyone, deniedAs } from '../support/replies.ts';
import { protocols, startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const answers = { email: 'ann@example.com' };

/** Nothing but its end makes a wait of sixty seconds as short. */
const LONG_BEFORE_MS = 20_000;

describe.each(oneEngine('postgres'))('waiting for a session on %s', (engine) => {
  let service: TestService;
  let formId: string;

  beforeAll(async () => {
    service = await startService({ engine, env: { MAX_WAITS_PER_KEY: '8', MAX_WAITS_TOTAL: '9' } });
    formId = (await service.givenPublishedForm()).id;
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('answers as soon as the session is submitted, over every protocol', async () => {
    const id = await givenSession();
    const waiting = [
      service.get(`/v1/sessions/${id}?wait=60`).then(({ json }) => json.session.submission_id),
      ...protocols.map(async (protocol) => {
        const { session } = await service.client(SessionsService, protocol).awaitSession({ sessionId: id });
        return session?.submissionId;
      }),
    ];
    await untilTakenUp(id);
    const startedAt = performance.now();

    const submitted = await service.post(`/v1/sessions/${id}/submit`, { answers });

    expect(await Promise.all(waiting)).toEqual(waiting.map(() => submitted.json.submission_id));
    expect(performance.now() - startedAt).toBeLessThan(LONG_BEFORE_MS);
  });

  it('answers when a person submits the page, when it is cancelled, and when its time is over', async () => {
    const [byPerson, cancelled, expired] = [
      await givenSession(),
      await givenSession(),
      await givenSession({ expires_in: 2 }),
    ];
    const statusOf = async (id: string) =>
      (await service.get(`/v1/sessions/${id}?wait=60`)).json.session.status;
    const waiting = [byPerson, cancelled, expired].map(statusOf);
    await untilTakenUp(byPerson);

    await service.call('POST', `/f/${byPerson}`, 'email=ann%40example.com&_step=1&_action=submit', {
      key: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
    });
    await service.post(`/v1/sessions/${cancelled}/cancel`);

    expect(await Promise.all(waiting)).toEqual(['submitted', 'cancelled', 'expired']);
  });

  it('goes on waiting when the session is extended', async () => {
    const seconds = 6;
    const id = await givenSession({ expires_in: seconds });
    const waiting = service.get(`/v1/sessions/${id}?wait=60`);
    await untilTakenUp(id);
    const { json } = await service.patch(`/v1/sessions/${id}`, { expires_in: 600 });
    await until(() => Date.now() > Date.parse(json.session.created_at) + seconds * 1_000 + 200);

    await service.post(`/v1/sessions/${id}/submit`, { answers });

    expect((await waiting).json.session.status).toBe('submitted');
  });

  it('answers at once when the session has ended already', async () => {
    const id = await givenSession();
    await service.post(`/v1/sessions/${id}/cancel`);
    const startedAt = performance.now();

    const { json } = await service.get(`/v1/sessions/${id}?wait=60`);

    expect(json).toEqual((await service.get(`/v1/sessions/${id}`)).json);
    expect(performance.now() - startedAt).toBeLessThan(LONG_BEFORE_MS);
  });

  it('answers with the open session after its time-out, and before the deadline of the call', async () => {
    const id = await givenSession();
    const startedAt = performance.now();
    const took = () => performance.now() - startedAt;
    const client = service.client(SessionsService, 'grpc');

    const [byRest, byRpc, inTime] = await Promise.all([
      service.get(`/v1/sessions/${id}?wait=1`).then(({ json }) => [json.session.status, took()]),
      client
        .awaitSession({ sessionId: id, timeout: { seconds: 1n } })
        .then(({ session }) => [session?.status, took()]),
      beforeDeadline(() =>
        client.awaitSession({ sessionId: id, timeout: { seconds: 60n } }, { timeoutMs: 1_500 }),
      ).then(({ session }) => [session?.status, took()]),
    ]);

    expect([byRest[0], byRpc[0], inTime[0]]).toEqual(['open', SessionStatus.OPEN, SessionStatus.OPEN]);
    for (const [, ms] of [byRest, byRpc, inTime]) expect(ms).toBeGreaterThan(950);
  });

  it('has places for each key and for all, which clients that go free', async () => {
    const id = await givenSession();
    const second = await service.givenKey(['sessions:read']);
    const gone = new AbortController();
    const refused: unknown[][] = [];
    const wait = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const reply = await fetch(`${service.url}/v1/sessions/${id}?wait=60`, { headers, signal: gone.signal });
      const { error } = (await reply.json()) as { error: { message: string } };
      refused.push([reply.status, reply.headers.get('retry-after'), error.message]);
    };
    const waiting = Array.from({ length: 11 }, () => wait(service.key));
    const ofKey = await until(() => refused.length === 3 && refused.splice(0));
    waiting.push(wait(second), wait(second));
    const [ofAll] = await until(() => refused.length === 1 && refused);

    gone.abort();
    await Promise.allSettled(waiting);
    const again = await until(async () => {
      const reply = await service.get(`/v1/sessions/${id}?wait=1`);
      return reply.status === 200 && reply;
    });

    expect(ofKey).toEqual(Array.from({ length: 3 }, () => [429, '10', 'This key has 8 waits open already']));
    expect(ofAll).toEqual([429, '10', 'This service has 9 waits open already']);
    expect(again.json.session.status).toBe('open');
  });

  it('frees the place of an RPC whose caller gives up', async () => {
    const id = await givenSession();
    const gone = new AbortController();
    const codes: (Code | 'waited')[] = [];
    const waiting = [...protocols, ...protocols, ...protocols].map(async (protocol) => {
      const call = service
        .client(SessionsService, protocol)
        .awaitSession({ sessionId: id }, { signal: gone.signal });
      codes.push(
        await call.then(
          () => 'waited' as const,
          (error) => ConnectError.from(error).code,
        ),
      );
    });
    await until(() => codes.length === 4);
    expect(codes).toEqual(Array.from({ length: 4 }, () => Code.ResourceExhausted));

    gone.abort();
    await Promise.all(waiting);

    expect(codes.slice(4)).toEqual(Array.from({ length: 8 }, () => Code.Canceled));
    await until(async () => (await service.get(`/v1/sessions/${id}?wait=1`)).status === 200);
  });

  it('refuses other time-outs, sessions of others and keys without the scope', async () => {
    const id = await givenSession();
    const stranger = await service.givenKey(['*'], 'strangers');
    const writer = await service.givenKey(['sessions:write']);

    for (const wait of ['0', '61', '1.5', 'long', '']) {
      const refused = await service.get(`/v1/sessions/${id}?wait=${wait}`);
      expect(deniedAs(refused), wait).toEqual([400, 'validation_failed', 'bad_request']);
      expect(refused.json.error.details[0].path).toBe('wait');
    }
    for (const timeout of [{ seconds: 0n }, { seconds: 61n }, { seconds: 1n, nanos: 5 }]) {
      const call = service.client(SessionsService, 'grpc').awaitSession({ sessionId: id, timeout });
      await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument });
    }
    const path = `/v1/sessions/${id}?wait=1`;
    expect(deniedAs(await service.get(path, { key: stranger }))).toEqual([404, 'not_found', 'not_found']);
    expect((await service.get(path, { key: writer })).json.error.reason).toBe('insufficient_scope');
    expect((await service.get(path, anyone)).json.error.reason).toBe('missing_key');
  });

  it('ends when its key is revoked', async () => {
    const id = await givenSession();
    const key = await service.givenKey(['sessions:read']);
    const { json } = await service.get('/v1/keys');
    const waiting = service.get(`/v1/sessions/${id}?wait=60`, { key });
    await untilTakenUp(id);

    await service.delete(`/v1/keys/${json.keys[0].id}`);
    await service.post(`/v1/sessions/${id}/submit`, { answers });

    expect((await waiting).json.error.reason).toBe('invalid_key');
  });

  /** The answer of a call: of one in three, for on a busy machine half a second before the deadline can be too late. */
  async function beforeDeadline<T>(call: () => Promise<T>): Promise<T> {
    for (let tries = 1; tries < 3; tries += 1) {
      const answer = await call().catch((error: unknown) => ConnectError.from(error));
      if (!(answer instanceof ConnectError)) return answer;
      expect(answer.code).toBe(Code.DeadlineExceeded);
    }
    return call();
  }

  async function givenSession(request: object = {}): Promise<string> {
    const opened = await service.post(`/v1/forms/${formId}/sessions`, request);
    return opened.json.session.id;
  }

  /** Calls that were sent before wait by then: each of these takes longer to be answered than they to begin. */
  async function untilTakenUp(id: string): Promise<void> {
    for (let count = 0; count < 3; count += 1) await service.get(`/v1/sessions/${id}`);
  }
});
