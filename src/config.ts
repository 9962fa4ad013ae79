import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isEmailAddress } from './domain/addresses/email-address.ts';
import { isLoopback } from './domain/addresses/ip-address.ts';
import { isOrigin } from './domain/definition/settings.ts';
import { defaultSchedule, parseSchedule } from './domain/delivery/retry.ts';
import { errorMessage } from './domain/errors/system-errors.ts';
import { projectPattern, retentionDays } from './domain/limits/limits.ts';
import { parseSecretKey } from './domain/secrets/secret-key.ts';
import { nearestName } from './domain/text/nearest-name.ts';
import { parseTokenScopes, type TokenScopes } from './mcp/authorization/token-scopes.ts';
import { parseS3Url, type S3Location } from './services/uploads/s3-upload-store.ts';
import type { DayWindow } from './store/database/vacuum.ts';

/**
 * Reads the settings from the environment, or throws a `ConfigError` that names every mistake.
 *
 * An empty variable counts as unset. One whose name ends in `_FILE` names a file that has the value, as secrets of
 * containers are.
 */
export function readConfig(env: Environment): Config {
  const given = Object.fromEntries(
    describedSettings.map(({ key, variable }) => [key, textOf(env, variable)]),
  );
  const parsed = settings.safeParse(given);
  if (!parsed.success) {
    const nameOf = new Map<PropertyKey | undefined, string>(
      describedSettings.map(({ key, variable }) => [key, variable]),
    );
    throw new ConfigError(
      parsed.error.issues.map(({ path, message }) => `${nameOf.get(path[0])}: ${message}`),
    );
  }
  const { host, requireApiKey, port, databaseUrl, ...rest } = parsed.data;
  const scheme = rest.tlsCert === undefined ? 'http' : 'https';
  const baseUrl = rest.baseUrl ?? `${scheme}://localhost:${port}`;
  return {
    ...rest,
    databaseUrl: databaseUrl && inSchema(databaseUrl, rest.databaseSchema),
    port,
    requireApiKey,
    host: host ?? (requireApiKey ? '0.0.0.0' : '127.0.0.1'),
    baseUrl,
    hostedUrl: rest.hostedUrl ?? baseUrl,
    oauthAudience: rest.oauthAudience ?? `${baseUrl}/mcp`,
  };
}

/** A URL by which each connection finds the tables in a schema, that of other programs too. */
function inSchema(databaseUrl: string, schema: string | undefined): string {
  if (schema === undefined) return databaseUrl;
  const url = new URL(databaseUrl);
  const given = url.searchParams.get('options');
  const query = url.searchParams;
  query.delete('options');
  const options = encodeURIComponent(`${given === null ? '' : `${given} `}-c search_path=${schema}`);
  // As a space, libpq reads no plus sign.
  url.search = [query.toString(), `options=${options}`].filter((part) => part !== '').join('&');
  return url.href;
}

function textOf(env: Environment, variable: string): string | undefined {
  const file = env[`${variable}_FILE`] || undefined;
  const text = env[variable] || undefined;
  if (file === undefined) return text;
  if (text !== undefined) throw new ConfigError([`${variable}: expected either this or ${variable}_FILE`]);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ConfigError([`${variable}_FILE: ${errorMessage(error)}`]);
  }
}

/** Returns a line for each variable that looks like a misspelt setting, such as `SMPT_URL`. */
export function misspeltSettings(env: Environment): string[] {
  const known = describedSettings.map(({ variable }) => variable);
  return Object.entries(env).flatMap(([variable, value]) => {
    if (value === undefined || value === '' || known.includes(variable.replace(/_FILE$/, ''))) return [];
    const meant = nearestName(variable, known);
    return meant === undefined ? [] : [`${variable} is not a setting: did you mean ${meant}?`];
  });
}

/** Settings that can't be used; `problems` holds one line for each, beginning with its name. */
export class ConfigError extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most, {
      error: `expected a whole number from ${least} to ${most}`,
    })
    .transform(Number);

const port = wholeNumber(0, 65_535);

const projectName = z
  .string()
  .regex(projectPattern, { error: "expected 1 to 64 letters, digits, '.', '_' or '-'" });

const hostName = z.string().regex(/^[A-Za-z0-9.:_-]+$/, { error: 'expected a host name or IP address' });

