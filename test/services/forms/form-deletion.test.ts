import { createClient } from '@connectrpc/connect';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { WebhookEvent, WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { removeFiles, removeOld, type SweepOptions } from '../../../src/delivery/sweeps/sweeps.ts';
import { demoFormId } from '../../../src/domain/ids.ts';
import { localUploadStore } from '../../../src/services/uploads/upload-store.ts';
import { engines } from '../../support/database.ts';
import { failureOf } from '../../support/failures.ts';
import { fileOf } from '../../support/files.ts';
import { startServices, type TestServices } from '../../support/services.ts';

describe.each(engines)('DeleteForm on %s', (engine) => {
  let services: TestServices;

  beforeAll(async () => {
    services = await startServices(engine);
  });
  afterAll(() => services[Symbol.asyncDispose]());

  const forms = (key?: string) => createClient(FormsService, services.as(key));
  const webhooks = () => createClient(WebhooksService, services.as(services.key));

  /** A form with something of everything that a form can have. */
  async function givenFullForm() {
    const fields = [
      { id: 'email', type: FormFieldType.EMAIL },
      { id: 'cv', type: FormFieldType.FILE },
    ];
    const { id: formId } = await services.givenForm(services.key, { fields });
    const upload = async () => {
      const target = { case: 'formId', value: formId } as const;
      const content = new TextEncoder().encode('hello');
      const file = { target, fieldId: 'cv', filename: 'cv.txt', content };
      return (await services.uploads.createUpload(file)).upload?.id ?? '';
    };
    const [claimed, unclaimed] = [await upload(), await upload()];
    const answers = { email: 'ann@example.com', cv: { upload_id: claimed } };
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const { webhook } = await webhooks().createWebhook({
      formId,
      url: 'https://example.com/hook',
      events: [WebhookEvent.SUBMISSION_CREATED],
    });
    await webhooks().testWebhook({ webhookId: webhook?.id ?? '' });
    return {
      formId,
      submissionId,
      sessionId: session?.id ?? '',
      webhookId: webhook?.id ?? '',
      uploadIds: [claimed, unclaimed],
    };
  }

  it('removes an archived form with everything of it, and nothing of another', async () => {
    const { formId, submissionId, sessionId, webhookId, uploadIds } = await givenFullForm();
    const other = await givenFullForm();
    await forms(services.key).archiveForm({ formId });

    await forms(services.key).deleteForm({ formId });

    const { owner } = services;
    const [claimed = ''] = uploadIds;
    const calls = [
      forms(services.key).getForm({ formId }),
      forms(services.key).listFormVersions({ formId }),
      services.submissions.getSubmission({ submissionId }, owner),
      services.submissions.listSubmissions({ formId }, owner),
      services.sessions.getSession({ sessionId }, owner),
      services.hosted.getHosted({ sessionId }),
      fileOf(services.uploads.getUpload({ uploadId: claimed }, owner)),
      webhooks().getWebhook({ webhookId }),
      webhooks().listFormDeliveries({ formId }),
      services.submissions.createSubmission({ formId, answers: { email: 'ann@example.com' } }),
    ];
    for (const { reason } of await Promise.all(calls.map(failureOf))) expect(reason).toBe('NOT_FOUND');
    const listed = await forms(services.key).listForms({ pageSize: 100 });
    expect(listed.forms.map(({ id }) => id)).not.toContain(formId);

    await letAMinutePass(formId);
    await removeOld(sweepOptions());
    const removeUpload = (id: string) => localUploadStore(services.folder).remove(id);
    await removeFiles({ ...sweepOptions(), removeUpload });

    expect(await tablesNaming(formId)).toEqual([]);
    const stored = localUploadStore(services.folder);
    for (const id of uploadIds) expect(await stored.get(id)).toBeUndefined();
    expect(await stored.get(other.uploadIds[0] ?? '')).toBeDefined();
    expect(await tablesNaming(other.formId)).toEqual(
      expect.arrayContaining(['events', 'forms', 'sessions', 'submissions', 'uploads', 'webhooks']),
    );
  });

  it('leaves a large form to the sweep, which removes it in groups', async () => {
    const { id: formId, versionId } = await services.givenForm(services.key);
    await services.database.execute(
      `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select 'sub_' || lpad(n::text, 26, '0'), (select project_id from forms where id = $1), $1, $2, 'api', '{}', '{}', 'accepted', now()
       from generate_series(1, 450) n`,
      [formId, versionId],
    );
    await services.database.execute(
      `update forms set status = 'archived', deleted_at = now() - interval '2 minutes' where id = $1`,
      [formId],
    );

    let rounds = 1;
    while (await removeOld(sweepOptions())) rounds += 1;

    expect(rounds).toBeGreaterThan(4);
    expect(await tablesNaming(formId)).toEqual([]);
  });

  it('keeps the row of a form that was deleted just now, so that what comes late is found', async () => {
    const { id: formId } = await services.givenForm(services.key);
    await forms(services.key).archiveForm({ formId });
    await forms(services.key).deleteForm({ formId });

    await removeOld(sweepOptions());

    expect(await tablesNaming(formId)).toEqual(['forms']);
  });

  // The embedded database has one session, so that nobody can hold a lock there meanwhile.
  const lockable = ['submissions', 'sessions', 'webhooks', 'form_versions'];
  if (engine === 'postgres') {
    it.each(lockable)(
      'keeps the row of a form while another transaction holds one of its %s',
      async (table) => {
        const { formId } = await givenFullForm();
        await forms(services.key).archiveForm({ formId });
        await services.database.execute(
          `update forms set deleted_at = now() - interval '2 minutes' where id = $1`,
          [formId],
        );

        await services.database.transaction(async (tx) => {
          await tx.execute(`select 1 from ${table} where form_id = $1 for update`, [formId]);
          await removeOld(sweepOptions());
          expect(await tablesNaming(formId)).toEqual(expect.arrayContaining(['forms', table]));
        });
        await removeOld(sweepOptions());

        expect(await tablesNaming(formId)).toEqual([]);
      },
    );
  }

  it('refuses drafts, published forms and the demo form, and removes nothing', async () => {
    const draft = await services.givenDraft(services.key);
    const published = await services.givenForm(services.key);

    for (const { id: formId } of [draft, published]) {
      expect(await failureOf(forms(services.key).deleteForm({ formId }))).toMatchObject({
        reason: 'CONFLICT',
      });
      expect((await forms(services.key).getForm({ formId })).form?.id).toBe(formId);
    }
    const { secret } = await services.keys.createKey(
      { name: 'demo', scopes: ['*'], project: 'demo' },
      services.owner,
    );
    expect(await failureOf(forms(secret).deleteForm({ formId: demoFormId }))).toMatchObject({
      reason: 'CONFLICT',
    });
  });

  it('refuses strangers, other projects and keys that may not delete; a second call finds nothing', async () => {
    const { id: formId } = await services.givenForm(services.key);
    await forms(services.key).archiveForm({ formId });
    const stranger = await services.givenKey();
    const writer = await services.givenKey({ scopes: ['forms:write'], project: 'default' });
    const deleted = (key?: string) => failureOf(forms(key).deleteForm({ formId }));

    expect((await deleted()).reason).toBe('MISSING_KEY');
    expect((await deleted(stranger)).reason).toBe('NOT_FOUND');
    expect((await deleted(writer)).reason).toBe('INSUFFICIENT_SCOPE');
    await forms(services.key).deleteForm({ formId });
    expect((await deleted(services.key)).reason).toBe('NOT_FOUND');
    expect((await failureOf(forms(services.key).deleteForm({ formId: 'x' }))).reason).toBe('NOT_FOUND');
  });

  function sweepOptions(): SweepOptions {
    return {
      database: services.database,
      auditWriter: services.auditWriter,
      settings: {
        schedule: [0],
        concurrency: 1,
        allowPrivate: false,
        baseUrl: 'https://api.test',
        hostedUrl: 'https://forms.test',
        mailFrom: 'forms@api.test',
        ownerConfirmation: true,
        mailDir: services.folder,
        notifyMailboxesPerKey: 50,
        retentionDays: 90,
        auditRetentionDays: 365,
      },
      now: Date.now,
      log: pino({ level: 'silent' }),
    };
  }

  async function letAMinutePass(formId: string) {
    await services.database.execute(
      `update forms set deleted_at = deleted_at - interval '2 minutes' where id = $1`,
      [formId],
    );
  }

  /** The tables that have a row of the form, in order, but for the audit log, which keeps ids. */
  async function tablesNaming(formId: string): Promise<string[]> {
    const columns = await services.database.select(
      `select table_name, column_name from information_schema.columns
       where table_schema = 'public' and table_name <> 'audit_entries' and (column_name = 'form_id' or table_name = 'forms' and column_name = 'id')
       order by table_name`,
    );
    const tables: string[] = [];
    for (const row of columns) {
      const [table, column] = [String(row.table_name), String(row.column_name)];
      const found = `select 1 from ${table} where ${column} = $1 limit 1`;
      if ((await services.database.select(found, [formId])).length > 0) tables.push(table);
    }
    return tables;
  }
});
