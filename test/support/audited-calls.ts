import { createClient, type Transport } from '@connectrpc/connect';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { ExportFormat, SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhookEvent, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { newId } from '../../src/domain/ids.ts';
import { fileLink, mailLinkToken } from '../../src/domain/links.ts';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import { setFormClosed } from '../../src/store/forms/forms.ts';
import { stopMail } from '../../src/store/mail/mail-recipients.ts';
import { definitionMessage } from './definitions.ts';
import { givenSignInLink } from './owner.ts';
import type { TestServices } from './services.ts';

/** Who owns the forms. */
export const ADDRESS = 'ada@example.com';

/**
 * Every RPC of which the log has something. A new one fails the tests until it is called here. What is called again
 * and changes nothing has no entry.
 */
export const auditedCalls: Record<string, Example> = {
  'FormsService.createForm': async ({ to }) => {
    const { form } = await createClient(FormsService, to).createForm({ definition: definitionMessage() });
    return byKey('form.created', form?.id);
  },
  'FormsService.activateForm': async ({ to, rpc }) => {
    const { id, token } = await rpc.givenDraft(rpc.key);
    await createClient(FormsService, to).activateForm({ formId: id, activationToken: token, email: ADDRESS });
    return byKey('form.activated', id);
  },
  'FormsService.publishFormVersion': async ({ to, formId }) => {
    const definition = { ...definitionOfForm, description: 'Another' };
    const forms = createClient(FormsService, to);
    const { version } = await forms.publishFormVersion({ formId, definition });
    return byKey('form.published', version?.id, formId);
  },
  'FormsService.applyForm': async ({ to, rpc, formId }) => {
    const key = formId.replaceAll('_', '-');
    await rpc.forms.updateForm({ formId, key }, rpc.owner);
    const definition = { ...definitionOfForm, description: 'Another' };
    const { version } = await createClient(FormsService, to).applyForm({ key, definition });
    return byKey('form.published', version?.id, formId);
  },
  'FormsService.updateForm': async ({ to, formId }) => {
    await createClient(FormsService, to).updateForm({ formId, managedBy: 'forms/' });
    return byKey('form.updated', formId);
  },
  'FormsService.archiveForm': async ({ to, formId }) => {
    await createClient(FormsService, to).archiveForm({ formId });
    return byKey('form.archived', formId);
  },
  'FormsService.deleteForm': async ({ to, rpc, formId }) => {
    await rpc.forms.archiveForm({ formId }, rpc.owner);
    await createClient(FormsService, to).deleteForm({ formId });
    return byKey('form.deleted', formId);
  },
  'FormsService.changeFormOwner': async ({ to, formId }) => {
    await createClient(FormsService, to).changeFormOwner({ formId, email: 'next@example.com' });
    return byKey('form.owner_proposed', formId);
  },
  'SubmissionsService.getSubmission': async ({ to, formId, submissionId }) => {
    await createClient(SubmissionsService, to).getSubmission({ submissionId });
    return byKey('submission.read', submissionId, formId);
  },
  'SubmissionsService.listSubmissions': async ({ to, formId }) => {
    await createClient(SubmissionsService, to).listSubmissions({ formId });
    return byKey('submission.listed', formId);
  },
  'SubmissionsService.exportSubmissions': async ({ to, formId }) => {
    await drain(createClient(SubmissionsService, to).exportSubmissions({ formId, format: ExportFormat.CSV }));
    return { ...byKey('submission.exported', formId), detail: 'csv' };
  },
  'SubmissionsService.watchSubmissions': async ({ to, formId }) => {
    await first(createClient(SubmissionsService, to).watchSubmissions({ formId }));
    return byKey('submission.watched', formId);
  },
  'SubmissionsService.deleteSubmission': async ({ to, formId, submissionId }) => {
    await createClient(SubmissionsService, to).deleteSubmission({ submissionId });
    return byKey('submission.deleted', submissionId, formId);
  },
  'SubmissionsService.eraseSubmissions': async ({ to, formId }) => {
    await createClient(SubmissionsService, to).eraseSubmissions({ value: 'eve@example.com', formId });
    return [
      { ...byKey('submission.erased', formId), detail: 'begun', count: 0 },
      { ...byKey('submission.erased', formId), detail: 'submissions', count: 1 },
    ];
  },
  'SessionsService.createSession': async ({ to, formId }) => {
    const { session } = await createClient(SessionsService, to).createSession({
      subject: { case: 'formId', value: formId },
    });
    return byKey('session.created', nameOf(session?.id), formId);
  },
  'SessionsService.getSession': async ({ to, formId, sessionId }) => {
    await createClient(SessionsService, to).getSession({ sessionId });
    return byKey('session.read', nameOf(sessionId), formId);
  },
  'SessionsService.awaitSession': async ({ to, rpc, formId, sessionId }) => {
    await rpc.sessions.cancelSession({ sessionId }, rpc.owner);
    await createClient(SessionsService, to).awaitSession({ sessionId });
    return byKey('session.read', nameOf(sessionId), formId);
  },
  'SessionsService.getSessionAgentSchema': async ({ to, formId, sessionId }) => {
    await createClient(SessionsService, to).getSessionAgentSchema({ sessionId });
    return byKey('session.read', nameOf(sessionId), formId);
  },
  'SessionsService.listSessions': async ({ to, formId }) => {
    await createClient(SessionsService, to).listSessions({ formId });
    return byKey('session.listed', formId);
  },
  'SessionsService.updateSession': async ({ to, formId, sessionId }) => {
    await createClient(SessionsService, to).updateSession({ sessionId, metadata: { n: 1 } });
    return byKey('session.changed', nameOf(sessionId), formId);
  },
  'SessionsService.cancelSession': async ({ to, formId, sessionId }) => {
    await createClient(SessionsService, to).cancelSession({ sessionId });
    return byKey('session.cancelled', nameOf(sessionId), formId);
  },
  'SessionsService.declineSession': async ({ to, rpc, formId }) => {
    const { session } = await rpc.sessions.createSession(
      { subject: { case: 'formId', value: formId }, allowDecline: true },
      rpc.owner,
    );
    await createClient(SessionsService, to).declineSession({ sessionId: session?.id ?? '' });
    return byKey('session.declined', nameOf(session?.id ?? ''), formId);
  },
  'WebhooksService.createWebhook': async ({ to, formId }) => {
    const { webhook } = await createClient(WebhooksService, to).createWebhook({ ...hook, formId });
    return byKey('webhook.created', webhook?.id, formId);
  },
  'WebhooksService.updateWebhook': async ({ to, formId, webhookId }) => {
    const change = { webhookId, url: 'https://two.example.com/', active: false };
    await createClient(WebhooksService, to).updateWebhook(change);
    return { ...byKey('webhook.changed', webhookId, formId), detail: 'url,active' };
  },
  'WebhooksService.deleteWebhook': async ({ to, webhookId }) => {
    await createClient(WebhooksService, to).deleteWebhook({ webhookId });
    return byKey('webhook.deleted', webhookId, null);
  },
  'WebhooksService.rotateWebhookSecret': async ({ to, formId, webhookId }) => {
    await createClient(WebhooksService, to).rotateWebhookSecret({ webhookId });
    return byKey('webhook.secret_rotated', webhookId, formId);
  },
  'WebhooksService.testWebhook': async ({ to, formId, webhookId }) => {
    await createClient(WebhooksService, to).testWebhook({ webhookId });
    return byKey('webhook.tested', webhookId, formId);
  },
  'WebhooksService.listDeliveries': async ({ to, formId, webhookId }) => {
    await createClient(WebhooksService, to).listDeliveries({ webhookId });
    return byKey('delivery.listed', webhookId, formId);
  },
  'WebhooksService.listFormDeliveries': async ({ to, formId }) => {
    await createClient(WebhooksService, to).listFormDeliveries({ formId });
    return byKey('delivery.listed', formId);
  },
  'WebhooksService.replayDelivery': async ({ to, rpc, webhookId }) => {
    const deliveryId = await givenFailedDelivery(rpc, webhookId);
    await createClient(WebhooksService, to).replayDelivery({ deliveryId });
    return byKey('delivery.replayed', deliveryId, null);
  },
  'WebhooksService.replayDeliveries': async ({ to, formId, webhookId }) => {
    await createClient(WebhooksService, to).replayDeliveries({ webhookId });
    return byKey('delivery.replayed', webhookId, formId);
  },
  'WebhooksService.listen': async ({ to, formId }) => {
    await first(createClient(WebhooksService, to).listen({ formId }));
    return byKey('webhook.listened', formId);
  },
  'KeysService.createKey': async ({ to }) => {
    const wanted = { name: 'reader', scopes: ['forms:read', 'audit:read'] };
    const { key } = await createClient(KeysService, to).createKey(wanted);
    return { ...byKey('key.created', key?.id, null), detail: 'forms:read,audit:read' };
  },
  'KeysService.deleteKey': async ({ to, rpc }) => {
    const { key } = await rpc.keys.createKey({ name: 'short', scopes: ['forms:read'] }, rpc.owner);
    await createClient(KeysService, to).deleteKey({ keyId: key?.id ?? '' });
    return byKey('key.revoked', key?.id, null);
  },
  'AuditService.listAuditEntries': async ({ to }) => {
    await createClient(AuditService, to).listAuditEntries({});
    return byKey('audit.listed', null, null);
  },
  'UploadsService.getUpload': async ({ to, formId, uploadId }) => {
    await drain(createClient(UploadsService, to).getUpload({ uploadId }));
    return byKey('upload.read', uploadId, formId);
  },
  'UploadsService.getLinkedUpload': async ({ rpc, headers, formId, uploadId }) => {
    const link = fileLink(
      { secretKey: rpc.secretKey, baseUrl: '', now: rpc.clock.ms },
      { id: formId, ownerEpoch: 0 },
      uploadId,
    );
    const token = link.slice('/files/'.length);
    await drain(createClient(UploadsService, rpc.as(undefined, headers)).getLinkedUpload({ token }));
    return { ...byKey('upload.read', uploadId, formId), by: 'anonymous' };
  },
  'MailService.startMail': async ({ rpc, headers, formId }) => {
    const link = { purpose: 'stop', formId, address: ADDRESS } as const;
    await stopMail(rpc.database, link);
    const mail = createClient(MailService, rpc.as(undefined, headers));
    const again = { token: mailLinkToken(rpc.secretKey, link, null) };
    await mail.startMail(again);
    await mail.startMail(again);
    return { ...byKey('form.mails_started', formId), by: 'anonymous' };
  },
  'MailService.followMailLink': async ({ to, rpc, formId }) => {
    const link = { purpose: 'stop', formId, address: ADDRESS } as const;
    const again = { token: mailLinkToken(rpc.secretKey, link, null) };
    await createClient(MailService, to).followMailLink(again);
    await createClient(MailService, to).followMailLink(again);
    return byKey('form.mails_stopped', formId);
  },
  'OwnersService.signIn': async ({ rpc, headers }) => {
    await createClient(OwnersService, rpc.as(undefined, headers)).signIn({ token: await linkFor(rpc) });
    return byOwner('owner.signed_in', null, null);
  },
  'OwnersService.signOut': async ({ owner }) => {
    await owner.signOut({ everywhere: true });
    return { ...byOwner('owner.signed_out', null, null), detail: 'everywhere' };
  },
  'OwnersService.endOwnerSession': async ({ owner, rpc }) => {
    const other = await createClient(OwnersService, rpc.as()).signIn({ token: await linkFor(rpc) });
    await owner.endOwnerSession({ sessionId: hashSecret(other.sessionToken) });
    return byOwner('owner.signed_out', null, null);
  },
  'OwnersService.confirmOwnedForm': async ({ owner, formId }) => {
    await owner.confirmOwnedForm({ formId });
    return byOwner('form.owner_confirmed', formId);
  },
  'OwnersService.closeOwnedForm': async ({ owner, formId }) => {
    await owner.closeOwnedForm({ formId });
    return byOwner('form.closed', formId);
  },
  'OwnersService.reopenOwnedForm': async ({ owner, rpc, formId }) => {
    await setFormClosed(rpc.database, formId, true);
    await owner.reopenOwnedForm({ formId });
    await owner.reopenOwnedForm({ formId });
    return byOwner('form.reopened', formId);
  },
  'OwnersService.setOwnedFormMails': async ({ owner, formId }) => {
    await owner.setOwnedFormMails({ formId, stopped: true });
    await owner.setOwnedFormMails({ formId, stopped: false });
    await owner.setOwnedFormMails({ formId, stopped: false });
    return [byOwner('form.mails_stopped', formId), byOwner('form.mails_started', formId)];
  },
  'OwnersService.addFormRecipient': async ({ owner, formId }) => {
    await owner.addFormRecipient({ formId, email: 'more@example.com' });
    return byOwner('form.recipient_added', formId);
  },
  'OwnersService.removeFormRecipient': async ({ owner, formId }) => {
    await owner.removeFormRecipient({ formId, email: 'more@example.com' });
    return byOwner('form.recipient_removed', formId);
  },
  'OwnersService.offerOwnedForm': async ({ owner, formId }) => {
    await owner.offerOwnedForm({ formId, email: 'next@example.com' });
    return byOwner('form.owner_proposed', formId);
  },
  'OwnersService.withdrawOwnedFormOffer': async ({ owner, rpc, formId }) => {
    await rpc.database.execute("update forms set pending_owner_email = 'next@example.com' where id = $1", [
      formId,
    ]);
    await owner.withdrawOwnedFormOffer({ formId });
    await owner.withdrawOwnedFormOffer({ formId });
    return byOwner('form.offer_withdrawn', formId);
  },
  'OwnersService.publishOwnedFormTexts': async ({ owner, formId }) => {
    const { form } = await owner.getOwnedForm({ formId });
    const texts = { name: 'Another name', fields: [] };
    await owner.publishOwnedFormTexts({ formId, texts, expectedVersionId: form?.versionId ?? '' });
    const { versionId } = await owner.publishOwnedFormTexts({ formId, texts });
    return byOwner('form.published', versionId, formId);
  },
  'OwnersService.deleteOwnedForm': async ({ owner, formId }) => {
    const { form } = await owner.getOwnedForm({ formId });
    await owner.deleteOwnedForm({ formId, name: form?.name ?? '' });
    return byOwner('form.deleted', formId);
  },
  'OwnersService.listOwnedSubmissions': async ({ owner, formId }) => {
    await owner.listOwnedSubmissions({ formId });
    return byOwner('submission.listed', formId);
  },
  'OwnersService.searchOwnedSubmissions': async ({ owner, formId }) => {
    await owner.searchOwnedSubmissions({ formId, text: 'eve' });
    return byOwner('submission.searched', formId);
  },
  'OwnersService.getOwnedFormStatistics': async ({ owner, formId }) => {
    await owner.getOwnedFormStatistics({ formId });
    return byOwner('form.statistics_read', formId);
  },
  'OwnersService.getOwnedSubmission': async ({ owner, formId, submissionId }) => {
    await owner.getOwnedSubmission({ submissionId });
    return byOwner('submission.read', submissionId, formId);
  },
  'OwnersService.replayOwnedDelivery': async ({ rpc, owner, formId, submissionId }) => {
    const deliveryId = await givenFailedMail(rpc, submissionId);
    await owner.replayOwnedDelivery({ submissionId, deliveryId });
    return byOwner('delivery.replayed', deliveryId, formId);
  },
  'OwnersService.deleteOwnedSubmission': async ({ owner, formId, submissionId }) => {
    await owner.deleteOwnedSubmission({ submissionId });
    return byOwner('submission.deleted', submissionId, formId);
  },
  'OwnersService.exportOwnedSubmissions': async ({ owner, formId }) => {
    await drain(owner.exportOwnedSubmissions({ formId, format: ExportFormat.NDJSON }));
    return { ...byOwner('submission.exported', formId), detail: 'ndjson' };
  },
  'OwnersService.getOwnedUpload': async ({ owner, formId, uploadId }) => {
    await drain(owner.getOwnedUpload({ uploadId }));
    return byOwner('upload.read', uploadId, formId);
  },
};

/** A form of every kind of things, whose owner is signed in. */
export async function givenThings(rpc: TestServices) {
  const { id: formId, token } = await rpc.givenDraft(rpc.key, definitionOfForm);
  await rpc.forms.activateForm({ formId, activationToken: token, email: ADDRESS });
  const { upload } = await rpc.uploads.createUpload({
    target: { case: 'formId', value: formId },
    fieldId: 'cv',
    filename: 'cv.txt',
    content: new TextEncoder().encode('my life'),
  });
  const uploadId = upload?.id ?? '';
  const answers = { email: 'eve@example.com', cv: { upload_id: uploadId } };
  const { submissionId } = await rpc.submissions.createSubmission({ formId, answers });
  const { session } = await rpc.sessions.createSession(
    { subject: { case: 'formId', value: formId } },
    rpc.owner,
  );
  const { webhook } = await rpc.webhooks.createWebhook({ ...hook, formId }, rpc.owner);
  const { sessionToken } = await createClient(OwnersService, rpc.as()).signIn({ token: await linkFor(rpc) });
  await createClient(OwnersService, rpc.as(sessionToken)).confirmOwnedForm({ formId });
  await rpc.auditWriter.flush();
  return {
    formId,
    uploadId,
    submissionId,
    sessionId: session?.id ?? '',
    webhookId: webhook?.id ?? '',
    ownerToken: sessionToken,
  };
}

async function givenFailedDelivery({ webhooks, owner, database }: TestServices, webhookId: string) {
  const { delivery } = await webhooks.testWebhook({ webhookId }, owner);
  const id = delivery?.id ?? '';
  await database.execute(
    `with gone as (delete from delivery_queue where id = $1 returning *)
     insert into deliveries (id, project_id, form_id, event_id, webhook_id, channel, kind, receiver, url, status,
       attempt_count, created_at)
     select id, project_id, form_id, event_id, webhook_id, channel, kind, receiver, url, 'failed', 1, created_at
     from gone`,
    [id],
  );
  return id;
}

/** To the owner of the submission's form. */
async function givenFailedMail({ database }: TestServices, submissionId: string): Promise<string> {
  const id = newId('dlv', Date.now());
  await database.execute(
    `insert into deliveries (id, project_id, form_id, event_id, channel, kind, receiver, status, attempt_count, created_at)
     select $1, e.project_id, e.form_id, e.id, 'mail', 'owner', lower(f.owner_email), 'failed', 1, now()
     from events e join forms f on f.id = e.form_id where e.submission_id = $2 limit 1`,
    [id, submissionId],
  );
  return id;
}

function byKey(action: string, resource: string | null = null, formId?: string | null): Expected {
  const form_id = formId === undefined ? resource : formId;
  return { by: 'key', action, resource, form_id, detail: null, count: 1 };
}

function byOwner(...entry: Parameters<typeof byKey>): Expected {
  return { ...byKey(...entry), by: 'owner' };
}

function nameOf(sessionId = ''): string {
  return `sha256:${hashSecret(sessionId)}`;
}

function linkFor({ secretKey, clock, database }: TestServices): Promise<string> {
  return givenSignInLink(database, ADDRESS, { key: secretKey, now: clock.ms });
}

async function drain(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

async function first(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages) return;
}

const definitionOfForm = definitionMessage({
  fields: [
    { id: 'email', type: FormFieldType.EMAIL, required: true },
    { id: 'cv', type: FormFieldType.FILE },
  ],
});

const hook = { url: 'https://one.example.com/', events: [WebhookEvent.SUBMISSION_CREATED] };

type Example = (given: Given) => Promise<Expected | Expected[]>;

export type Given = Awaited<ReturnType<typeof givenThings>> & {
  rpc: TestServices;
  /** Calls with the `*` key. */
  to: Transport;
  headers: Record<string, string>;
  /** Who owns the form. */
  owner: ReturnType<typeof createClient<typeof OwnersService>>;
};

/** A row, but for what is the same for all calls. */
type Expected = {
  by: 'key' | 'owner' | 'anonymous';
  action: string;
  resource: string | null;
  form_id: string | null;
  detail: string | null;
  count: number;
};