const flag = z
  .enum(['true', 'false'], { error: 'expected true or false' })
  .transform((text) => text === 'true');

const onOrOff = z.enum(['on', 'off'], { error: 'expected on or off' }).transform((text) => text === 'on');

const address = z.string().refine(isEmailAddress, { error: 'expected an email address' });

/** An address of this service as its users see it, without a slash at the end. */
const serviceUrl = z
  .string()
  .refine((text) => ['http:', 'https:'].includes(protocolOf(text)) && !/[?#]/.test(text), {
    error: 'expected an http or https address without query, such as https://forms.example.com',
  })
  .transform((text) => text.replace(/(?<!\/)\/+$/, ''));

function urlOf(protocols: string[], error: string) {
  return z.string().refine((text) => protocols.includes(protocolOf(text)), { error });
}

/** Whether an option in the query of a URL is a whole number up to `most`, or absent. */
function isOption(url: string, option: string, most: number): boolean {
  return wholeNumber(1, most).safeParse(URL.parse(url)?.searchParams.get(option) ?? '1').success;
}

/** Reads a text with a function that throws an error saying what is wrong. */
const readBy = <T>(read: (text: string) => T) =>
  z.string().transform((text, context) => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: errorMessage(error) });
      return z.NEVER;
    }
  });

const descriptions = z.registry<Description>();

/** A setting that is read as `standard` if it is unset. */
function setting<T>(variable: string, about: string, standard: string, read: z.ZodType<T, string>) {
  return read.prefault(standard).register(descriptions, { variable, about, standard });
}

/** A setting without a value if it is unset; `standard` then says what takes its place. */
function optional<T>(variable: string, about: string, standard: string, read: z.ZodType<T, string>) {
  return read.optional().register(descriptions, { variable, about, standard });
}

