import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { pino } from 'pino';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { machineClock } from '../../src/store/database/clock.ts';
import type { Database } from '../../src/store/database/database.ts';
import { type EngineName, openTestDatabase } from './database.ts';
import { checkReply } from './openapi.ts';
import { freePort, temporaryFolder } from './spawn.ts';

/**
 * Starts the whole service in this process, on free ports of loopback and an empty database of its
 * own, unless one is given. `env` holds settings as the environment would; rates are not limited, private webhooks are
 * allowed and the level of the log is `warn` unless it says otherwise.
 */
export async function startService({
  engine = 'pglite',
  env = {},
  now = machineClock(),
  floorBytes,
  ...given
}: ServiceOptions = {}) {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const database = given.database ?? opened.use(await openTestDatabase(engine));
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  const config = readConfig({
    HOST: '127.0.0.1',
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    BASE_URL: `http://127.0.0.1:${port}`,
    DATA_DIR: folder.path,
    SECRET_KEY: 'ab'.repeat(32),
    RATE_LIMIT: 'off',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    LOG_LEVEL: 'warn',
    METRICS_PORT: 'off',
    ...env,
  });
  const logged: string[] = [];
  const { TEST_LOG_LEVEL: level } = process.env;
  const log = level
    ? pino({ level })
    : pino({ level: config.logLevel }, { write: (line) => logged.push(line) });
  const app = await startApp(config, { log, now, random: Math.random, database, floorBytes });
  opened.defer(() => app.close());
  const owned = opened.move();
  return new TestService({
    url: app.url,
    grpcUrl: app.grpcUrl,
    metricsUrl: app.metricsUrl ?? '',
    key: app.firstKey ?? env.BOOTSTRAP_API_KEY ?? '',
    database,
    owned,
    folder: folder.path,
    logged,
  });
}

/** A running service, with what tests do to it. All calls go over sockets. */
export class TestService implements AsyncDisposable {
  readonly url: string;
  readonly grpcUrl: string;
  /** Empty without METRICS_PORT. */
  readonly metricsUrl: string;
  /** A `*` key of the default project: the one that the start made, or `BOOTSTRAP_API_KEY`. */
  readonly key: string;
  readonly database: Database;
  /** What the service logged, line by line. */
  readonly logged: readonly string[];
  readonly #owned: AsyncDisposableStack;
  readonly #folder: string;

  constructor(parts: TestServiceParts) {
    this.url = parts.url;
    this.grpcUrl = parts.grpcUrl;
    this.metricsUrl = parts.metricsUrl;
    this.key = parts.key;
    this.database = parts.database;
    this.logged = parts.logged;
    this.#owned = parts.owned;
    this.#folder = parts.folder;
  }

  /**
   * One HTTP call. An object is sent as JSON; `key: null` sends no key, otherwise the `*` key goes along.
   * Every reply of the REST interface is held against the API description.
   */
  async call(
    method: string,
    path: string,
    body?: unknown,
    { key = this.key, headers = {} }: CallOptions = {},
  ) {
    const address = new URL(path, this.url);
    const response = await fetch(address, {
      method,
      redirect: 'manual',
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(isPlain(body) && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && {
        body: isPlain(body) ? JSON.stringify(body) : (body as string | Uint8Array | FormData),
      }),
    });
    const text = await response.text();
    const { pathname } = address;
    if (!isPage(method, pathname)) {
      checkReply({ method, path: pathname, status: response.status, headers: response.headers, text });
    }
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const json = isJson && text !== '' ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }

  get = (path: string, options?: CallOptions) => this.call('GET', path, undefined, options);
  post = (path: string, body?: unknown, options?: CallOptions) => this.call('POST', path, body, options);
  put = (path: string, body?: unknown, options?: CallOptions) => this.call('PUT', path, body, options);
  patch = (path: string, body?: unknown, options?: CallOptions) => this.call('PATCH', path, body, options);
  delete = (path: string, options?: CallOptions) => this.call('DELETE', path, undefined, options);

  /** A draft made with the `*` key, or with none. */
  async givenDraft(definition: object = {}, options: CallOptions = {}): Promise<Draft> {
    const created = await this.post('/api/forms/create', { ...contactForm, ...definition }, options);
    if (created.status !== 201) throw new Error(`No draft: ${created.text}`);
    return created.json.form;
  }

