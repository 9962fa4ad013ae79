import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebhookEvent } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { removeFiles, removeOld } from '../../../src/delivery/sweeps/sweeps.ts';
import { newId } from '../../../src/domain/ids.ts';
import { createAdmin } from '../../../src/services/admin/admin.ts';
import { localUploadStore } from '../../../src/services/uploads/upload-store.ts';
import { fanOutEvents } from '../../../src/store/deliveries/enqueue-mails.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { startDelivery } from '../../support/delivery.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startServices, type TestServices } from '../../support/services.ts';
import { until } from '../../support/until.ts';

describe.each(engines)('what is left of answers on %s', (engine) => {
  let services: TestServices;

  beforeAll(async () => {
    services = await startServices(engine, { settings: { allowPrivateWebhooks: true } });
  });
  afterAll(() => services[Symbol.asyncDispose]());

  it('is nothing after their submissions were deleted', async () => {
    await using given = await givenAnswers();

    for (const submissionId of given.submissionIds) {
      await services.submissions.deleteSubmission({ submissionId }, given.caller);
    }

    expect(await given.traces()).toEqual([]);
    await given.expectTold();
  });

  it('is nothing after the person was erased', async () => {
    await using given = await givenAnswers();

    await services.submissions.eraseSubmissions({ value: given.email }, given.caller);

    expect(await given.traces()).toEqual([]);
    await given.expectTold();
  });

  it('is nothing after their form was deleted', async () => {
    await using given = await givenAnswers();

    await services.forms.archiveForm({ formId: given.formId }, given.caller);
    await services.forms.deleteForm({ formId: given.formId }, given.caller);

    expect(await given.traces()).toEqual([]);
    await given.expectTold();
    expect(await given.webhookIds()).toEqual([given.wide]);
    await given.sweep();
    expect(await tablesWith(given.bound)).toEqual(['audit_entries']);
  });

  it('is nothing after their project was erased', async () => {
    await using given = await givenAnswers();

    const removed: number[] = [];
    for await (const step of admin().eraseProject({ project: given.project })) removed.push(step.removed);

    expect(removed).toEqual([3]);
    expect(await given.traces()).toEqual([]);
    await given.expectTold();
    await given.sweep();
    for (const id of [given.bound, given.wide]) expect(await tablesWith(id)).toEqual(['audit_entries']);
    expect(await tablesWith(given.projectId)).toEqual(['audit_entries', 'events', 'projects']);
  });

  // The embedded database has one session: nothing happens there meanwhile.
  if (engine === 'postgres') {
    it('is no mail that was being made while the submission was deleted', async () => {
      const { database, submissions, owner } = services;
      const formId = await services.givenFormOf();
      const answers = { email: 'ada@example.com' };
      const { submissionId } = await submissions.createSubmission({ formId, answers });
      const [event] = await database.select('select id, project_id from events where submission_id = $1', [
        submissionId,
      ]);
      const mail = {
        ...waitingMail,
        eventId: String(event?.id),
        projectId: String(event?.project_id),
        formId,
      };

      const deleted = await database.transaction(async (tx) => {
        await fanOutEvents(tx, [mail.eventId], [mail]);
        const deletion = submissions.deleteSubmission({ submissionId }, owner);
        const isWaiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        await until(async () => (await database.select(isWaiting)).length > 0);
        return { deletion };
      });
      await deleted.deletion;

      expect(await countOf('delivery_queue', formId, "kind = 'owner'")).toBe(0);
    });
  }

  /**
   * A form of a project of its own, with three submissions and a session in all of whose texts there is a marker; one
   * submission was delivered, as far as the receiver took it, and another waits for a mail server.
   */
  async function givenAnswers() {
    const { forms, sessions, submissions, uploads, webhooks, database, folder } = services;
    await using opened = new AsyncDisposableStack();
    // The one that answers with what it was sent is a receiver whose answers are in the log.
    const receiver = opened.use(
      await startReceiver(({ body }, response) =>
        body.includes('submission.deleted')
          ? void response.writeHead(204).end()
          : void response.writeHead(500).end(body.slice(body.indexOf('"answers"'))),
      ),
    );
    const marker = `marker${crypto.randomUUID().replaceAll('-', '')}`;
    const email = `${marker}@example.com`;
    const project = `p-${crypto.randomUUID().slice(0, 8)}`;
    const caller = await services.givenCaller(['*'], project);
    const definition = definitionOf(fields, { allowPartial: true }, delivered);
    const { form, activationToken: token } = await forms.createForm({ definition }, caller);
    const formId = form?.id ?? '';
    await forms.activateForm({ formId, activationToken: token, email: `${project}@example.com` });
    const events = [WebhookEvent.SUBMISSION_CREATED, WebhookEvent.SUBMISSION_DELETED];
    const hook = { url: receiver.url, events };
    const bound = (await webhooks.createWebhook({ ...hook, formId }, caller)).webhook?.id ?? '';
    const wide = (await webhooks.createWebhook(hook, caller)).webhook?.id ?? '';

    const answers = { email, text: marker };
    const target = { case: 'formId', value: formId } as const;
    const content = new TextEncoder().encode(`The file of ${marker}`);
    const file = { target, fieldId: 'cv', filename: `${marker}.txt`, content };
    const uploadId = (await uploads.createUpload(file, caller)).upload?.id ?? '';
    const metadata = { who: email };
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: answers, metadata },
      caller,
    );
    const sessionId = session?.id ?? '';
    await sessions.updateSession({ sessionId, answers }, caller);
    const cv = { upload_id: uploadId };
    const completed = await sessions.submitSession({ sessionId, answers: { cv } }, caller);
    const first = await submissions.createSubmission({ formId, answers, idempotencyKey: marker });
    const delivering = { secrets: services.secrets, secretKey: services.secretKey };
    const settings = { schedule: [0, 3600] };
    {
      await using _ = startDelivery(database, { ...delivering, settings });
      await until(async () => (await countOf('deliveries', formId, ofAnswers)) === 3);
      await until(async () => (await countOf('delivery_queue', formId, 'attempt_count = 1')) === 4);
    }
    const second = await submissions.createSubmission({ formId, answers });
    {
      const away = { ...settings, smtpUrl: 'smtp://127.0.0.1:1' };
      await using _ = startDelivery(database, { ...delivering, settings: away });
      await until(async () => (await countOf('delivery_queue', formId, 'attempt_count = 1')) === 7);
    }
    const traces = async () => {
      const removeUpload = (id: string) => localUploadStore(folder).remove(id);
      await removeFiles({ database, log: console, removeUpload });
      return [...(await tablesWith(marker)), ...(await filesWith(folder, marker))];
    };
    expect(await traces()).toEqual([...answerTables, expect.stringMatching(/upl_/)]);

    const submissionIds = [completed.submission?.id ?? '', first.submissionId, second.submissionId];
    const [row] = await database.select('select project_id from forms where id = $1', [formId]);
    const delivery = () => startDelivery(database, { ...delivering, settings: { schedule: [0] } });
    const owned = opened.move();
    return {
      caller,
      email,
      project,
      formId,
      bound,
      wide,
      submissionIds,
      traces,
      projectId: String(row?.project_id),
      webhookIds: async () => (await services.webhooks.listWebhooks({}, caller)).webhooks.map(({ id }) => id),
      /** Both webhooks get each `submission.deleted`, after what it is about has gone, and nothing else. */
      async expectTold() {
        const before = receiver.received.length;
        await using _ = delivery();
        await receiver.expectRequests(before + 6);
        await until(async () => (await countOf('delivery_queue', formId)) === 0);
        const told = receiver.received.slice(before).map(({ body }) => JSON.parse(body));
        const wanted = submissionIds.flatMap((submissionId, n) => {
          const data = { submissionId, formId, sessionId: n === 0 ? sessionId : null };
          const one = { id: expect.any(String), event: 'submission.deleted', data };
          return Array(2).fill({ ...one, createdAt: expect.any(String) });
        });
        expect(told).toHaveLength(wanted.length);
        expect(told).toEqual(expect.arrayContaining(wanted));
        expect(await traces()).toEqual([]);
      },
      /** Removes what is due a minute after a deletion. */
      async sweep() {
        await using running = delivery();
        await running.stop(1_000);
        await database.execute(
          `update forms set deleted_at = deleted_at - interval '2 minutes' where id = $1`,
          [formId],
        );
        for (let n = 0; n < 4; n += 1) await removeOld(running.options);
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  const admin = () =>
    createAdmin({
      database: services.database,
      auditWriter: services.auditWriter,
      user: 'tester',
      schedule: [0],
      now: Date.now,
      onChange: () => undefined,
    });

  async function countOf(table: string, formId: string, condition = 'true'): Promise<number> {
    const counting = `select count(*) as count from ${table} where form_id = $1 and ${condition}`;
    return Number((await services.database.select(counting, [formId]))[0]?.count);
  }

  /** The tables that have a row in any column of which there is a text. */
  async function tablesWith(marker: string): Promise<string[]> {
    const tables = await services.database.select(
      `select table_name as name from information_schema.tables where table_schema = 'public' order by name`,
    );
    const found: string[] = [];
    for (const { name } of tables) {
      const holding = `select 1 from ${String(name)} t where t::text ilike '%' || $1 || '%' limit 1`;
      if ((await services.database.select(holding, [marker])).length > 0) found.push(String(name));
    }
    return found;
  }
});

/** The files under a folder with a text in their names or in them. */
async function filesWith(folder: string, marker: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found = await Promise.all(
    paths.map(async (path) => path.includes(marker) || (await readFile(path)).includes(marker)),
  );
  return paths.filter((_, n) => found[n]);
}

const fields = [
  { id: 'email', type: 'email' },
  { id: 'text', type: 'text' },
  { id: 'cv', type: 'file' },
];

const waitingMail = {
  id: newId('dlv', Date.now()),
  keyless: false,
  kind: 'owner',
  receiver: 'owner@example.com',
  mail: {},
  delaySeconds: 0,
};

const delivered = { type: 'email', autoresponse: { to: 'email', subject: 'Thanks', message: 'We read it.' } };

const ofAnswers = "kind in ('owner', 'autoresponse')";

/** Where answers are while everything is under way: not in the queue, since mails are written when they are sent. */
const answerTables = [
  'attempts',
  'autoresponses',
  'deliveries',
  'events',
  'sessions',
  'submissions',
  'uploads',
];