/** Every setting, as it is called in `Config`. Texts are Markdown: docs/settings.md has the same ones. */
const table = z.object({
  port: setting(
    'PORT',
    'HTTP/1.1: REST, pages, Connect, gRPC-Web; HTTP/2 cleartext: RPC of every kind',
    '8080',
    port,
  ),
  grpcPort: setting('GRPC_PORT', 'HTTP/2 cleartext: gRPC, Connect; may be `PORT`', '8081', port),
  host: optional(
    'HOST',
    'the address to listen on; 127.0.0.1 where keys are not required',
    '0.0.0.0',
    hostName,
  ),
  tlsCert: optional(
    'TLS_CERT',
    'a file with the certificate, in PEM, to serve TLS with on both ports; read again when it changes. ' +
      'Needs `TLS_KEY`; unset: cleartext, for a proxy in front',
    '',
    z.string(),
  ),
  tlsKey: optional('TLS_KEY', 'a file with its private key, in PEM', '', z.string()),
  databaseUrl: optional(
    'DATABASE_URL',
    '`postgres://…`; unset: the embedded database in `DATA_DIR`',
    '',
    urlOf(['postgres:', 'postgresql:'], 'expected postgres://user:password@host:port/database'),
  ),
  databasePoolerUrl: optional(
    'DATABASE_POOLER_URL',
    'PgBouncer in transaction mode before the server of `DATABASE_URL`: requests and deliveries go there, and only ' +
      'the listener, migrations and admin commands go to `DATABASE_URL`',
    '',
    urlOf(['postgres:', 'postgresql:'], 'expected postgres://user:password@host:port/database'),
  ),
  databaseSchema: optional(
    'DATABASE_SCHEMA',
    'the schema of that database which has the tables, and has to exist; unset: what the server says (`search_path`)',
    '',
    z
      .string()
      .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'expected the name of a schema: lower-case letters, digits and _'),
  ),
  startWaitSeconds: setting(
    'START_WAIT',
    "how many seconds the start waits for the server of `DATABASE_URL` if it can't be reached yet",
    '60',
    wholeNumber(0, 86_400),
  ),
  migrate: setting(
    'MIGRATE',
    '`off`: the start leaves the tables as they are, and stops if they lack something: `npm run cli -- admin migrate`',
    'on',
    onOrOff,
  ),
  dataDir: setting('DATA_DIR', 'embedded database, emails, uploads, secret key', './data', z.string()),
  baseUrl: optional(
    'BASE_URL',
    'the address of the service as its users see it',
    'http://localhost:`PORT`',
    serviceUrl,
  ),
  hostedUrl: optional('HOSTED_URL', 'the address of the hosted pages', '`BASE_URL`', serviceUrl),
  secretKey: optional(
    'SECRET_KEY',
    '32 bytes in hex or base64 (`openssl rand -hex 32`): encrypts stored secrets, signs links. ' +
      'Needed with `DATABASE_URL`; otherwise made once in `DATA_DIR`',
    '',
    readBy(parseSecretKey),
  ),
  previousSecretKey: optional(
    'SECRET_KEY_PREVIOUS',
    'the former `SECRET_KEY`, after a change: opens stored secrets that it encrypted, and checks links that stop ' +
      'emails, pages that were open and sessions of owners; it makes nothing',
    '',
    readBy(parseSecretKey),
  ),
  smtpUrl: optional(
    'SMTP_URL',
    '`smtp://user:password@host:port?name=…` or `smtps://…`; unset: emails are saved to `DATA_DIR/mail`',
    '',
    urlOf(['smtp:', 'smtps:'], 'expected smtp://user:password@host:port or smtps://…').refine(
      (text) => isOption(text, 'greetingTimeout', 300_000) && isOption(text, 'maxConnections', 100),
      { error: 'expected greetingTimeout up to 300000 (milliseconds) and maxConnections up to 100' },
    ),
  ),
  mailFrom: setting('MAIL_FROM', 'the sender of emails', 'forms@localhost.localdomain', address),
  operatorEmail: optional(
    'OPERATOR_EMAIL',
    'who gets submissions to the demo form and, if it is set, is told of webhooks that fail',
    '`MAIL_FROM`',
    address,
  ),
  requireApiKey: setting(
    'REQUIRE_API_KEY',
    "`false`: the contract's management routes answer without a key, but for reading submissions",
    'true',
    flag,
  ),
  rpcAllowedOrigins: setting(
    'RPC_ALLOWED_ORIGINS',
    'origins, comma-separated, whose pages may call every RPC, every route below `/v1` and `/mcp` with a key, ' +
      'such as `https://admin.example.com`; those of every origin may call what needs no key',
    '',
    readBy<readonly string[]>(parseOrigins),
  ),
  allowPublicCreate: setting('ALLOW_PUBLIC_CREATE', '`false`: making a form needs a key', 'true', flag),
  ownerConfirmation: setting(
    'OWNER_CONFIRMATION',
    '`off`, for networks where everybody is trusted: submissions are emailed to an owner who has not confirmed the address',
    'on',
    onOrOff,
  ),
  docs: setting('DOCS', '`off`: no guides and no API reference at `/docs`', 'on', onOrOff),
  reflection: setting('REFLECTION', '`off`: no gRPC reflection', 'on', onOrOff),
  demo: setting('DEMO', '`off`: no demo form, and no `/api/demo`', 'on', onOrOff),
  publicProject: setting('PUBLIC_PROJECT', 'the project of forms made without a key', 'default', projectName),
  bootstrapApiKey: optional(
    'BOOTSTRAP_API_KEY',
    'an API key with every scope, registered unless the database knows it or it was revoked; unset: the first start makes and prints one',
    '',
    z.string().regex(/^[\x21-\x7e]{32,256}$/, { error: 'expected 32 to 256 visible characters' }),
  ),
  oauthIssuer: optional(
    'OAUTH_ISSUER',
    'your OpenID provider, such as `https://login.example.com/realms/main`, exactly as its tokens have it in `iss`: ' +
      'its access tokens work at `/mcp` beside API keys. https, or http on loopback',
    '',
    z.string().refine(isIssuer, { error: 'expected an https address without query, or http on loopback' }),
  ),
  oauthAudience: optional(
    'OAUTH_AUDIENCE',
    'what access tokens must have in `aud`',
    '`BASE_URL`/mcp',
    z.string().regex(/^[\x21-\x7e]{1,500}$/, { error: 'expected 1 to 500 visible characters' }),
  ),
  oauthProject: setting(
    'OAUTH_PROJECT',
    'the project that access tokens act in; created on first use',
    'default',
    projectName,
  ),
  oauthScopes: optional(
    'OAUTH_SCOPES',
    'the scopes that access tokens may hold, comma-separated: `forms:read`, or `Forms.Read=forms:read` if your provider ' +
      'has another name for it; unset: all but `*`, `keys:write` and `sessions:notify`',
    '',
    readBy<TokenScopes>(parseTokenScopes),
  ),
  allowPrivateWebhooks: setting(
    'WEBHOOK_ALLOW_PRIVATE',
    '`true`: webhooks may be http and private, for development',
    'false',
    flag,
  ),
  retrySchedule: setting(
    'WEBHOOK_RETRY_SCHEDULE',
    'seconds before each attempt',
    defaultSchedule.join(),
    readBy<readonly number[]>(parseSchedule),
  ),
  maxWebhooks: setting(
    'MAX_WEBHOOKS',
    'webhooks of one project; those of forms made without a key are counted apart, up to as many',
    '100',
    wholeNumber(1, 100_000),
  ),
  deliveryWorkers: setting(
    'DELIVERY_WORKERS',
    'webhooks called at once; 0 turns delivery off in this process, emails included',
    '64',
    wholeNumber(0, 1000),
  ),
  workers: setting(
    'WORKERS',
    'processes that share the ports, or `auto` for one a core; more than 1 needs `DATABASE_URL`',
    '1',
    readBy(parseWorkers),
  ),
  deliveryRetentionDays: setting(
    'DELIVERY_RETENTION_DAYS',
    'how long the log of finished deliveries is kept',
    '90',
    wholeNumber(retentionDays.min, retentionDays.max),
  ),
  auditRetentionDays: setting(
    'AUDIT_RETENTION_DAYS',
    'how long the audit log is kept',
    '365',
    wholeNumber(retentionDays.min, retentionDays.max),
  ),
  vacuumWindow: setting(
    'VACUUM_WINDOW',
    'when the embedded database may pause for long, by the clock of the process: large tables are vacuumed, and what held erased answers is written anew',
    '03:00-04:00',
    readBy<DayWindow>(parseDayWindow),
  ),
  uploads: optional(
    'UPLOADS_URL',
    '`s3://KEY:SECRET@host[:port]/bucket[/folder]?region=…&tls=false` (key and secret percent-encoded); ' +
      'unset: `DATA_DIR/uploads`',
    '',
    readBy<S3Location>(parseS3Url),
  ),
  keylessHourMib: setting(
    'KEYLESS_MIB_PER_HOUR',
    'what one client address may store without a key: files, and forms made without one with what they hold',
    '100',
    wholeNumber(1, 100_000_000),
  ),
  keylessProjectMib: setting(
    'KEYLESS_MIB_PER_PROJECT',
    'what one project holds at most of that',
    '1024',
    wholeNumber(1, 100_000_000),
  ),
  rateLimit: setting('RATE_LIMIT', '`off` for load tests', 'on', onOrOff),
  rateLimitPerKey: optional(
    'RATE_LIMIT_KEY',
    'calls a minute with one key; unset: any number',
    '',
    wholeNumber(1, 1_000_000),
  ),
  maxStreams: setting(
    'MAX_STREAMS',
    'streams of events and submissions that a project may have open in one process',
    '60',
    wholeNumber(1, 100_000),
  ),
  maxStreamsPerKey: setting('MAX_STREAMS_PER_KEY', 'those of one key', '20', wholeNumber(1, 100_000)),
  maxStreamsTotal: setting('MAX_STREAMS_TOTAL', 'those of all projects', '200', wholeNumber(1, 100_000)),
  maxWaitsPerKey: setting(
    'MAX_WAITS_PER_KEY',
    'calls of one key that may wait for sessions at once in one process',
    '1000',
    wholeNumber(1, 1_000_000),
  ),
  maxWaitsTotal: setting('MAX_WAITS_TOTAL', 'those of all keys', '10000', wholeNumber(1, 1_000_000)),
  notifyMailboxesPerKey: setting(
    'NOTIFY_MAILBOXES_PER_KEY',
    'mailboxes that have not confirmed anything to the service and that one key, with the keys that it made, may email in a day, for sessions; a key made by a `*` key of the project `default` counts alone',
    '50',
    wholeNumber(0, 1_000_000),
  ),
  maxConnections: setting(
    'MAX_CONNECTIONS',
    'connections open at once in each process; below the number of files that the system lets it open',
    '4000',
    wholeNumber(10, 1_000_000),
  ),
  maxConnectionsPerClient: setting(
    'MAX_CONNECTIONS_PER_CLIENT',
    'those of one client address (IPv6: /64); trusted proxies are exempt',
    '1000',
    wholeNumber(1, 1_000_000),
  ),
  trustProxy: setting(
    'TRUST_PROXY',
    'how many proxies to believe in `X-Forwarded-For`, or their addresses and ranges',
    '0',
    readBy(parseTrustProxy),
  ),
  metricsPort: setting(
    'METRICS_PORT',
    'metrics for Prometheus at `/metrics`; the second of `WORKERS` takes the next port, and so on; `off`: none',
    '9464',
    readBy(parseMetricsPort),
  ),
  metricsHost: setting(
    'METRICS_HOST',
    'the address for them; anyone who can reach it can read them',
    '127.0.0.1',
    hostName,
  ),
  traceEndpoint: optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'the collector that traces go to, by OTLP over HTTP, such as `http://localhost:4318`; unset: none are recorded',
    '',
    serviceUrl,
  ),
  drainSeconds: setting(
    'DRAIN_SECONDS',
    'how long a stop still takes calls after `/ready` says 503: longer than a load balancer needs to notice',
    '0',
    wholeNumber(0, 300),
  ),
  logLevel: setting(
    'LOG_LEVEL',
    '`fatal` to `trace`, or `silent`',
    'info',
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'expected fatal, error, warn, info, debug, trace or silent',
    }),
  ),
  logFormat: setting(
    'LOG_FORMAT',
    '`json`, `pretty` for people to read, or `auto`: `pretty` in a terminal, else `json`',
    'auto',
    z.enum(['auto', 'json', 'pretty'], { error: 'expected auto, json or pretty' }),
  ),
  accessLog: setting(
    'ACCESS_LOG',
    '`off`: no line in the log for each request; health checks that succeed have one at `LOG_LEVEL=debug` only',
    'on',
    onOrOff,
  ),
});

