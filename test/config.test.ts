import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError, misspeltSettings, readConfig } from '../src/config.ts';
import { temporaryFolder } from './support/spawn.ts';

describe('readConfig', () => {
  it('fills in every default', () => {
    const config = readConfig({});

    expect(config).toMatchObject({
      port: 8080,
      grpcPort: 8081,
      host: '0.0.0.0',
      dataDir: './data',
      baseUrl: 'http://localhost:8080',
      hostedUrl: 'http://localhost:8080',
      requireApiKey: true,
      allowPublicCreate: true,
      ownerConfirmation: true,
      publicProject: 'default',
      retrySchedule: [0, 5, 30, 120, 900, 3600, 21_600, 86_400],
      deliveryRetentionDays: 90,
      auditRetentionDays: 365,
      vacuumWindow: { from: 180, until: 240 },
      rateLimit: true,
      trustProxy: 0,
      metricsPort: 9464,
      metricsHost: '127.0.0.1',
    });
    expect(readConfig({ METRICS_PORT: 'off' }).metricsPort).toBeUndefined();
  });

  it('wants a server behind several workers', () => {
    expect(problemsOf({ WORKERS: '2' })).toEqual([
      expect.stringMatching(/^WORKERS: more than 1 needs DATABASE_URL/),
    ]);
    expect(readConfig({ WORKERS: '2', DATABASE_URL: 'postgres://localhost/forms' }).workers).toBe(2);
    expect(
      problemsOf({ WORKERS: '3', DATABASE_URL: 'postgres://localhost/forms', METRICS_PORT: '8079' }),
    ).toEqual([expect.stringMatching(/^METRICS_PORT: expected off, or a port for each of WORKERS/)]);
    expect(
      readConfig({ WORKERS: 'auto', DATABASE_URL: 'postgres://localhost/forms' }).workers,
    ).toBeGreaterThan(0);
  });

  it('reads whose access tokens work at /mcp', () => {
    const config = readConfig({
      BASE_URL: 'https://forms.example.com',
      OAUTH_ISSUER: 'https://login.example.com/realms/main',
      OAUTH_SCOPES: 'forms:read, api://x/A=b=forms:write,api://x/A=b=sessions:read',
    });

    expect(config).toMatchObject({
      oauthIssuer: 'https://login.example.com/realms/main',
      oauthAudience: 'https://forms.example.com/mcp',
      oauthProject: 'default',
    });
    expect([...(config.oauthScopes ?? [])]).toEqual([
      ['forms:read', ['forms:read']],
      ['api://x/A=b', ['forms:write', 'sessions:read']],
    ]);
    expect(readConfig({ OAUTH_ISSUER: 'http://localhost:9/' }).oauthIssuer).toBe('http://localhost:9/');
    expect(problemsOf({ OAUTH_ISSUER: 'http://login.example.com', OAUTH_SCOPES: 'forms:all' })).toEqual([
      'OAUTH_ISSUER: expected an https address without query, or http on loopback',
      'OAUTH_SCOPES: expected scopes such as forms:read or Forms.Read=forms:read, not "forms:all"',
    ]);
    expect(problemsOf({ OAUTH_SCOPES: 'forms:read' })).toEqual([
      'OAUTH_ISSUER: needed with OAUTH_AUDIENCE and OAUTH_SCOPES',
    ]);
  });

  it('reads each setting from a file, too, and says which file can’t be read', () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'secret');
    writeFileSync(file, 'smtp://user:word@mail.example:25\n');

    expect(readConfig({ SMTP_URL_FILE: file, PORT_FILE: '' }).smtpUrl).toBe(
      'smtp://user:word@mail.example:25',
    );
    expect(problemsOf({ PORT_FILE: file })).toEqual([
      expect.stringMatching(/^PORT: expected a whole number/),
    ]);
    expect(problemsOf({ SMTP_URL_FILE: join(folder.path, 'none') })).toEqual([
      expect.stringMatching(/^SMTP_URL_FILE: ENOENT: .*none/),
    ]);
    expect(problemsOf({ SMTP_URL_FILE: file, SMTP_URL: 'smtp://localhost' })).toEqual([
      'SMTP_URL: expected either this or SMTP_URL_FILE',
    ]);
    expect(misspeltSettings({ SMTP_URL_FILE: file })).toEqual([]);
  });

  it('takes an empty variable for an unset one', () => {
    expect(readConfig({ PORT: '', SMTP_URL: '' })).toEqual(readConfig({}));
  });

  it('listens on loopback only when keys are not required, unless told otherwise', () => {
    expect(readConfig({ REQUIRE_API_KEY: 'false' }).host).toBe('127.0.0.1');
    expect(readConfig({ REQUIRE_API_KEY: 'false', HOST: '0.0.0.0' }).host).toBe('0.0.0.0');
  });

  it('takes the addresses of links from PORT or BASE_URL', () => {
    expect(readConfig({ PORT: '9000' }).hostedUrl).toBe('http://localhost:9000');
    expect(readConfig({ BASE_URL: 'https://forms.example.com/' }).hostedUrl).toBe(
      'https://forms.example.com',
    );
  });

  it('names every mistake at once', () => {
    const problems = problemsOf({ PORT: 'http', RATE_LIMIT: 'maybe', MAIL_FROM: 'nobody' });

    expect(problems).toEqual([
      'PORT: expected a whole number from 0 to 65535',
      'MAIL_FROM: expected an email address',
      'RATE_LIMIT: expected on or off',
    ]);
  });

  it('names what does not go together beside what can’t be read', () => {
    const problems = problemsOf({
      MAIL_FROM: 'nobody',
      WORKERS: '2',
      METRICS_PORT: '8079',
      TLS_KEY: 'key.pem',
    });

    expect(problems).toEqual([
      'MAIL_FROM: expected an email address',
      'WORKERS: more than 1 needs DATABASE_URL: the embedded database belongs to one process',
      'METRICS_PORT: expected off, or a port for each of WORKERS beside PORT and GRPC_PORT',
      'TLS_CERT: needed with TLS_KEY',
    ]);
    expect(problemsOf({ WORKERS: 'many', METRICS_PORT: '8079' })).toEqual([
      expect.stringMatching(/^WORKERS: expected auto/),
    ]);
    expect(problemsOf({ TLS_CERT: 'cert.pem', PORT: 'http' })).toEqual([
      expect.stringMatching(/^PORT: expected/),
      'TLS_KEY: needed with TLS_CERT',
    ]);
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['GRPC_PORT', '8081.5'],
    ['HOST', 'a b'],
    ['DATABASE_URL', 'mysql://localhost/forms'],
    ['BASE_URL', 'forms.example.com'],
    ['HOSTED_URL', 'https://forms.example.com/?a=1'],
    ['SECRET_KEY', 'short'],
    ['SMTP_URL', 'http://localhost'],
    ['SMTP_URL', 'smtp://localhost?greetingTimeout=300001'],
    ['SMTP_URL', 'smtp://localhost?greetingTimeout=1m'],
    ['SMTP_URL', 'smtp://localhost?maxConnections=0'],
    ['MAIL_FROM', 'Forms <forms@example.com>'],
    ['OPERATOR_EMAIL', 'a@example.com, b@example.com'],
    ['REQUIRE_API_KEY', 'yes'],
    ['ALLOW_PUBLIC_CREATE', '1'],
    ['PUBLIC_PROJECT', 'a project'],
    ['BOOTSTRAP_API_KEY', 'too-short'],
    ['WEBHOOK_ALLOW_PRIVATE', 'TRUE'],
    ['WEBHOOK_RETRY_SCHEDULE', '0,5,later'],
    ['DELIVERY_WORKERS', '-2'],
    ['DELIVERY_RETENTION_DAYS', '0'],
    ['UPLOADS_URL', 's3://host/bucket'],
    ['WORKERS', '0'],
    ['WORKERS', 'many'],
    ['RATE_LIMIT', 'no'],
    ['RATE_LIMIT_KEY', '0'],
    ['RPC_ALLOWED_ORIGINS', '*'],
    ['RPC_ALLOWED_ORIGINS', 'https://admin.example.com/'],
    ['TRUST_PROXY', 'true'],
    ['TRUST_PROXY', '10.0.0.0/33'],
    ['LOG_LEVEL', 'verbose'],
    ['LOG_FORMAT', 'text'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
    ['METRICS_PORT', 'no'],
    ['METRICS_PORT', '65536'],
    ['METRICS_PORT', '8080'],
    ['METRICS_HOST', 'a b'],
    ['ACCESS_LOG', 'false'],
  ])('refuses %s=%s in a line that begins with its name', (name, value) => {
    const problems = problemsOf({ [name]: value });

    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(new RegExp(`^${name}: expected `));
  });

  it.each([
    ['2', 2],
    ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
    ['loopback', ['loopback']],
  ])('reads TRUST_PROXY=%s', (text, expected) => {
    expect(readConfig({ TRUST_PROXY: text }).trustProxy).toEqual(expected);
  });
});

