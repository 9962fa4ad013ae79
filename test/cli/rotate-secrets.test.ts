import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newApiKey } from '../../src/domain/secrets/new-secrets.ts';
import { engines } from '../support/database.ts';
import { admin, givenInstallation } from '../support/installation.ts';
import { startReceiver } from '../support/receiver.ts';
import { contactForm } from '../support/server.ts';
import { spawnService } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { verifySignature } from '../support/verify-signature.ts';

const bootstrapKey = newApiKey();
const authorized = { authorization: `Bearer ${bootstrapKey}`, 'content-type': 'application/json' };

it.each(engines)('admin rotate-secrets takes back what the former key gave, on %s', async (engine) => {
  await using installation = await givenInstallation(engine);
  await using receiver = await startReceiver();
  const env: Record<string, string> = {
    ...installation.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
    WEBHOOK_ALLOW_PRIVATE: 'true',
  };
  const url = `http://127.0.0.1:${env.PORT}`;
  const post = async (path: string, body: object) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: authorized,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as object;
  };
  const keyFile = join(env.DATA_DIR ?? '', 'secret.key');
  await using service = spawnService(env);
  await service.started();
  const { webhook, secret } = (await post('/v1/webhooks', {
    url: `${receiver.url}/hook`,
    events: ['submission.created'],
  })) as { webhook?: { id: string }; secret: string };
  const id = webhook?.id ?? '';
  // A link to confirm is mailed.
  const { form } = (await post('/api/forms/create', contactForm)) as { form?: { activate_url: string } };
  const { pathname, search } = new URL(form?.activate_url ?? '', url);
  await post(`${pathname}${search}`, { email: 'ada@example.com' });
  // The link is stored when its email is sent: without a mail server, written into a folder.
  const mails = join(env.DATA_DIR ?? '', 'mail');
  await until(() => existsSync(mails) && readdirSync(mails).some((name) => name.endsWith('.eml')));

  const early = await admin(['rotate-secrets', '--yes'], env);
  expect(early).toMatchObject({ code: 1, errors: expect.stringMatching(/^Stop every instance/) });
  await service.stop();
  const unconfirmed = await admin(['rotate-secrets'], env);
  expect(unconfirmed).toMatchObject({ code: 1, errors: expect.stringMatching(/Then give --yes/) });
  const former = engine === 'pglite' ? readFileSync(keyFile, 'utf8').trim() : (env.SECRET_KEY ?? '');
  const done = await admin(['rotate-secrets', '--yes'], env);

  expect(done.code).toBe(0);
  expect(done.errors).toMatch(/^Encrypted the secrets of 1 rows with a new key\.$/m);
  expect(done.errors).toMatch(/^Voided 1 emailed links, and ended 0 sessions of owners\.$/m);
  expect(done.errors).toContain(id);
  const next = engine === 'pglite' ? readFileSync(keyFile, 'utf8').trim() : done.output.trim();
  expect(next).toMatch(/^[0-9a-f]{64}$/);
  expect(next).not.toBe(former);
  const withFormer = spawnService({ ...env, SECRET_KEY: former });
  expect((await withFormer.ended).errors).toMatch(/SECRET_KEY: not the key of this database's secrets/);

  await using again = spawnService(engine === 'pglite' ? env : { ...env, SECRET_KEY: next });
  await again.started();
  await post(`/v1/webhooks/${id}/test`, {});
  const [hit] = await receiver.expectRequests(1);
  const header = String(hit?.headers['x-service-signature']);
  expect(verifySignature({ header, body: hit?.body ?? '', secret, now: Date.now() })).toBe(true);
});

it('admin rotate-secrets finishes what was interrupted, and a backup can leave the key out', async () => {
  await using installation = await givenInstallation('pglite');
  const { env } = installation;
  const keyFile = join(env.DATA_DIR ?? '', 'secret.key');
  const service = spawnService(env);
  await service.started();
  await service.stop();
  const former = readFileSync(keyFile, 'utf8');
  await admin(['rotate-secrets', '--yes'], env);
  // As if it had ended before it put the key into its place.
  renameSync(keyFile, `${keyFile}.next`);
  writeFileSync(keyFile, former);

  const finished = await admin(['rotate-secrets', '--yes'], env);
  const archive = join(env.DATA_DIR ?? '', '..', 'forms.tar.gz');
  const backup = await admin(['backup', '--without-secrets', archive], env);

  expect(finished).toMatchObject({
    code: 0,
    errors: expect.stringMatching(/Finished the interrupted change/),
  });
  expect([existsSync(`${keyFile}.next`), readFileSync(keyFile, 'utf8') === former]).toEqual([false, false]);
  expect(backup.errors).toMatch(/It does not hold the secret key/);
  const listed = spawnSync('tar', ['-tzf', archive], { encoding: 'utf8' }).stdout;
  expect(listed).toContain('database/');
  expect(listed).not.toContain('secret.key');
});
