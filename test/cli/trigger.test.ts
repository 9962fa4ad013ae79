import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { emittedEvents } from '../../src/domain/events/index.ts';
import { sampleEvent, sampleNames } from '../../src/domain/events/samples.ts';
import { checkEvent } from '../support/openapi.ts';
import { program } from '../support/programs.ts';
import { startReceiver } from '../support/receiver.ts';
import { verifySignature } from '../support/verify-signature.ts';

const root = join(import.meta.dirname, '../..');

async function trigger(...args: string[]) {
  const command = [...program('cli'), 'trigger', ...args];
  const run = promisify(execFile)(process.execPath, command, { cwd: root });
  return run.then(
    ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

describe('trigger', () => {
  it('has a sample of every event that is sent, as the API description promises it', () => {
    expect(sampleNames).toEqual(
      expect.arrayContaining([...emittedEvents, 'session.ended', 'session.notified']),
    );
    for (const name of sampleNames) {
      const event = sampleEvent(name, Date.now());
      checkEvent(event?.body ?? '');
      expect(JSON.parse(event?.body ?? '')).toMatchObject({ id: event?.id, event: name });
    }
    expect(sampleEvent('form.activated', 0)).toBeUndefined();
    expect(sampleEvent('constructor', 0)).toBeUndefined();
  });

  it('posts one, signed as a webhook’s', async () => {
    await using receiver = await startReceiver();

    const { code, stdout } = await trigger(
      'session.expired',
      '--forward',
      receiver.url,
      '--secret',
      'my own',
    );

    const [request, ...others] = receiver.received;
    const { headers = {}, body = '' } = request ?? {};
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Signing with my own\nsession\.expired {2}evt_\w+ {2}204 in \d+ ms\n$/);
    expect(JSON.parse(body).event).toBe('session.expired');
    const header = String(headers['x-service-signature']);
    expect(verifySignature({ header, body, secret: 'my own', now: Date.now() })).toBe(true);
    expect(others).toEqual([]);
  });

  it('fails if the receiver refuses it, and for what is no event', async () => {
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());

    const refused = await trigger('submission.created', '--forward', receiver.url);
    const misspelt = await trigger('submission.create', '--forward', receiver.url);
    const nowhere = await trigger('submission.created');

    expect([refused.code, misspelt.code, nowhere.code]).toEqual([1, 2, 2]);
    expect(refused.stderr).toContain('500 in');
    expect(misspelt.stderr).toContain('Did you mean submission.created?');
    expect(nowhere.stderr).toContain('--forward is missing');
    expect(receiver.received).toHaveLength(1);
  });
});
