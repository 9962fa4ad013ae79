import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { givenForm, harmDone, startAttackedService } from './attacked-service.ts';

const names = (
  process.env.NAMES ??
  'none,messageBombs,grpcBombs,unendedStreams,largeJson,patterns,slowHeaders,slowBodies,uploadsToNothing,uploads,keylessForms,mails,wrongKeys,spam'
).split(',');
it('x', { timeout: 600_000 }, async () => {
  await using silent = await startReceiver(() => {});
  for (const name of names) {
    await using service = await startAttackedService((process.env.ENGINE ?? 'pglite') as 'pglite', {
      WEBHOOK_ALLOW_PRIVATE: 'true',
    });
    const uploadForm = await givenForm(service, { fields: [{ id: 'cv', type: 'file' }] });
    const targets = {
      url: service.url,
      grpcUrl: service.grpcUrl,
      formId: service.formId,
      uploadForm,
      silentUrl: silent.url,
    };
    const ticks = () => {
      const f = readFileSync(`/proc/${service.process.child.pid}/stat`, 'utf8').split(' ');
      return Number(f[13]) + Number(f[14]);
    };
    const before = ticks();
    const harm = await harmDone(service, async () => {
      const child = spawn(
        'nice',
        [
          '-n',
          '5',
          process.execPath,
          join(import.meta.dirname, 'attackers-process.ts'),
          JSON.stringify(targets),
        ],
        { env: { ...process.env, ONLY: name }, stdio: 'ignore' },
      );
      await sleep(6000);
      child.kill('SIGKILL');
    });
    appendFileSync(
      '/tmp/harm.out',
      `${process.env.ENGINE ?? 'pglite'} ${name} ${JSON.stringify(harm)} cpu ${(ticks() - before) / 100}s\n`,
    );
  }
});
