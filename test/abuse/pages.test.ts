import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { ExportFormat } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { postsOf } from '../support/hosted.ts';
import { startMailServer } from '../support/mail-server.ts';
import { contactForm } from '../support/server.ts';
import { until } from '../support/until.ts';
import {
  type AttackedService,
  givenForm,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  startAttackedService,
} from './attacked-service.ts';

const MIB = 1024 * 1024;
const OWNER = 'ada@example.com';

/** What others ask for; as many again go to devices that have signed in. */
const A_DAY = 10;

/** As little as the attacks need to reach the bounds within seconds. */
const HOURLY_MIB = 4;
const PROJECT_MIB = 12;
const env = {
  TRUST_PROXY: '1',
  KEYLESS_MIB_PER_HOUR: String(HOURLY_MIB),
  KEYLESS_MIB_PER_PROJECT: String(PROJECT_MIB),
};

const NOTE_BYTES = 50_000;
const longNote = { name: 'note', values: ['x'.repeat(NOTE_BYTES)] };
const noteOf = (turn: number) => ({ name: 'note', values: [`${turn}`.padEnd(NOTE_BYTES, 'x')] });
const content = Buffer.alloc(MIB, 'x');

const fields = [
  { id: 'line', type: 'text', pattern: "(?:[\\p{L}' -]{1,100}\\s*){1,5}", maxLength: 500 },
  { id: 'note', type: 'textarea', maxLength: 100_000 },
  { id: 'email', type: 'email', required: true },
  { id: 'cv', type: 'file' },
];