/** Rules for several settings: each is checked where those in `reads` can be read, whatever the others. */
const rules: Rule[] = [
  {
    reads: ['databaseSchema', 'databaseUrl'],
    message: 'needs DATABASE_URL: the embedded database has one schema',
    holds: ({ databaseSchema, databaseUrl }) => databaseSchema === undefined || databaseUrl !== undefined,
  },
  {
    reads: ['databasePoolerUrl', 'databaseUrl'],
    message: 'needs DATABASE_URL, which leads to the server itself',
    holds: ({ databasePoolerUrl, databaseUrl }) =>
      databasePoolerUrl === undefined || databaseUrl !== undefined,
  },
  {
    reads: ['workers', 'databaseUrl'],
    message: 'more than 1 needs DATABASE_URL: the embedded database belongs to one process',
    holds: ({ workers, databaseUrl }) => workers === 1 || databaseUrl !== undefined,
  },
  {
    reads: ['metricsPort', 'workers', 'port', 'grpcPort'],
    message: 'expected off, or a port for each of WORKERS beside PORT and GRPC_PORT',
    holds: hasMetricsPorts,
  },
  {
    reads: ['oauthIssuer', 'oauthAudience', 'oauthScopes'],
    message: 'needed with OAUTH_AUDIENCE and OAUTH_SCOPES',
    holds: ({ oauthIssuer, oauthAudience, oauthScopes }) =>
      oauthIssuer !== undefined || (oauthAudience === undefined && oauthScopes === undefined),
  },
  {
    reads: ['tlsCert', 'tlsKey'],
    message: 'needed with TLS_KEY',
    holds: ({ tlsCert, tlsKey }) => tlsCert !== undefined || tlsKey === undefined,
  },
  {
    reads: ['tlsKey', 'tlsCert'],
    message: 'needed with TLS_CERT',
    holds: ({ tlsCert, tlsKey }) => tlsKey !== undefined || tlsCert === undefined,
  },
];

