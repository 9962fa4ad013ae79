import { Code } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { STREAM_TOKEN_MS } from '../../src/domain/links.ts';
import { oneEngine } from '../support/database.ts';
import { openEventSource } from '../support/event-source.ts';
import { failureOf } from '../support/failures.ts';
import { forged as forgedFrom } from '../support/forged.ts';
import { deniedAs } from '../support/replies.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describe.each(oneEngine('pglite'))('a stream token on %s', (engine) => {
  let service: TestService;
  let skewMs = 0;

  beforeAll(async () => {
    const env = { LOG_LEVEL: 'debug', ACCESS_LOG: 'on' };
    service = await startService({ engine, env, now: () => Date.now() + skewMs });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('opens the stream of its form by the address alone, and is in no log', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const token = await givenToken(formId);
    await using stream = await openEventSource(streamOf(formId, token), {});

    const sent = await service.post(`/api/forms/${formId}/submissions`, {
      answers: { email: 'a@b.example' },
    });

    const [event] = await stream.expectEvents(1);
    expect(JSON.parse(event?.data ?? '').submission.id).toBe(sent.json.submission_id);
    const twice = await service.get(`${pathOf(formId)}?token=${token}&token=${token}`, { key: null });
    const misspelt = await service.get(`${pathOf(formId)}?tokn=${token}`, { key: null });
    expect([twice.status, misspelt.status]).toEqual([401, 401]);
    expect(service.logged.join('\n')).toContain('/v1/streams/token');
    expect(service.logged.join('\n')).not.toContain(token.slice(-20));
  });

  it('opens nothing else', async () => {
    const [{ id: formId }, other] = [await service.givenPublishedForm(), await service.givenPublishedForm()];
    const token = await givenToken(formId);
    const byToken = service.client(SubmissionsService, 'connect', token);

    const elsewhere = await service.get(`${pathOf(other.id)}?token=${token}`, { key: null });
    const forged = await service.get(`${pathOf(formId)}?token=${forgedFrom(token)}`, { key: null });
    const ofKey = await service.get(`${pathOf(formId)}?token=${service.key}x`, { key: null });
    const noHeader = await service.get(`${pathOf(formId)}?token=%00`, { key: null });
    const all = await failureOf(byToken.watchSubmissions({})[Symbol.asyncIterator]().next());
    const list = await service.get(`/v1/forms/${formId}/submissions`, { key: token });
    const more = await service.post('/v1/streams/token', { form_id: formId }, { key: token });

    for (const refused of [elsewhere, forged])
      expect(deniedAs(refused)).toEqual([401, 'unauthorized', 'invalid_token']);
    expect(all.code).toBe(Code.Unauthenticated);
    for (const refused of [ofKey, noHeader, list, more])
      expect(deniedAs(refused)).toEqual([401, 'unauthorized', 'invalid_key']);
  });

  it('is made by keys that may read the form’s submissions', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const weak = await service.givenKey(['submissions:write']);
    const stranger = await service.givenKey(['*'], 'strangers');
    const ask = (key: string | null, body: object = { form_id: formId }) =>
      service.post('/v1/streams/token', body, { key });

    expect(deniedAs(await ask(weak))).toEqual([401, 'unauthorized', 'insufficient_scope']);
    expect(deniedAs(await ask(null))).toEqual([401, 'unauthorized', 'missing_key']);
    expect(deniedAs(await ask(stranger))).toEqual([404, 'not_found', 'not_found']);
    const empty = await ask(service.key, {});
    expect([empty.status, empty.json.error.details[0].path]).toEqual([422, 'form_id']);
  });

  it('ends after ten minutes, and its stream with it', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const token = await givenToken(formId);
    await using stream = await openEventSource(streamOf(formId, token), {});

    skewMs += STREAM_TOKEN_MS;

    await until(() => stream.broken());
    const later = await service.get(`${pathOf(formId)}?token=${token}`, { key: null });
    expect(deniedAs(later)).toEqual([401, 'unauthorized', 'invalid_token']);
    expect(later.json.error.next_call).toBe('with_key');
  });

  it('ends with the key that made it, and so does its stream', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const made = await service.post('/v1/keys', { name: 'dashboard', scopes: ['submissions:read'] });
    const token = await givenToken(formId, made.json.secret);
    await using stream = await openEventSource(streamOf(formId, token), {});

    // As another process would, of which this one hears nothing.
    await service.database.execute('delete from api_keys where id = $1', [made.json.key.id]);

    await until(() => stream.broken());
    const later = await service.get(`${pathOf(formId)}?token=${token}`, { key: null });
    expect(deniedAs(later)).toEqual([401, 'unauthorized', 'invalid_token']);
  });

  async function givenToken(formId: string, key = service.key): Promise<string> {
    const made = await service.post('/v1/streams/token', { form_id: formId }, { key });
    expect(made.status, made.text).toBe(201);
    return made.json.token;
  }

  function pathOf(formId: string): string {
    return `/v1/forms/${formId}/submissions/stream`;
  }

  function streamOf(formId: string, token: string): string {
    return `${service.url}${pathOf(formId)}?token=${token}`;
  }
});
