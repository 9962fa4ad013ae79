import { describe, expect, it } from 'vitest';
import { removeOld } from '../../../src/delivery/sweeps/sweeps.ts';
import { exportNames, exportRows, exportTables } from '../../../src/store/projects/project-export.ts';
import { oneEngine } from '../../support/database.ts';
import { startDelivery } from '../../support/delivery.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/** All columns that hold what a person said, was shown or is reached by, of tables whose rows are about people's answers. */
const personal = [
  'attempts.response_body',
  'autoresponses.address',
  'deliveries.receiver',
  'deliveries.response_body',
  'deliveries.url',
  'delivery_queue.mail',
  'delivery_queue.receiver',
  'delivery_queue.url',
  'events.body',
  'mail_allowances.holder',
  'sessions.callback',
  'sessions.context',
  'sessions.decline_reason',
  'sessions.idempotency_key',
  'sessions.metadata',
  'sessions.notify',
  'sessions.partial_answers',
  'sessions.prefill',
  'sessions.respondent',
  'sessions.return_url',
  'submissions.answers',
  'submissions.idempotency_key',
  'submissions.metadata',
  'submissions.respondent',
  'submissions.respondent_key',
  'submissions.source',
  'uploads.filename',
];

/** What none of that is in: ids, times, names of the service's own, digests, sealed secrets. */
const others = [
  'attempts.delivery_id attempts.error attempts.id attempts.status',
  'autoresponses.form_id',
  'deliveries.attempt_id deliveries.cause deliveries.channel deliveries.error deliveries.event_id deliveries.form_id deliveries.id',
  'deliveries.kind deliveries.project_id deliveries.status deliveries.webhook_id',
  'delivery_queue.cause delivery_queue.channel delivery_queue.error delivery_queue.event_id delivery_queue.form_id delivery_queue.id',
  'delivery_queue.kind delivery_queue.project_id delivery_queue.share delivery_queue.webhook_id',
  'events.form_id events.id events.project_id events.session_id events.submission_id events.traceparent events.type',
  'mail_allowances.day mail_allowances.delivery_ids mail_allowances.kind',
  'sessions.callback_secret sessions.form_id sessions.id sessions.project_id sessions.provenance',
  'sessions.request_fingerprint sessions.request_key sessions.submission_id sessions.version_id',
  'submissions.form_id submissions.id submissions.project_id submissions.provenance submissions.request_fingerprint',
  'submissions.replaced_by submissions.replaces submissions.session_id submissions.status submissions.version_id',
  'uploads.content_type uploads.field_id uploads.form_id uploads.id uploads.project_id uploads.sha256',
  'uploads.submission_id',
].flatMap((line) => line.split(' '));

const tables = [...new Set(personal.map((column) => column.split('.')[0] ?? ''))];

/** Counts of mails go at the end of the day, whoever is erased. */
const untilTheDayEnds = ['mail_allowances.holder'];

/** Of no form, or worth nothing to who leaves the service: the log of what was counted, sent bodies, keys of calls. */
const notExported = [
  'autoresponses.address',
  'events.body',
  'mail_allowances.holder',
  'sessions.idempotency_key',
  'submissions.idempotency_key',
  'submissions.respondent_key',
];

