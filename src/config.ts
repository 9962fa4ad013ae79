import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isEmailAddress } from './domain/email-address.ts';
import { defaultSchedule, parseSchedule } from './domain/retry.ts';
import { parseSecretKey, type SecretKey } from './domain/secrets.ts';
import { parseS3Url, type S3Location } from './services/uploads/s3-upload-store.ts';

/**
 * Reads the settings from the environment, or throws a `ConfigError` that names every mistake.
 *
 * An empty variable counts as unset. The README's table of settings describes each.
 */
export function readConfig(env: Environment): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environment.safeParse(given);
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
  }
  const { PORT: port, HOST: host, ...rest } = parsed.data;
  if (rest.WORKERS > 1 && rest.DATABASE_URL === undefined) {
    throw new ConfigError([
      'WORKERS: more than 1 needs DATABASE_URL: the embedded database belongs to one process',
    ]);
  }
  const baseUrl = rest.BASE_URL ?? `http://localhost:${port}`;
  return {
    port,
    grpcPort: rest.GRPC_PORT,
    host: host ?? (rest.REQUIRE_API_KEY ? '0.0.0.0' : '127.0.0.1'),
    databaseUrl: rest.DATABASE_URL,
    dataDir: rest.DATA_DIR,
    baseUrl,
    hostedUrl: rest.HOSTED_URL ?? baseUrl,
    secretKey: rest.SECRET_KEY,
    smtpUrl: rest.SMTP_URL,
    mailFrom: rest.MAIL_FROM,
    operatorEmail: rest.OPERATOR_EMAIL,
    requireApiKey: rest.REQUIRE_API_KEY,
    allowPublicCreate: rest.ALLOW_PUBLIC_CREATE,
    publicProject: rest.PUBLIC_PROJECT,
    bootstrapApiKey: rest.BOOTSTRAP_API_KEY,
    allowPrivateWebhooks: rest.WEBHOOK_ALLOW_PRIVATE,
    retrySchedule: rest.WEBHOOK_RETRY_SCHEDULE,
    deliveryWorkers: rest.DELIVERY_WORKERS,
    deliveryRetentionDays: rest.DELIVERY_RETENTION_DAYS,
    workers: rest.WORKERS,
    uploads: rest.UPLOADS_URL,
    rateLimit: rest.RATE_LIMIT,
    rateLimitPerKey: rest.RATE_LIMIT_KEY,
    trustProxy: rest.TRUST_PROXY,
    logLevel: rest.LOG_LEVEL,
  };
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

const flag = z
  .enum(['true', 'false'], { error: 'expected true or false' })
  .transform((text) => text === 'true');

const address = z.string().refine(isEmailAddress, { error: 'expected an e-mail address' });

/** An address of this service as its users see it, without a slash at the end. */
const serviceUrl = z
  .string()
  .refine((text) => ['http:', 'https:'].includes(protocolOf(text)) && !/[?#]/.test(text), {
    error: 'expected an http or https address without query, such as https://forms.example.com',
  })
  .transform((text) => text.replace(/\/+$/, ''));

/** Reads a text with a function that throws an error saying what is wrong. */
const readBy = <T>(read: (text: string) => T) =>
  z.string().transform((text, context) => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
      return z.NEVER;
    }
  });

const environment = z.object({
  PORT: port.default(8080),
  GRPC_PORT: port.default(8081),
  HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]+$/, { error: 'expected a host name or IP address' })
    .optional(),
  DATABASE_URL: z
    .string()
    .refine((text) => ['postgres:', 'postgresql:'].includes(protocolOf(text)), {
      error: 'expected postgres://user:password@host:port/database',
    })
    .optional(),
  DATA_DIR: z.string().default('./data'),
  BASE_URL: serviceUrl.optional(),
  HOSTED_URL: serviceUrl.optional(),
  SECRET_KEY: readBy(parseSecretKey).optional(),
  SMTP_URL: z
    .string()
    .refine((text) => ['smtp:', 'smtps:'].includes(protocolOf(text)), {
      error: 'expected smtp://user:password@host:port or smtps://…',
    })
    .optional(),
  MAIL_FROM: address.default('forms@localhost.localdomain'),
  OPERATOR_EMAIL: address.optional(),
  REQUIRE_API_KEY: flag.default(true),
  ALLOW_PUBLIC_CREATE: flag.default(true),
  PUBLIC_PROJECT: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, { error: "expected 1 to 64 letters, digits, '.', '_' or '-'" })
    .default('default'),
  BOOTSTRAP_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{32,256}$/, { error: 'expected 32 to 256 visible characters' })
    .optional(),
  WEBHOOK_ALLOW_PRIVATE: flag.default(false),
  WEBHOOK_RETRY_SCHEDULE: readBy<readonly number[]>(parseSchedule).default(defaultSchedule),
  DELIVERY_WORKERS: wholeNumber(0, 1000).default(64),
  DELIVERY_RETENTION_DAYS: wholeNumber(1, 3650).default(90),
  WORKERS: readBy(parseWorkers).default(1),
  UPLOADS_URL: readBy<S3Location>(parseS3Url).optional(),
  RATE_LIMIT: z
    .enum(['on', 'off'], { error: 'expected on or off' })
    .default('on')
    .transform((text) => text === 'on'),
  RATE_LIMIT_KEY: wholeNumber(1, 1_000_000).optional(),
  TRUST_PROXY: readBy(parseTrustProxy).default(0),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'expected fatal, error, warn, info, debug, trace or silent',
    })
    .default('info'),
});

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

function protocolOf(text: string): string {
  return URL.canParse(text) ? new URL(text).protocol : '';
}

export type Environment = Record<string, string | undefined>;

/** The settings of one process. Where mail, data and secrets go when unset is decided in `main`. */
export type Config = {
  port: number;
  grpcPort: number;
  host: string;
  databaseUrl: string | undefined;
  dataDir: string;
  baseUrl: string;
  hostedUrl: string;
  secretKey: SecretKey | undefined;
  smtpUrl: string | undefined;
  mailFrom: string;
  operatorEmail: string | undefined;
  requireApiKey: boolean;
  allowPublicCreate: boolean;
  publicProject: string;
  bootstrapApiKey: string | undefined;
  allowPrivateWebhooks: boolean;
  /** Seconds before each attempt. */
  retrySchedule: readonly number[];
  /** Deliveries under way at once in this process; 0 turns the loop off. */
  deliveryWorkers: number;
  deliveryRetentionDays: number;
  /** Processes that share the ports. */
  workers: number;
  /** The S3-compatible store of uploads; undefined: a folder in `dataDir`. */
  uploads: S3Location | undefined;
  rateLimit: boolean;
  /** Calls a minute for each key; undefined: no limit. */
  rateLimitPerKey: number | undefined;
  /** Hops to trust in `X-Forwarded-For`, or the addresses and ranges of proxies. */
  trustProxy: number | string[];
  logLevel: string;
};
