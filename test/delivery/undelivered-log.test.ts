import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type Outcome, refused } from '../../src/delivery/outcome.ts';
import { type AttemptOptions, createAttempts } from '../../src/delivery/worker/attempt.ts';
import type { Claim } from '../../src/store/deliveries/claimed.ts';
import { openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';

describe('an attempt that was not delivered', () => {
  it('leaves one line in the log, which says what it was about, why, and when it is tried again', async () => {
    await using database = await openTestDatabase('pglite');
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: 'http://127.0.0.1:1/secret' });
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    const { log, lines } = logOfLines();
    await using _ = startDelivery(database, { log, settings: { schedule: [0, 0.05] } });

    const [failed] = await expectFinished(database, form, 1);

    const about = {
      delivery: failed?.delivery.id,
      kind: 'submission.created',
      form: form.id,
      webhook: webhook.id,
    };
    const why = { reason: 'The connection was refused.', code: 'ECONNREFUSED' };
    const msg = 'A webhook could not be delivered: The connection was refused.';
    expect(lines()).toMatchObject([
      { ...about, ...why, step: 0, outcome: 'retried', nextInMs: expect.any(Number), msg },
      { ...about, ...why, step: 1, outcome: 'failed', msg },
    ]);
    expect(JSON.stringify(lines())).not.toContain('/secret');
  });

  it('is in the log when a mail is dropped', async () => {
    const { log, lines } = logOfLines();
    const attempt = attemptsOf({ log }, { stage: 'before sending', cause: 'mail_stopped' });

    await attempt(aMail('dlv_1'));

    expect(lines()).toMatchObject([
      {
        delivery: 'dlv_1',
        kind: 'owner',
        outcome: 'dropped',
        reason: 'The address has stopped these emails.',
      },
    ]);
    expect(JSON.stringify(lines())).not.toContain('@');
  });

  it('is counted where a hundred like it are logged, and hides none of another kind', async () => {
    const { log, lines } = logOfLines();
    let now = 0;
    const waiting: Outcome = { stage: 'before sending', cause: 'questions_used_up', waitMs: 1 };
    const results: Outcome[] = [
      ...Array<Outcome>(150).fill(waiting),
      { stage: 'answered', next: 'retry', error: 'Refused.', responseStatus: 550 },
      waiting,
    ];
    const attempt = attemptsOf({ log, now: () => now }, ...results);

    for (let n = 1; n < results.length; n += 1) await attempt(aMail(`dlv_${n}`));
    now += 60_000;
    await attempt(aMail('dlv_later'));

    const outcomes = lines().map(({ outcome }) => outcome);
    expect(outcomes).toEqual([...Array(100).fill('postponed'), 'retried', 'postponed']);
    expect(lines().at(-1)).toMatchObject({ delivery: 'dlv_later', leftOut: 50 });
  });
});

function logOfLines() {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => lines.push(line) });
  return { log, lines: () => lines.map((line) => JSON.parse(line)) };
}

/** Attempts of mails that end so, one after the other. */
function attemptsOf(given: Partial<AttemptOptions>, ...outcomes: Outcome[]) {
  const send = async () => outcomes.shift() ?? refused('event_gone');
  const settings = { schedule: [0, 1] } as unknown as AttemptOptions['settings'];
  const attempt = createAttempts({
    settings,
    now: () => 0,
    random: () => 0,
    log: pino({ level: 'silent' }),
    webhooks: { send },
    mails: { send },
    ...given,
  });
  return (claim: Claim) => attempt(claim, new AbortController().signal);
}

function aMail(id: string): Claim {
  return {
    id,
    lease: 'lease',
    projectId: 'prj_1',
    tenant: 'prj_1',
    formId: 'form_1',
    kind: 'owner',
    receiver: 'ada@example.com',
    step: 0,
    postponedFrom: null,
    traceparent: null,
    content: { channel: 'mail', mail: { to: 'ada@example.com' }, eventId: null },
  };
}
