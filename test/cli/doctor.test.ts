import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { judgeDisk } from '../../src/cli/admin/doctor/doctor.ts';
import { engines } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { startMailServer } from '../support/mail-server.ts';
import { spawnService } from '../support/spawn.ts';

describe.concurrent.each(engines)('admin doctor on %s', (engine) => {
  it('finds nothing wrong beside a service that runs, and ends with 0', async () => {
    await using installation = await givenInstallation(engine);
    await using mails = await startMailServer();
    const env = {
      ...installation.env,
      HOST: '127.0.0.1',
      BASE_URL: `http://127.0.0.1:${installation.env.PORT}`,
      SMTP_URL: mails.url,
    };
    await using service = spawnService(env);
    await service.started();

    const { code, output, errors } = await admin(['doctor'], env);

    const about = output.split('\n').map((line) => line.slice(0, 19).trim());
    expect(about.filter((line) => line !== '').map((line) => line.replace(/ +/, ' '))).toEqual([
      'ok settings',
      'ok disk',
      ...(engine === 'postgres'
        ? ['ok clock', 'ok database', 'ok database', 'ok database']
        : ['ok database']),
      'ok mail',
      'ok ports',
      'ok addresses',
    ]);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
  });
});

describe('admin doctor', () => {
  it('names all that is wrong, with what to do, and ends with 1', async () => {
    const other = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : 0;

    const { code, output, errors } = await admin(['doctor'], {
      SMPT_URL: 'x',
      DATA_DIR: join(import.meta.filename, 'data'),
      DATABASE_URL: 'postgres://user:hush-hush@127.0.0.1:1/none',
      SMTP_URL: 'smtp://127.0.0.1:1',
      TLS_CERT: import.meta.filename,
      TLS_KEY: import.meta.filename,
      OWNER_CONFIRMATION: 'off',
      HOST: '127.0.0.1',
      PORT: String(port),
      BASE_URL: `http://127.0.0.1:${port}`,
      HOSTED_URL: 'http://127.0.0.1:1',
    });
    other.close();

    expect({ code, errors }).toEqual({ code: 1, errors: '8 checks failed.\n' });
    expect(output).not.toContain('hush-hush');
    expect(output.trim().split('\n')).toEqual([
      expect.stringMatching(/^warning +settings +SMPT_URL is not a setting: did you mean SMTP_URL\?$/),
      expect.stringMatching(/^FAIL +settings +SECRET_KEY: needed with DATABASE_URL/),
      expect.stringMatching(/^warning +settings +OWNER_CONFIRMATION=off: anyone who can make a form/),
      expect.stringMatching(/^FAIL +settings +TLS_CERT: .* can't be used: /),
      expect.stringMatching(/^FAIL +disk .*Change its owner, or set DATA_DIR\.$/),
      expect.stringMatching(/^FAIL +database +The database at 127.0.0.1:1\/none can't be reached/),
      expect.stringMatching(/^FAIL +mail +SMTP_URL: .*Check host, port, user and password\.$/),
      expect.stringMatching(
        new RegExp(`^FAIL +ports +PORT: can't listen on .*:${port}: another program uses it`),
      ),
      expect.stringMatching(/^FAIL +addresses +BASE_URL .* leads elsewhere/),
      expect.stringMatching(/^FAIL +addresses +HOSTED_URL .*ECONNREFUSED/),
    ]);
  });

  it('says how much is free on the disk, and whether that is enough', () => {
    const judge = (freeMib: number) =>
      judgeDisk('/data', { freeBytes: freeMib * 1024 ** 2, floorBytes: 1024 ** 3 });

    expect([judge(1_000), judge(2_000), judge(2_048)]).toEqual([
      {
        level: 'FAIL',
        about: 'disk',
        text: '1000 MiB are free at /data, less than 1024 MiB: nothing new is stored. Make room.',
      },
      {
        level: 'warning',
        about: 'disk',
        text: '2000 MiB are free at /data: below 1024 MiB nothing is stored',
      },
      { level: 'ok', about: 'disk', text: '2048 MiB are free at /data' },
    ]);
  });

  it('names bad settings, and looks no further', async () => {
    expect(await admin(['doctor'], { PORT: 'http' })).toEqual({
      code: 1,
      output: 'FAIL     settings   PORT: expected a whole number from 0 to 65535\n',
      errors: '1 check failed.\n',
    });
  });
});