  /** A published form, owned by owner@example.com. */
  async givenPublishedForm(definition: object = {}, options: CallOptions = {}): Promise<PublishedForm> {
    const draft = await this.givenDraft(definition, options);
    const activated = await this.post(draft.activate_url, { email: 'owner@example.com' });
    if (activated.status !== 200) throw new Error(`Not published: ${activated.text}`);
    return { ...activated.json.form, webhook_secret: activated.json.webhook_secret };
  }

  /** A key with these scopes, in this project (made when new). */
  async givenKey(scopes: string[], project?: string): Promise<string> {
    const made = await this.post('/v1/keys', {
      name: 'test',
      scopes,
      ...(project !== undefined && { project }),
    });
    if (made.status !== 201) throw new Error(`No key: ${made.text}`);
    return made.json.secret;
  }

  /** A transport to the RPCs. */
  transport(
    protocol: Protocol = 'connect',
    key: string | null = this.key,
    headers: Record<string, string> = {},
  ): Transport {
    const authorize: Interceptor = (next) => (request) => {
      if (key !== null) request.header.set('authorization', `Bearer ${key}`);
      for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
      return next(request);
    };
    const options = { interceptors: [authorize] };
    switch (protocol) {
      case 'connect':
        return createConnectTransport({ ...options, baseUrl: this.url, httpVersion: '1.1' });
      case 'connect-http2':
        return createConnectTransport({ ...options, baseUrl: this.grpcUrl, httpVersion: '2' });
      case 'grpc-web':
        return createGrpcWebTransport({ ...options, baseUrl: this.url, httpVersion: '1.1' });
      case 'grpc':
        return createGrpcTransport({ ...options, baseUrl: this.grpcUrl });
    }
  }

  client<S extends Parameters<typeof createClient>[0]>(
    service: S,
    ...where: Parameters<TestService['transport']>
  ) {
    return createClient(service, this.transport(...where));
  }

  /** The mails written so far, as RFC 822 text, oldest first. */
  async mails(): Promise<string[]> {
    const folder = join(this.#folder, 'mail');
    const names = await readdir(folder).catch(() => []);
    return Promise.all(
      names
        .filter((name) => name.endsWith('.eml'))
        .sort()
        .map((name) => readFile(join(folder, name), 'utf8')),
    );
  }

  async countSubmissions(): Promise<number> {
    const [row] = await this.database.select('select count(*)::int as count from submissions');
    return Number(row?.count);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}

/** A form as most tests need it. */
export const contactForm = {
  name: 'Contact',
  slug: 'contact',
  fields: [
    { id: 'email', type: 'email', required: true },
    { id: 'message', type: 'textarea' },
  ],
  delivery: { type: 'email' },
};

/** What people open, which no API description tells of. */
function isPage(method: string, path: string): boolean {
  return (
    /^\/(f|s|mail|files|assets|docs)\/|^\/(embed\.js|openapi\.json|docs|new|$)/.test(path) ||
    (method === 'GET' && path.includes('/activate'))
  );
}

function isPlain(body: unknown): boolean {
  return body !== undefined && (Object.getPrototypeOf(body) === Object.prototype || Array.isArray(body));
}

export type ServiceOptions = {
  engine?: EngineName;
  env?: Record<string, string>;
  now?: () => number;
  /** Another bound than the standard one on the free space of the disk. */
  floorBytes?: number;
  /** Instead of an empty one; it stays open. */
  database?: Database;
};
/** Connect and gRPC-Web over HTTP/1.1; gRPC, and Connect again, over HTTP/2. */
export const protocols = ['connect', 'connect-http2', 'grpc-web', 'grpc'] as const;

export type Protocol = (typeof protocols)[number];
export type CallOptions = { key?: string | null; headers?: Record<string, string> };
export type Draft = { id: string; name: string; slug: string; status: string; activate_url: string };
export type PublishedForm = {
  id: string;
  status: string;
  current_version_id: string;
  webhook_secret?: string;
};
type TestServiceParts = Pick<
  TestService,
  'url' | 'grpcUrl' | 'metricsUrl' | 'key' | 'database' | 'logged'
> & {
  owned: AsyncDisposableStack;
  folder: string;
};