const settings = table.superRefine(
  (read, context) => {
    const unread = new Set(context.issues.map(({ path }) => path?.[0]));
    for (const { reads, message, holds } of rules) {
      if (reads.some((key) => unread.has(key)) || holds(read)) continue;
      context.addIssue({ code: 'custom', path: reads.slice(0, 1), message });
    }
  },
  { when: () => true },
);

/** Whether each worker has a port for metrics that is not one of the service's. */
function hasMetricsPorts({ metricsPort, workers, port: http, grpcPort }: z.output<typeof table>): boolean {
  if (metricsPort === undefined || metricsPort === 0) return true;
  const last = metricsPort + workers - 1;
  return last <= 65_535 && [http, grpcPort].every((other) => other < metricsPort || other > last);
}

/** Every setting in words, in the order of the table. */
export const describedSettings = Object.entries(table.shape).map(([key, read]) => {
  const description = descriptions.get(read);
  if (description === undefined) throw new Error(`The setting ${key} is not describedSettings`);
  return { key, ...description };
});

/** Reads RPC_ALLOWED_ORIGINS: what browsers send as `Origin`. */
function parseOrigins(text: string): string[] {
  const origins = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const bad = origins.find((origin) => !isOrigin(origin));
  if (bad !== undefined) {
    throw new Error(`expected origins such as https://admin.example.com, without a path, not "${bad}"`);
  }
  return origins;
}