describe.each(oneEngine('pglite'))('columns that hold personal data, on %s,', (engine) => {
  it('are all known', async () => {
    await using service = await startService({ engine });
    const rows = await service.database.select(
      `select table_name || '.' || column_name as name from information_schema.columns
       where table_schema = current_schema() and table_name = any($1)
         and data_type in ('text', 'json', 'jsonb', 'ARRAY')`,
      [tables],
    );

    expect(rows.map(({ name }) => String(name)).sort()).toEqual([...personal, ...others].sort());
  });

  it('are emptied by an erasure', async () => {
    await using given = await givenPerson();

    await given.service.post('/v1/erasures', { value: given.email });

    expect(await given.columns()).toEqual(untilTheDayEnds);
  });

  it('are emptied when the retention time is over', async () => {
    await using given = await givenPerson();
    const { database } = given.service;
    await using delivery = startDelivery(database, { settings: { concurrency: 0 } });
    // As if the form kept nothing, and all sessions had ended.
    await database.execute(`update forms set retention_days = 0`);
    await database.execute(
      `update sessions set expires_at = now() - interval '1 hour', expiry_announced_at = now()`,
    );

    for (let more = true; more; ) more = await removeOld(delivery.options);

    expect(await given.columns()).toEqual(untilTheDayEnds);
  });

  it('are emptied when their form is deleted', async () => {
    await using given = await givenPerson();

    await given.service.post(`/v1/forms/${given.formId}/archive`);
    await given.service.delete(`/v1/forms/${given.formId}`);

    expect((await given.columns()).filter((name) => !untilTheDayEnds.includes(name))).toEqual([]);
  });

  it('are exported', async () => {
    await using given = await givenPerson();
    const [form] = await given.service.database.select('select project_id from forms where id = $1', [
      given.formId,
    ]);
    const exported = new Set<string>();
    for (const name of exportNames) {
      const { lines } = await exportRows(given.service.database, name, {
        projectId: String(form?.project_id),
        after: '',
      });
      for (const line of lines) {
        for (const [column, value] of Object.entries(JSON.parse(line) as object)) {
          if (JSON.stringify(value).toLowerCase().includes(given.marker)) {
            exported.add(`${exportTables[name].table}.${column}`);
          }
        }
      }
    }

    expect([...exported].sort()).toEqual(personal.filter((name) => !notExported.includes(name)));
  });

  /** A person whose address is everywhere that it can be: in answers, sessions in each state, mails and what was sent. */
  async function givenPerson() {
    await using opened = new AsyncDisposableStack();
    const mails = opened.use(await startMailServer());
    const receiver = opened.use(
      await startReceiver(
        ({ body }, response) => void response.writeHead(body.includes('"n":1') ? 500 : 200).end(body),
      ),
    );
    const service = opened.use(
      await startService({ engine, env: { SMTP_URL: mails.url, WEBHOOK_RETRY_SCHEDULE: '0,3600' } }),
    );
    const marker = `m${crypto.randomUUID().slice(0, 8)}`;
    const email = `${marker}@example.com`;
    const form = await service.givenPublishedForm({
      fields: [
        { id: 'email', type: 'email' },
        { id: 'cv', type: 'file' },
      ],
      settings: { allowPartial: true, onePerRespondent: true },
      delivery: { type: 'email', autoresponse: { to: 'email', subject: 'Thanks', message: 'We read it.' } },
    });
    const events = ['submission.created', 'session.declined', 'session.cancelled'];
    await service.post('/v1/webhooks', { url: receiver.url, events });
    const path = `/v1/forms/${form.id}/sessions`;
    const rich = {
      prefill: { email },
      metadata: { who: email },
      context: { title: email },
      allow_decline: true,
      notify: { email, message: email, remind_after: [3600] },
      respondent: { email },
      callback: { url: `${receiver.url}/${marker}` },
      return_url: `https://example.com/${marker}`,
    };
    const make = async (n: number) => {
      const headers = { 'idempotency-key': `${n} ${email}` };
      const { json } = await service.post(path, { ...rich, metadata: { ...rich.metadata, n } }, { headers });
      expect(json.error).toBeUndefined();
      return json.session.id;
    };
    const open = await make(0);
    // As the version before stored it.
    await service.database.execute('update sessions set idempotency_key = $1 where id = $2', [email, open]);
    await service.patch(`/v1/sessions/${open}`, { answers: { email } });
    await service.post(`/v1/sessions/${await make(1)}/decline`, { reason: email });
    await service.post(`/v1/sessions/${await make(2)}/cancel`);
    const file = await service.call(
      'POST',
      `/api/forms/${form.id}/uploads?field=cv&filename=${marker}.txt`,
      'A file.',
      { headers: { 'content-type': 'application/octet-stream' } },
    );
    const cv = { upload_id: file.json.upload.upload_id };
    await service.post(`/v1/sessions/${await make(3)}/submit`, { answers: { email, cv } });
    await answerWithCode(await make(4));
    await service.post(
      `/v1/forms/${form.id}/submissions`,
      { answers: { email }, source: email },
      { headers: { 'idempotency-key': email } },
    );
    await until(
      async () => (await columns()).length === personal.length,
      30_000,
      () => 'not every column holds the person',
    );
    const owned = opened.move();
    return {
      service,
      marker,
      email,
      formId: form.id,
      columns,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };

    /** Answers on the page of a session, with the code that its respondent is mailed. */
    async function answerWithCode(session: string): Promise<void> {
      const post = (inputs: Record<string, string>, cookie = '') =>
        fetch(`${service.url}/f/${session}`, {
          method: 'POST',
          headers: { origin: service.url, cookie },
          body: new URLSearchParams(inputs),
          redirect: 'manual',
        });
      const cookie = (await post({ _code: 'send' })).headers.getSetCookie()[0]?.split(';')[0];
      const code = await until(() =>
        mails.mails.map(({ text }) => /^\d{6}$/m.exec(text ?? '')?.[0]).find((found) => found !== undefined),
      );
      await post({ _code: 'give', code }, cookie);
      await post({ email }, cookie);
    }

    /** The columns that hold the marker. */
    async function columns(): Promise<string[]> {
      const found: string[] = [];
      for (const name of personal) {
        const [table, column] = name.split('.');
        const rows = await service.database.select(
          `select 1 as one from ${table} where ${column}::text ilike '%' || $1 || '%' limit 1`,
          [marker],
        );
        if (rows.length > 0) found.push(name);
      }
      return found;
    }
  }
});