describe('misspeltSettings', () => {
  it.each([
    ['SMPT_URL', 'SMTP_URL'],
    ['SMTPURL', 'SMTP_URL'],
    ['smtp_url', 'SMTP_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['DATBASE_ULR', 'DATABASE_URL'],
    ['PROT', 'PORT'],
    ['MAIL_FORM', 'MAIL_FROM'],
    ['WORKER', 'WORKERS'],
    ['REQUIRE_API_KEYS', 'REQUIRE_API_KEY'],
    ['WEBHOOKS_ALLOW_PRIVATE', 'WEBHOOK_ALLOW_PRIVATE'],
  ])('takes %s for %s', (variable, setting) => {
    expect(misspeltSettings({ [variable]: 'x' })).toEqual([
      `${variable} is not a setting: did you mean ${setting}?`,
    ]);
  });

  it('leaves alone what is a setting, empty, or of other programs', () => {
    const foreign = `
      HOME HOSTNAME HOSTTYPE PATH PWD OLDPWD USER LOGNAME SHELL SHLVL TERM LANG LC_ALL TZ MAIL DISPLAY EDITOR
      PAGER TMPDIR COLUMNS LINES LS_COLORS SSH_CLIENT SSH_TTY SUDO_USER XDG_DATA_DIRS DEBUG CI DOMAIN URL KEY FORM
      NODE NODE_ENV NODE_OPTIONS NODE_PATH NPM_TOKEN npm_config_loglevel npm_lifecycle_event INIT_CWD FORCE_COLOR
      PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE POSTGRES_USER POSTGRES_DB POSTGRES_URL REDIS_URL MONGO_URL
      SITE_URL API_URL APP_URL PUBLIC_URL S3_URL WS_URL DB_URL DB_HOST DB_PORT API_KEY SECRET SECRETS_DIR
      AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY SMTP_HOST SMTP_PORT SMTP_USER SMTP_PASSWORD MAIL_HOST
      KUBERNETES_PORT KUBERNETES_SERVICE_HOST HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy no_proxy SSL_CERT_FILE
      OTEL_SERVICE_NAME OTEL_EXPORTER_OTLP_ENDPOINT LD_LIBRARY_PATH PYTHONPATH GOPATH JAVA_HOME DOCKER_HOST
      COMPOSE_PROJECT_NAME GITHUB_TOKEN VITEST_WORKER_ID WEB_CONCURRENCY PROMPT_COMMAND PS1 IFS _`;
    const env = Object.fromEntries(foreign.split(/\s+/).map((variable) => [variable, 'x']));

    expect(misspeltSettings({ ...env, SMTP_URL: 'smtp://localhost', SMPT_URL: '' })).toEqual([]);
  });
});

function problemsOf(env: Record<string, string>): string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
