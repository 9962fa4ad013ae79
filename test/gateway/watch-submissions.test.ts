import { once } from 'node:events';
import { connect } from 'node:net';
import { Code, ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SubmissionStatus, SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { oneEngine } from '../support/database.ts';
import { type EventSource, openEventSource, type ServerSentEvent } from '../support/event-source.ts';
import { deniedAs } from '../support/replies.ts';
import { startService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { startGateway } from './given.ts';

describe.each(oneEngine('postgres'))('watching submissions on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('sends those of a form as server-sent events, from now on', async () => {
    const [form, other] = [await service.givenPublishedForm(), await service.givenPublishedForm()];
    await submit(form.id, { email: 'before@example.com' });
    await using stream = await watch(form.id);

    await submit(other.id);
    const id = await submit(form.id, { email: 'after@example.com' });

    const [event] = await stream.expectEvents(1);
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.text()).toMatch(/^retry: 2000\nid: evt_\w+\n: listening\n\n/);
    expect(event).toMatchObject({ event: 'submission', id: expect.stringMatching(/^evt_/) });
    expect(JSON.parse(event?.data ?? '')).toEqual((await service.get(`/v1/submissions/${id}`)).json);
    expect(stream.events()).toHaveLength(1);
  });

  it('goes on after the last event id, and misses nothing', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const first = await watch(formId);
    const ids = [await submit(formId)];
    await first.expectEvents(1);
    await first[Symbol.asyncDispose]();
    ids.push(await submit(formId));

    await using second = await watch(formId, { 'last-event-id': first.lastId() });
    await using byQuery = await watch(formId, {}, `?cursor=${first.lastId()}`);
    ids.push(await submit(formId));

    await until(() => [second, byQuery].every((stream) => idsIn(stream.events()).includes(ids[2])));
    for (const stream of [second, byQuery]) {
      expect(new Set([...idsIn(first.events()), ...idsIn(stream.events())])).toEqual(new Set(ids));
      expect(new Set(idsIn(stream.events())).size).toBe(stream.events().length);
    }
  });

  it('sends only those from a source, or those taken for spam', async () => {
    const { id: formId } = await service.givenPublishedForm();
    await using ofSource = await watch(formId, {}, '?source=kiosk');
    await using spam = await watch(formId, {}, '?status=spam');
    const post = (body: string) =>
      service.call('POST', `/api/forms/${formId}/submissions`, body, {
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      });

    await post('email=bot%40example.com&_gotcha=x&_source=kiosk');
    await submit(formId);
    await post('email=ann%40example.com&_source=kiosk');
    await submit(formId);

    const [fromKiosk] = await ofSource.expectEvents(1);
    const [taken] = await spam.expectEvents(1);
    expect(answersIn(fromKiosk)).toEqual({ email: 'ann@example.com' });
    expect(answersIn(taken)).toEqual({ email: 'bot@example.com' });
    expect([ofSource.events(), spam.events()].map(({ length }) => length)).toEqual([1, 1]);
    const sent = await service.database.select("select 1 from delivery_queue where kind = 'submission.spam'");
    expect(sent).toEqual([]);
  });

  it('streams those of the whole project by RPC, and nothing of others', async () => {
    const stranger = await service.givenKey(['*'], 'strangers');
    const [one, two] = [await service.givenPublishedForm(), await service.givenPublishedForm()];
    const foreign = await service.givenPublishedForm({}, { key: stranger });
    const gone = new AbortController();
    const seen: string[] = [];
    let begun = false;
    const client = service.client(SubmissionsService, 'grpc');
    const reading = (async () => {
      for await (const { submission } of client.watchSubmissions({}, { signal: gone.signal })) {
        begun = true;
        if (submission !== undefined) seen.push(submission.id);
      }
    })().catch(() => undefined);
    await until(() => begun);

    await submit(foreign.id);
    const ids = [await submit(one.id), await submit(two.id)];

    await until(() => seen.length >= 2);
    gone.abort();
    await reading;
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  it('refuses other filters, forms and keys', async () => {
    const { id: formId } = await service.givenPublishedForm();
    const stranger = await service.givenKey(['*'], 'strangers');
    const writer = await service.givenKey(['submissions:write']);
    const path = `/v1/forms/${formId}/submissions/stream`;

    for (const query of ['cursor=yesterday', 'status=gone', 'source=']) {
      const refused = await service.get(`${path}?${query}`);
      expect(deniedAs(refused), query).toEqual([400, 'validation_failed', 'bad_request']);
      expect(refused.json.error.details[0].path).toBe(query.split('=')[0]);
    }
    expect(deniedAs(await service.get(path, { key: stranger }))).toEqual([404, 'not_found', 'not_found']);
    expect((await service.get(path, { key: writer })).json.error.reason).toBe('insufficient_scope');
    expect((await service.call('HEAD', path)).status).toBe(200);
    const status = 7 as SubmissionStatus;
    const watching = service.client(SubmissionsService).watchSubmissions({ status });
    await expect(watching[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
  });

  async function submit(formId: string, answers: object = { email: 'ann@example.com' }): Promise<string> {
    const accepted = await service.post(`/api/forms/${formId}/submissions`, { answers }, { key: null });
    return accepted.json.submission_id;
  }

  function watch(formId: string, headers: Record<string, string> = {}, query = ''): Promise<EventSource> {
    return openEventSource(`${service.url}/v1/forms/${formId}/submissions/stream${query}`, {
      authorization: `Bearer ${service.key}`,
      ...headers,
    });
  }
});

describe('streams of submissions', () => {
  it('say that they are there when nothing comes, with an id to go on from', async () => {
    await using gateway = await startGateway((router) =>
      router.service(SubmissionsService, {
        async *watchSubmissions() {
          yield { cursor: 'evt_1' };
          yield { cursor: 'evt_2' };
        },
      }),
    );

    const { text } = await gateway.call('GET', '/v1/forms/form_1/submissions/stream');

    expect(text).toContain('id: evt_1\n: listening\n\nid: evt_2\n: listening\n\n');
    expect(text).not.toContain('event: submission');
  });

  it('wait for a reader that reads nothing, and then send all', async () => {
    await using service = await startService({ engine: 'postgres' });
    const fields = [{ id: 'text', type: 'textarea', maxLength: 60_000 }];
    const { id: formId } = await service.givenPublishedForm({ fields });
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(
      `GET /v1/forms/${formId}/submissions/stream HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${service.key}\r\n\r\n`,
    );
    const [head] = await once(socket, 'data');
    socket.pause();
    const answers = { text: 'x'.repeat(60_000) };
    const count = 100;

    for (let sent = 0; sent < count; sent += 1)
      await service.post(`/api/forms/${formId}/submissions`, { answers });
    let text = String(head);
    socket.setEncoding('latin1').on('data', (chunk) => (text += chunk));
    socket.resume();
    await until(() => text.split('event: submission').length > count);

    socket.destroy();
    const ids = [...text.matchAll(/"submission":\{"id":"(sub_\w+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(count);
  });

  it('share their places with those that listen', async () => {
    await using service = await startService({ env: { MAX_STREAMS_PER_KEY: '2', MAX_STREAMS_TOTAL: '3' } });
    const { id: formId } = await service.givenPublishedForm();
    const url = `${service.url}/v1/forms/${formId}/submissions/stream`;
    const [second, third] = [await service.givenKey(['*']), await service.givenKey(['*'])];
    const watch = (key: string) => openEventSource(url, { authorization: `Bearer ${key}` });
    const gone = new AbortController();
    const listening = service.client(WebhooksService, 'grpc').listen({}, { signal: gone.signal });
    const listener = listening[Symbol.asyncIterator]();
    await listener.next();
    const first = await watch(service.key);

    const oneMore = await service.get(new URL(url).pathname);
    await using _other = await watch(second);
    const tooMany = await service.get(new URL(url).pathname, { key: third });
    gone.abort();
    await listener
      .next()
      .catch((error: unknown) => expect(ConnectError.from(error).code).toBe(Code.Canceled));
    await first[Symbol.asyncDispose]();
    await using _third = await until(() => watch(third).catch(() => undefined));

    expect([oneMore, tooMany].map(deniedAs)).toEqual([
      [429, 'validation_failed', 'rate_limited'],
      [429, 'validation_failed', 'rate_limited'],
    ]);
    expect(oneMore.json.error.message).toBe('This key has 2 streams open already');
    expect(tooMany.json.error.message).toBe('This service has 3 streams open already');
  });

  it('say goodbye when the service stops', async () => {
    const service = await startService();
    const { id: formId } = await service.givenPublishedForm();
    const url = `${service.url}/v1/forms/${formId}/submissions/stream`;
    await using stream = await openEventSource(url, { authorization: `Bearer ${service.key}` });
    const startedAt = performance.now();

    await service[Symbol.asyncDispose]();

    await until(() => stream.ended());
    expect(performance.now() - startedAt).toBeLessThan(8_000);
    expect(stream.text().endsWith('event: bye\ndata: {}\n\n')).toBe(true);
  });
});

function submissionIn(event: ServerSentEvent | undefined) {
  return JSON.parse(event?.data ?? '').submission;
}

function idsIn(events: ServerSentEvent[]): (string | undefined)[] {
  return events.map((event) => submissionIn(event).id);
}

function answersIn(event: ServerSentEvent | undefined): object {
  return submissionIn(event).answers;
}
