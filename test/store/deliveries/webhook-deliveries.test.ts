import { describe, expect, it } from 'vitest';
import { sentBody } from '../../../src/domain/events/bodies.ts';
import type { Database } from '../../../src/store/database/database.ts';
import { claimDue } from '../../../src/store/deliveries/claim.ts';
import type { Claim } from '../../../src/store/deliveries/claimed.ts';
import { findDueWork, releaseAbandoned } from '../../../src/store/deliveries/due.ts';
import type { Capacity } from '../../../src/store/deliveries/fairness.ts';
import { listDeliveries } from '../../../src/store/deliveries/log.ts';
import { settleDeliveries } from '../../../src/store/deliveries/settle.ts';
import { type Commit, createSubmissionWriter } from '../../../src/store/submissions/submission-writer.ts';
import { engines, openTestDatabase } from '../../support/database.ts';
import { endLeases } from '../../support/delivery.ts';
import { aSubmission, givenForm, givenWebhook } from '../given.ts';

const capacity: Capacity = {
  delaySeconds: 0,
  totalSeconds: 100_000,
  total: 100,
  bytes: 1e9,
  perReceiver: 4,
  perTenant: 100,
  perTenantUnknown: 100,
  mails: 100,
  receivers: [],
  tenants: [],
};

describe.each(engines)('deliveries stored with submissions on %s', (engine) => {
  it('go to the active webhooks of the form and of its project that listen, leased to the process', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    const own = await givenWebhook(database, { formId: form.id, keyless: true });
    const wide = await givenWebhook(database, { url: 'https://example.com/wide' });
    await givenWebhook(database, { active: false });
    await givenWebhook(database, { deletedAt: new Date() });
    await givenWebhook(database, { events: ['session.expired'] });
    await givenWebhook(database, { formId: 'form_other' });
    await givenWebhook(database, { projectId: 'prj_other' });

    const row = aSubmission({ formId: form.id });
    const { claims, deliveriesWait, eventsWait } = await store(database, [row], capacity);

    const body = `${row.event?.body?.start}${JSON.stringify(row.answers)}${row.event?.body?.end}`;
    const [event] = await database.select('select body from events');
    expect(event?.body).toBe(body);
    const claimed = Object.fromEntries(claims.map((claim) => [claim.receiver, claim]));
    expect(Object.keys(claimed).sort()).toEqual([own.id, wide.id].sort());
    expect(claimed[own.id]).toMatchObject({ kind: 'submission.created', step: 0 });
    expect(claimed[wide.id]).toMatchObject({
      content: {
        url: 'https://example.com/wide',
        eventId: row.event?.id,
        body: sentBody(body),
        webhook: { secret: 'sealed-1' },
      },
    });
    expect([deliveriesWait, eventsWait]).toEqual([false, true]);
  });

  it('count apart, also to one webhook, what comes to forms made without a key', async () => {
    await using database = await openTestDatabase(engine);
    const strangers = await givenForm(database, { createdBy: 'public' });
    const keyed = await givenForm(database, { createdBy: 'key_1' });
    const webhook = await givenWebhook(database);
    const forms = [strangers.id, keyed.id, strangers.id];
    const busy = { tenant: 'prj_one keyless', receiver: webhook.id, free: 0 };

    const rows = () => forms.map((formId) => aSubmission({ formId }));
    const { claims } = await store(database, rows(), capacity);
    const whileBusy = await store(database, rows(), { ...capacity, receivers: [busy] });

    const tenantsOf = (id: string) =>
      claims.filter(({ formId }) => formId === id).map(({ tenant }) => tenant);
    expect(tenantsOf(strangers.id)).toEqual(['prj_one keyless', 'prj_one keyless']);
    expect(tenantsOf(keyed.id)).toEqual(['prj_one']);
    expect(whileBusy.claims.map(({ formId }) => formId)).toEqual([keyed.id]);
    expect(whileBusy.deliveriesWait).toBe(true);
  });

  it('are listed at once, found by nobody else, and logged when they are settled', async () => {
    await using database = await openTestDatabase(engine);
    const webhook = await givenWebhook(database);
    const { claims } = await store(database, [aSubmission()], capacity);
    const list = () => listDeliveries(database, { webhookId: webhook.id }, { limit: 10 });

    const pending = await list();
    const others = await claimAll(database);
    await settleDeliveries(database, claims.map(success));
    const delivered = await list();

    const [claim] = claims;
    expect(pending.items).toMatchObject([{ delivery: { id: claim?.id, status: 'pending' }, attempts: [] }]);
    expect(others).toEqual([]);
    expect(delivered.items).toMatchObject([
      {
        delivery: { id: claim?.id, status: 'delivered', attemptCount: 1, responseStatus: 204 },
        attempts: [{ id: 'att_1', number: 1, status: 'delivered', responseBody: 'thanks', durationMs: 3 }],
      },
    ]);
    expect(await database.select('select id from delivery_queue union all select id from attempts')).toEqual(
      [],
    );
  });

  it('beyond the capacity of the process are due, for whoever claims them', async () => {
    await using database = await openTestDatabase(engine);
    const [known, unknown] = [await givenWebhook(database), await givenWebhook(database)];
    const rows = Array.from({ length: 6 }, () => aSubmission());

    const { claims, deliveriesWait } = await store(database, rows, {
      ...capacity,
      receivers: [{ tenant: 'prj_one', receiver: known.id, free: 1 }],
    });
    const due = await claimAll(database);

    const counts = (of: Claim[]) =>
      [known, unknown].map(({ id }) => of.filter((c) => c.receiver === id).length);
    expect(counts(claims)).toEqual([1, 4]);
    expect(counts(due)).toEqual([5, 2]);
    expect(deliveriesWait).toBe(true);
  });

  it('beyond the capacity of a tenant are due, and leave those of others free', async () => {
    await using database = await openTestDatabase(engine);
    await givenWebhook(database);
    const other = await givenWebhook(database, { projectId: 'prj_two' });
    const rows = ['prj_one', 'prj_one', 'prj_one', 'prj_two'].map((projectId) => aSubmission({ projectId }));

    const { claims } = await store(database, rows, {
      ...capacity,
      tenants: [{ tenant: 'prj_one', free: 0, unknown: 0, mails: 0 }],
    });

    expect(claims.map(({ receiver }) => receiver)).toEqual([other.id]);
  });

  it('are due at the end of the lease when their process died', async () => {
    await using database = await openTestDatabase(engine);
    await givenWebhook(database);
    const { claims } = await store(database, [aSubmission()], capacity);
    const since = { event: '', due: new Date(0), lease: new Date(0) };

    const before = await findDueWork(database, since);
    await endLeases(database);
    const after = await findDueWork(database, since);
    const released = await releaseAbandoned(database, 10);
    const due = await claimAll(database);
    const lost = await settleDeliveries(database, claims.map(success));
    const [row] = await database.select('select count(*)::int as logged from deliveries');

    expect([before.abandoned, after.abandoned, released]).toEqual([false, true, 1]);
    expect(due.map(({ id }) => id)).toEqual(claims.map(({ id }) => id));
    expect(lost).toEqual([]);
    expect(row).toEqual({ logged: 0 });
  });

  it('make mails unnecessary where the current version causes none, and only there', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, { currentVersionId: 'ver_now' });
    const submission = (skipMailsForVersion: string) => {
      const row = aSubmission({ formId: form.id });
      return { ...row, event: row.event && { ...row.event, skipMailsForVersion } };
    };

    const current = await store(database, [submission('ver_now')], capacity);
    const outdated = await store(database, [submission('ver_old')], capacity);

    expect([current.eventsWait, outdated.eventsWait]).toEqual([false, true]);
  });
});

async function store(database: Database, rows: Parameters<Writer['write']>[0][], free: Capacity) {
  const commits: Commit[] = [];
  const writer = createSubmissionWriter(database, {
    capacity: () => free,
    onCommitted: (commit) => commits.push(commit),
  });
  await Promise.all(rows.map((row) => writer.write(row)));
  const [commit, ...others] = commits;
  if (commit === undefined || others.length > 0) throw new Error(`${commits.length} commits`);
  return commit;
}

async function claimAll(database: Database): Promise<Claim[]> {
  const all = { ...capacity, bytes: 1e9, perReceiver: 100 };
  const { claims } = await claimDue(database, { since: new Date(0), capacity: all, limit: 100, page: 100 });
  return claims;
}

function success({ id, lease }: Claim) {
  const attempt = { startedAt: new Date(), durationMs: 3, responseStatus: 204, responseBody: 'thanks' };
  return { id, lease, status: 'delivered' as const, attempt: { id: 'att_1', ...attempt } };
}

type Writer = ReturnType<typeof createSubmissionWriter>;
