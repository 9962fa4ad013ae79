/**
 * Mistakes that somebody could make in the service, each as a small change of its source. The simulated days have to
 * find every one: `rule` is by which, `hours` how long the days are that it needs.
 */
export const bugs: readonly Bug[] = [
  {
    name: 'people are reminded of sessions that have ended',
    rules: ['reminded until the end'],
    edits: [
      {
        file: 'src/store/deliveries/find-notified.ts',
        find: "  if (session.status !== 'open') return { refusal: 'session_ended' };\n",
        replace: '',
      },
    ],
  },
  {
    name: 'a callback tells that who declined has cancelled',
    rules: ['one callback for each ask'],
    edits: [
      {
        file: 'src/store/deliveries/enqueue.ts',
        find: "'session.declined': { outcome: 'declined' }",
        replace: "'session.declined': { outcome: 'cancelled' }",
      },
    ],
  },
  {
    name: 'a lease is never released',
    rules: [
      'webhooks at least once',
      'mails at least once',
      'queues are empty when quiet',
      'owners are asked to confirm',
    ],
    edits: [
      {
        file: 'src/store/deliveries/queue-table.ts',
        find: '(leased_until is null or leased_until <= now())`;',
        replace: 'leased_until is null`;',
      },
    ],
  },
  {
    name: 'an event is marked before its mails are queued',
    rules: ['mails at least once', 'owners are asked to confirm'],
    edits: [
      {
        file: 'src/store/deliveries/enqueue-mails.ts',
        find: `  await db.execute(
    \`with taken as (
       update events set fanned_out_at = now()
       where id in (
         select id from events where id = any($1::text[]) and fanned_out_at is null
         order by id for update skip locked
       )
       returning id
     ),`,
        replace: `  const taken = await db.execute(
    'update events set fanned_out_at = now() where id = any($1::text[]) and fanned_out_at is null returning id',
    [eventIds],
  );
  await db.execute(
    \`with taken as (
       select id from unnest($1::text[]) as u(id)
     ),`,
      },
      {
        file: 'src/store/deliveries/enqueue-mails.ts',
        find: '[eventIds, JSON.stringify(mails), since?.since ?? null],',
        replace: '[taken.map((row) => row.id), JSON.stringify(mails), since?.since ?? null],',
      },
    ],
  },
  {
    name: 'a retry has a new event id',
    rules: ['one event id'],
    edits: [
      {
        file: 'src/delivery/webhook/sender.ts',
        find: 'const headers = headersOf(content, webhook, target, body)',
        replace:
          "const headers = headersOf({ ...content, eventId: [content.eventId, ...(claim.step === 0 ? [] : [claim.step])].join('r') }, webhook, target, body)",
      },
    ],
  },
  {
    name: 'an idempotency key counts for one process',
    rules: ['one submission per idempotency key'],
    edits: [
      {
        file: 'src/store/submissions/submission-writer.ts',
        find: 'const prepared = prepare(row, currentTraceparent());',
        replace: `const ownKey = row.idempotencyKey === null ? null : \`\${insertOptions.slot} \${row.idempotencyKey}\`;
      const prepared = prepare({ ...row, idempotencyKey: ownKey }, currentTraceparent());`,
      },
    ],
  },
  {
    name: 'the removal of a file is not noted with that of its row',
    rules: ['no file is orphaned'],
    edits: [
      {
        file: 'src/store/removal/removals.ts',
        find: "date_trunc('milliseconds', now()), 0 from removed on conflict do nothing`",
        replace: "date_trunc('milliseconds', now()), 0 from removed where false on conflict do nothing`",
      },
    ],
  },
  {
    name: 'time is from the process',
    rules: [
      'acknowledged is kept',
      'files are kept',
      'nothing of what was removed',
      'signatures are valid',
      'open takes all',
      'closed takes nothing',
      'webhooks at least once',
      'mails at least once',
    ],
    edits: [
      {
        file: 'src/store/database/clock.ts',
        find: '      return now;\n',
        replace: '      return read();\n',
      },
    ],
  },
  {
    name: 'a mail is tried again after its stop link',
    rules: ['no mail after a stop link'],
    edits: [
      {
        file: 'src/delivery/mail/may-send.ts',
        find: 'if (await isMailStopped(options.database, { address: to, formId, unasked })) {',
        replace:
          'if (claim.step === 0 && (await isMailStopped(options.database, { address: to, formId, unasked }))) {',
      },
    ],
  },
  {
    name: 'a webhook is called again after a 410',
    rules: ['nothing after the end of a webhook'],
    edits: [
      {
        file: 'src/delivery/webhook/sender.ts',
        find: 'if (status === 410)',
        replace: 'if (status === 419)',
      },
    ],
  },
  {
    name: 'a rotated secret goes on signing',
    rules: ['signatures are valid'],
    edits: [
      {
        file: 'src/delivery/webhook/sender.ts',
        find: '    const { secret, previousSecret } = secretsAt(webhook, new Date(at));\n',
        replace: `    const first = seen.get(webhook.id) ?? webhook;
    seen.set(webhook.id, first);
    const { secret, previousSecret } = secretsAt(first, new Date(at));
`,
      },
      {
        file: 'src/delivery/webhook/sender.ts',
        find: '  const opened = remembering(MAX_KEPT, (sealed) => secrets.open(sealed));\n',
        replace: `  const seen = new Map<string, ClaimedWebhook>();
  const opened = remembering(MAX_KEPT, (sealed) => secrets.open(sealed));
`,
      },
    ],
  },
  {
    name: 'a limit is judged without what was stored before',
    rules: ['limits are exact'],
    edits: [
      {
        file: 'src/store/submissions/submission-insert.ts',
        find: 'i.place + locked.accepted +',
        replace: 'i.place +',
      },
    ],
  },
  {
    name: 'a retention time is not kept',
    rules: ['removed is not read again', 'nothing of what was removed'],
    edits: [
      {
        file: 'src/store/submissions/submission-removal.ts',
        find: '::bigint - days *',
        replace: '::bigint - (days + 30) *',
      },
    ],
  },
  {
    name: 'a retention time ends a day early',
    rules: ['acknowledged is kept'],
    edits: [
      {
        file: 'src/store/submissions/submission-removal.ts',
        find: '::bigint - days *',
        replace: '::bigint - (days - 1) *',
      },
    ],
  },
  {
    name: 'a counter is not in the transaction',
    rules: ['counters equal rows'],
    edits: [
      {
        file: 'src/store/submissions/submission-insert.ts',
        find: ' group by form_id order by form_id\n',
        replace: ' where false group by form_id order by form_id\n',
      },
      {
        file: 'src/store/submissions/submission-insert.ts',
        find: '  if (stored.size > 0) options.onCommitted(commitOf(result, group));\n',
        replace: `  if (stored.size > 0) {
    await db.execute(
      \`insert into form_counters as c (form_id, slot, accepted, spam)
       select form_id, $2::smallint, count(*) filter (where status = 'accepted'), count(*) filter (where status = 'spam')
       from submissions where id = any($1) group by form_id
       on conflict (form_id, slot) do update
         set accepted = c.accepted + excluded.accepted, spam = c.spam + excluded.spam\`,
      [[...stored], options.slot],
    );
    options.onCommitted(commitOf(result, group));
  }
`,
      },
    ],
  },
  {
    name: 'a 5xx about the sender ends a mail',
    rules: ['mails at least once', 'owners are asked to confirm'],
    edits: [
      {
        file: 'src/delivery/mail/sender.ts',
        find: "isUnknownRecipient(error) ? 'end' : 'retry'",
        replace: "isUnknownRecipient(error) || responseStatus >= 500 ? 'end' : 'retry'",
      },
    ],
  },
  {
    name: 'a name server without an answer ends a delivery',
    rules: ['webhooks at least once', 'mails at least once', 'owners are asked to confirm'],
    edits: [
      {
        file: 'src/delivery/worker/attempt.ts',
        find: "  const waits = { status: 'pending', ...because('not_tried') } as const;\n",
        replace: `  const waits = { status: 'pending', ...because('not_tried') } as const;
  if (isLocalFault(error)) return { status: 'failed', ...because('never_tried') };
`,
      },
    ],
  },
  {
    name: 'a mail server has as little time for a message as for a command',
    rules: ['mails at most once'],
    edits: [{ file: 'src/delivery/mail/transport.ts', find: 'message: 600_000', replace: 'message: 10_000' }],
  },
  {
    name: 'keys that a revoked key made go on',
    rules: ['what has ended opens nothing'],
    edits: [
      { file: 'src/store/keys.ts', find: '    if (!options.children) break;\n', replace: '    break;\n' },
    ],
  },
  {
    name: 'a mailed link works again and again',
    rules: ['what has ended opens nothing'],
    edits: [
      {
        file: 'src/store/mail/mailed-links.ts',
        find: 'const unused = { tokenHash, usedAt: null, expiresAt',
        replace: 'const unused = { tokenHash, expiresAt',
      },
      {
        file: 'src/services/mail/mail.ts',
        find: 'if (link.usedAt !== null) {',
        replace: 'if (Date.now() < 0) {',
      },
      {
        file: 'src/services/owners/owner-sessions.ts',
        find: 'if (link === null || link.usedAt !== null) throw used();',
        replace: 'if (link === null) throw used();',
      },
    ],
  },
  {
    name: 'the sessions of a former owner go on',
    rules: ['what has ended opens nothing'],
    edits: [
      {
        file: 'src/services/owners/owned-form.ts',
        find: '  await closeOwnerSessions(tx, { address: addressKey(former.address) });\n',
        replace: '  await closeOwnerSessions(tx, { address: addressKey(address) });\n',
      },
    ],
  },
  {
    name: 'recipients stay after a hand-over',
    rules: ['no mail after a hand-over'],
    edits: [
      {
        file: 'src/services/owners/owned-form.ts',
        find: '  if (!keepRecipients) {',
        replace: '  if (keepRecipients) {',
      },
    ],
  },
  {
    name: 'the embedded database is never vacuumed',
    rules: ['what is dead is vacuumed'],
    edits: [
      {
        file: 'src/delivery/sweeps/sweeps.ts',
        find: '  await vacuumTables(database, { isQuiet, log });\n',
        replace: '  if (log === undefined) await vacuumTables(database, { isQuiet, log });\n',
      },
    ],
  },
  {
    name: 'what was erased is never written anew',
    rules: ['what is dead is vacuumed'],
    edits: [
      {
        file: 'src/delivery/sweeps/sweeps.ts',
        find: '  if (isQuiet) await rewriteErased(database, { log });\n',
        replace: '  if (isQuiet && log === undefined) await rewriteErased(database, { log });\n',
      },
    ],
  },
  {
    name: 'another secret key leaves the secrets of webhooks with the former one',
    rules: ['webhooks at least once', 'queues are empty when quiet'],
    edits: [
      {
        file: 'src/cli/admin/rotate-secrets.ts',
        find: '    const counts = await resealAll(tx, after);\n',
        replace: '    const counts = { resealed: 0, unreadable: 0 };\n',
      },
    ],
  },
];

/** A text of a file that is there exactly once, and what it becomes. */
export type Edit = { file: string; find: string; replace: string };

export type Bug = { name: string; rules: readonly string[]; edits: readonly Edit[] };
