import { describe, expect, it } from 'vitest';
import { ConfigError, readConfig } from '../src/config.ts';

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
      publicProject: 'default',
      retrySchedule: [0, 5, 30, 120, 900, 3600, 21_600, 86_400],
      deliveryRetentionDays: 90,
      rateLimit: true,
      trustProxy: 0,
    });
  });

  it('wants a server behind several workers', () => {
    expect(problemsOf({ WORKERS: '2' })).toEqual([
      expect.stringMatching(/^WORKERS: more than 1 needs DATABASE_URL/),
    ]);
    expect(readConfig({ WORKERS: '2', DATABASE_URL: 'postgres://localhost/forms' }).workers).toBe(2);
    expect(
      readConfig({ WORKERS: 'auto', DATABASE_URL: 'postgres://localhost/forms' }).workers,
    ).toBeGreaterThan(0);
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
      'MAIL_FROM: expected an e-mail address',
      'RATE_LIMIT: expected on or off',
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
    ['TRUST_PROXY', 'true'],
    ['TRUST_PROXY', '10.0.0.0/33'],
    ['LOG_LEVEL', 'verbose'],
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

function problemsOf(env: Record<string, string>): string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