describe('what strangers call for pages', { timeout: 90_000 }, () => {
  let service: AttackedService & AsyncDisposable;
  let mailServer: Awaited<ReturnType<typeof startMailServer>>;

  beforeAll(async () => {
    mailServer = await startMailServer();
    service = await startAttackedService('pglite', { ...env, SMTP_URL: mailServer.url });
  }, 60_000);
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    await mailServer?.[Symbol.asyncDispose]();
  });

  it('asks for links to sign in: mailboxes get few, and no owner is kept out', async () => {
    const { owners } = clientsOf(service);
    const { cookie } = await signInOnce(OWNER);
    const ask = (turn: number, email: string, client: string) =>
      outcome(owners(turn).requestSignIn({ email }, from(client)));
    const before = linksTo(OWNER).length;
    let afterOne = 0;
    const asked: Counts[] = [];

    const harm = await harmDone(service, async () => {
      asked.push(countOf(await inTurns(40, (turn) => ask(turn, OWNER, '198.51.100.1'))));
      await ask(0, OWNER, '203.0.113.1');
      await until(() => linksTo(OWNER).length >= before + 6, 20_000);
      afterOne = linksTo(OWNER).length;
      asked.push(countOf(await inTurns(150, (turn) => ask(turn, OWNER, `198.51.100.${10 + (turn % 50)}`))));
      asked.push(countOf(await inTurns(150, (turn) => ask(turn, OWNER, `198.18.${turn % 50}.1`))));
      const others = (turn: number) => ask(turn, `${turn}@example.net`, `2001:db8:${turn % 50}::1`);
      asked.push(countOf(await inTurns(150, others)));
      const headers = { cookie, ...from('203.0.113.1').headers };
      const reply = await postForm(`${service.url}/owner/sign-in`, { email: OWNER }, headers);
      expect(reply.status).toBe(200);
      await until(() => linksTo(OWNER).length === A_DAY + 1, 20_000);
    });

    expect(asked).toEqual([
      { ok: 20, resource_exhausted: 20 },
      // Eight times as many for a /24.
      { ok: 140, resource_exhausted: 10 },
      { ok: 150 },
      { ok: 150 },
    ]);
    expect(afterOne).toBe(before + A_DAY / 2 + 1);
    expect(mailServer.mails.filter(({ recipients }) => recipients.some((to) => to.endsWith('.net')))).toEqual(
      [],
    );
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
  });

  it('keeps answers and files in sessions of a form’s page: a client’s and a project’s budgets end it', async () => {
    const { url, key } = service;
    const formId = await givenForm(service, { fields, settings: { allowPartial: true } });
    const invited = await postJson(
      `${url}/v1/forms/${formId}/sessions`,
      {},
      { authorization: `Bearer ${key}` },
    );
    const { hosted, uploads } = clientsOf(service);
    const opened: string[] = [];
    const done: Record<string, Counts> = {};
    const open = (turn: number) =>
      outcome(
        hosted(turn)
          .openHostedSession({ formId }, from('198.51.100.1'))
          .then(({ sessionId }) => opened.push(sessionId)),
      );
    const begun = (turn: number) => ({ formId, sessionId: opened[turn % opened.length] ?? '' });
    const save = (turn: number, client: string, page: { sessionId: string } = begun(turn)) =>
      outcome(postsOf(hosted(turn)).save({ ...page, inputs: [noteOf(turn)] }, from(client)));
    const upload = (turn: number, client: string) => {
      const target = { case: 'sessionId', value: opened[0] ?? '' } as const;
      return outcome(
        uploads(turn).createUpload({ target, fieldId: 'cv', filename: 'a.txt', content }, from(client)),
      );
    };

    const harm = await harmDone(service, async () => {
      done.opened = countOf(await inTurns(110, open));
      done.uploaded = countOf(await inTurns(8, (turn) => upload(turn, '198.51.100.2')));
      done.saved = countOf(await inTurns(100, (turn) => save(turn, '198.51.100.3')));
      done.savedByAll = countOf(
        await inTurns(150, (turn) => save(turn + 100, `198.51.100.${10 + (turn % 8)}`)),
      );
    });
    done.invited = countOf([await save(0, '198.51.100.3', { sessionId: invited.session?.id ?? '' })]);
    expect(done.opened).toEqual({ ok: 100, resource_exhausted: 10 });
    for (const each of [done.uploaded, done.saved, done.savedByAll])
      expect(Object.keys(each ?? {}).sort()).toEqual(['ok', 'resource_exhausted']);
    expect(done.uploaded?.ok).toBeLessThanOrEqual(HOURLY_MIB);
    expect((done.saved?.ok ?? 0) * NOTE_BYTES).toBeLessThanOrEqual(HOURLY_MIB * MIB);
    const bytes =
      (done.uploaded?.ok ?? 0) * MIB + ((done.saved?.ok ?? 0) + (done.savedByAll?.ok ?? 0)) * NOTE_BYTES;
    expect(bytes).toBeLessThanOrEqual(PROJECT_MIB * MIB);
    expect(done.invited).toEqual({ ok: 1 });
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
  });

  it('checks, shows and submits a form’s page with patterns that are dear: others’ forms answer meanwhile', async () => {
    const formId = await givenForm(service, { fields });
    const othersFormId = await givenForm(service, { fields });
    const { hosted } = clientsOf(service);
    const inputs = [longNote, { name: 'line', values: ['Ada Lovelace '.repeat(38)] }];
    const done: Record<string, Counts> = {};
    const others: string[] = [];
    const visit = (turn: number) =>
      outcome(
        postsOf(hosted(turn)).save(
          { formId: othersFormId, inputs: [{ name: 'line', values: ['Ada Lovelace'] }] },
          from('203.0.113.1'),
        ),
      );

    const harm = await harmDone(service, async () => {
      let attacking = true;
      const visits = (async () => {
        for (let turn = 0; attacking; turn += 1) others.push(await visit(turn));
      })();
      const check = (turn: number, client: string) =>
        outcome(postsOf(hosted(turn)).save({ formId, inputs }, from(client)));
      const show = (turn: number) =>
        outcome(hosted(turn).getHosted({ formId, prefill: inputs }, from('198.51.100.1')));
      const submit = (turn: number) =>
        outcome(postsOf(hosted(turn)).submit({ formId, inputs }, from('198.51.100.1')));
      done.checked = countOf(await inTurns(310, (turn) => check(turn, '198.51.100.1')));
      done.checkedByAll = countOf(
        await inTurns(150, (turn) => check(turn, `198.51.100.${10 + (turn % 20)}`)),
      );
      done.shown = countOf(await inTurns(100, show));
      done.submitted = countOf(await inTurns(70, submit));
      attacking = false;
      await visits;
    });
    expect(done.checked?.resource_exhausted).toBe(10);
    expect(done.submitted?.resource_exhausted).toBe(10);
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
  });

  it('reads as an owner of much, and takes none of it: a few downloads at once, and others have theirs', async () => {
    const [eve, ada] = [await signInOnce('eve@example.com'), await signInOnce('joan@example.com')];
    for (const { formId } of [eve, ada])
      await Promise.all(Array.from({ length: 24 }, () => submitLong(formId)));
    const { owners } = clientsOf(service);
    // By HTTP/2, where what nobody takes stays with the service.
    const open = ({ formId, headers }: SignedIn) =>
      owners(GRPC).exportOwnedSubmissions({ formId, format: ExportFormat.CSV }, { headers });
    const bytesOf = async (owner: SignedIn) => {
      let bytes = 0;
      for await (const { data } of open(owner)) bytes += data.length;
      return bytes;
    };
    const search = (turn: number, { formId, headers }: SignedIn) =>
      outcome(owners(turn).searchOwnedSubmissions({ formId, text: 'y' }, { headers }));
    const done: Record<string, Counts> = {};

    const harm = await harmDone(service, async () => {
      const held = Array.from({ length: 10 }, () => open(eve)[Symbol.asyncIterator]());
      done.begun = countOf(await Promise.all(held.map((file) => outcome(file.next()))));
      done.searched = countOf(await inTurns(8, (turn) => search(turn, eve)));
      done.others = countOf([await search(0, ada), String((await bytesOf(ada)) > 24 * NOTE_BYTES)]);
      for (const file of held) await file.return?.();
      // An owner may ask thirty times a minute.
      const ended = async () =>
        (await sleep(1_000, true)) && (await bytesOf(eve).catch(() => 0)) > 24 * NOTE_BYTES;
      await until(ended, 10_000);
    });

    expect(done.begun).toEqual({ ok: 6, resource_exhausted: 4 });
    expect(Object.keys(done.searched ?? {}).sort()).toEqual(['ok', 'resource_exhausted']);
    expect(done.others).toEqual({ ok: 1, true: 1 });
    expect(harm.slowestHealthMs).toBeLessThanOrEqual(HEALTH_MS);
    expect(harm.addedMib).toBeLessThanOrEqual(MEMORY_MIB);
  });

  function submitLong(formId: string) {
    const { url, key } = service;
    const answers = { email: 'ada@example.com', note: 'x'.repeat(NOTE_BYTES) };
    const headers = { authorization: `Bearer ${key}` };
    return postJson(`${url}/v1/forms/${formId}/submissions`, { answers }, headers);
  }

  /** The links that were mailed to an address, oldest first. */
  function linksTo(address: string, path = 'owner/sign-in'): string[] {
    const to = mailServer.mails.filter(({ recipients }) => recipients.includes(address));
    return to.flatMap(({ text = '' }) => text.match(new RegExp(`http\\S+/${path}\\S+`)) ?? []);
  }

  /** Makes an address the confirmed owner of a form and signs it in, by mailed links. */
  async function signInOnce(email: string): Promise<SignedIn> {
    const { url, key } = service;
    const authorized = { authorization: `Bearer ${key}` };
    const { form } = await postJson(`${url}/api/forms/create`, { ...contactForm, fields }, authorized);
    await postJson(new URL(form.activate_url, url).href, { email });
    await until(() => linksTo(email, 'mail/confirm-owner').length > 0, 10_000);
    await postForm(linksTo(email, 'mail/confirm-owner')[0] ?? '');
    const asked = await postForm(`${url}/owner/sign-in`, { email });
    await until(() => linksTo(email).length > 0, 10_000);
    const opened = await postForm(linksTo(email)[0] ?? '', {}, { cookie: cookiesOf(asked).join('; ') });
    const cookies = cookiesOf(opened);
    const [session = ''] = cookies.flatMap((cookie) => cookie.match(/(?<=^owner=).*/) ?? []);
    const headers = { authorization: `Bearer ${session}` };
    return { formId: form.id, headers, cookie: cookies.join('; ') };
  }

  function postForm(
    address: string,
    body: Record<string, string> = {},
    headers: Record<string, string> = {},
  ) {
    const { origin } = new URL(service.url);
    return fetch(address, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin, ...headers },
      body: new URLSearchParams(body),
    });
  }
});

