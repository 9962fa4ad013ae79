import { checkDefinition, type FormDefinition } from '../../src/domain/definition/definition.ts';
import { newId } from '../../src/domain/ids.ts';
import type { Queries } from '../../src/store/database/database.ts';
import { type Form, insertForm } from '../../src/store/forms/forms.ts';
import type { Session } from '../../src/store/sessions/session-table.ts';
import { insertSession, type NewSession } from '../../src/store/sessions/sessions.ts';
import type { NewSubmission } from '../../src/store/submissions/submission-writer.ts';
import { insertWebhook, type Webhook } from '../../src/store/webhooks/webhooks.ts';

/** A row of each kind with plausible values; name only what the test is about. */
function aForm(given: Partial<Form> = {}): Form {
  const now = new Date();
  return {
    id: newId('form', now.getTime()),
    projectId: 'prj_one',
    name: 'Contact',
    slug: 'contact',
    status: 'draft',
    createdBy: 'public',
    createdFrom: null,
    draftDefinition: null,
    draftSecret: null,
    currentVersionId: null,
    retentionDays: null,
    activationHash: 'hash',
    activationExpiresAt: new Date(now.getTime() + 60_000),
    activatedAt: null,
    ownerEmail: null,
    ownerConfirmedAt: null,
    pendingOwnerEmail: null,
    ownerEpoch: 0,
    questionChecksum: null,
    questionDueAt: null,
    archivedAt: null,
    closedAt: null,
    deletedAt: null,
    key: null,
    managedBy: null,
    readUpTo: null,
    ignoredNames: null,
    createdAt: now,
    updatedAt: now,
    ...given,
  };
}

export async function givenForm(db: Queries, given: Partial<Form> = {}): Promise<Form> {
  const form = aForm(given);
  await insertForm(db, form);
  return form;
}

export async function givenSession(db: Queries, given: Partial<NewSession> = {}): Promise<Session> {
  return insertSession(db, {
    id: newId('evt', Date.now()).replace('evt_', 'sess_'),
    projectId: 'prj_one',
    formId: 'form_one',
    versionId: 'ver_one',
    prefill: { email: 'a@example.com' },
    metadata: {},
    expiresIn: 3600,
    ...given,
  });
}

export function aSubmission(given: Partial<NewSubmission> = {}): NewSubmission {
  const now = Date.now();
  const id = given.id ?? newId('sub', now);
  const createdAt = new Date(now);
  return {
    id,
    projectId: 'prj_one',
    formId: 'form_one',
    versionId: 'ver_one',
    sessionId: null,
    source: 'api',
    answers: { zeta: 'last first', alpha: ['b', 'a'], number: 0.1 },
    provenance: [{ by: 'api' }],
    metadata: {},
    status: 'accepted',
    idempotencyKey: null,
    requestFingerprint: null,
    respondent: null,
    respondentKey: null,
    replaces: null,
    replacedBy: null,
    createdAt,
    event: {
      id: newId('evt', now),
      type: 'submission.created',
      body: {
        start: `{"data":{"submissionId":"${id}","createdAt":"${createdAt.toISOString()}","answers":`,
        end: ',"provenance":[{"by":"api"}]}}',
      },
    },
    ...given,
  };
}

export async function givenWebhook(db: Queries, given: Partial<Webhook> = {}): Promise<Webhook> {
  const now = new Date();
  const webhook: Webhook = {
    id: newId('wh', now.getTime()),
    projectId: 'prj_one',
    formId: null,
    url: 'https://example.com/hook',
    events: ['submission.created'],
    secret: 'sealed-1',
    nextSecret: null,
    nextSecretAt: null,
    previousSecret: null,
    previousSecretUntil: null,
    keyless: false,
    fromDefinition: false,
    active: true,
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
    lastSuccessAt: null,
    failuresBeforeSuccess: 0,
    failuresInRow: 0,
    sendsTraceparent: false,
    headers: null,
    filter: null,
    signingKey: null,
    announcedFailing: false,
    announcedBy: null,
    template: null,
    openUntil: null,
    createdAt: now,
    deletedAt: null,
    ...given,
  };
  await insertWebhook(db, webhook);
  return webhook;
}

export function aDefinition(given: Partial<FormDefinition> = {}): FormDefinition {
  const raw = {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'email', type: 'email', required: true }],
    delivery: { type: 'email' },
  };
  const checked = checkDefinition(raw, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return { ...checked.definition, ...given };
}

/** How many submissions a form's counters say that it holds. */
export async function countSubmissions(
  db: Queries,
  formId: string,
): Promise<{ accepted: number; spam: number }> {
  const [row] = await db.select(
    `select coalesce(sum(accepted), 0)::float8 as accepted, coalesce(sum(spam), 0)::float8 as spam
     from form_counters where form_id = $1`,
    [formId],
  );
  return { accepted: Number(row?.accepted), spam: Number(row?.spam) };
}