/** Reads WORKERS: a number of processes, or `auto` for one on each core that this process may use. */
function parseWorkers(text: string): number {
  if (text === 'auto') return availableParallelism();
  const count = Number(text);
  if (!/^\d{1,3}$/.test(text) || count < 1 || count > MAX_WORKERS) {
    throw new Error(`expected auto, or a whole number from 1 to ${MAX_WORKERS}`);
  }
  return count;
}

const MAX_WORKERS = 128;

/** Reads VACUUM_WINDOW: two times of day. */
function parseDayWindow(text: string): DayWindow {
  const [, ...parts] = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  const [fromHour, fromMinute, untilHour, untilMinute] = parts.map(Number);
  if (untilMinute === undefined) throw new Error('expected two times of day, such as 03:00-04:00');
  const window = {
    from: Number(fromHour) * 60 + Number(fromMinute),
    until: Number(untilHour) * 60 + untilMinute,
  };
  if (window.from === window.until) throw new Error('expected two times that differ');
  return window;
}

/** Reads METRICS_PORT: a port, 0 for one that is free, or undefined for `off`. */
function parseMetricsPort(text: string): number | undefined {
  if (text === 'off') return undefined;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new Error('expected off, or a port from 0 to 65535');
  return Number(text);
}

/** Reads TRUST_PROXY: a number of hops, or addresses and ranges. Never everyone: that lets callers lie. */
function parseTrustProxy(text: string): number | string[] {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const ranges = text.split(',').map((part) => part.trim());
  const bad = ranges.find((range) => !namedRanges.has(range) && !isRange(range));
  if (bad !== undefined) {
    throw new Error(`expected a number of hops, or addresses and ranges such as 10.0.0.0/8, not "${bad}"`);
  }
  return ranges;
}

function isRange(text: string): boolean {
  const [host = '', bits, ...rest] = text.split('/');
  const version = isIP(host);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** The names that proxy-addr knows. */
const namedRanges = new Set(['loopback', 'linklocal', 'uniquelocal']);

/**
 * Whether a text can be the issuer of tokens (RFC 8414, section 2). On loopback nobody else answers, as in
 * development.
 */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text) || /[?#]/.test(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

function protocolOf(text: string): string {
  return URL.canParse(text) ? new URL(text).protocol : '';
}

export type Environment = Record<string, string | undefined>;

/**
 * The settings of one process: `uploads` is the S3-compatible store of uploads, `retrySchedule` seconds,
 * `trustProxy` hops or addresses. Where email, data and secrets go when unset is decided in `app`.
 */
export type Config = Omit<z.output<typeof settings>, ComputedKey> & Record<ComputedKey, string>;

/** What has a value even if it is unset, by the others. */
type ComputedKey = 'host' | 'baseUrl' | 'hostedUrl' | 'oauthAudience';

/** What `OWNER_CONFIRMATION=off` means, for the operator. */
export const UNCONFIRMED_OWNERS =
  'anyone who can make a form can have its submissions emailed to any address, without that address confirming it';

/** It is a mistake in the first setting of `reads`. */
type Rule = {
  reads: (keyof typeof table.shape)[];
  message: string;
  holds: (read: z.output<typeof table>) => boolean;
};

type Description = {
  /** The name of the environment variable. */
  variable: string;
  about: string;
  /** What holds if it is unset; empty if that is nothing or told in `about`. */
  standard: string;
};