function cookiesOf(response: Response): string[] {
  return response.headers.getSetCookie().map((cookie) => cookie.split(';')[0] ?? '');
}

/** Whose turn it is in `clientsOf`. */
const GRPC = 2;

/** Clients of the RPCs that take turns with the protocols. */
function clientsOf({ url, grpcUrl }: AttackedService) {
  const transports = [
    createConnectTransport({ baseUrl: url, httpVersion: '1.1', useBinaryFormat: false }),
    createGrpcWebTransport({ baseUrl: url, httpVersion: '1.1' }),
    createGrpcTransport({ baseUrl: grpcUrl }),
  ];
  const [owners, hosted, uploads] = [OwnersService, HostedService, UploadsService] as const;
  const of =
    <T>(clients: T[]) =>
    (turn: number) =>
      clients[turn % clients.length] as T;
  return {
    owners: of(transports.map((transport) => createClient(owners, transport))),
    hosted: of(transports.map((transport) => createClient(hosted, transport))),
    uploads: of(transports.map((transport) => createClient(uploads, transport))),
  };
}

/** Makes calls, sixteen at a time, and gives what each came to. */
async function inTurns<T>(calls: number, call: (turn: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let turn = 0;
  const caller = async () => {
    while (turn < calls) results.push(await call(turn++));
  };
  await Promise.all(Array.from({ length: 16 }, caller));
  return results;
}

/** `ok`, or the reason of the refusal. */
async function outcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: unknown) => nameOfCode(ConnectError.from(error).code),
  );
}

function nameOfCode(code: Code): string {
  return Code[code].replaceAll(/(?<=[a-z])[A-Z]/g, '_$&').toLowerCase();
}

function countOf(values: string[]): Counts {
  const counts: Counts = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

type Counts = Record<string, number>;

function from(client: string) {
  return { headers: { 'x-forwarded-for': client } };
}

async function postJson(url: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { form: { id: string; activate_url: string }; session?: { id: string } };
}

type SignedIn = { formId: string; headers: { authorization: string }; cookie: string };
