import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { HostedService } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { AuditService } from '../../../gen/forms/v1/audit_pb.js';
import { FormsService } from '../../../gen/forms/v1/forms_pb.js';
import { KeysService } from '../../../gen/forms/v1/keys_pb.js';
import { MailService } from '../../../gen/forms/v1/mail_pb.js';
import { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { SessionsService } from '../../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import { WebhooksService } from '../../../gen/forms/v1/webhooks_pb.js';
import type { AuditAction } from '../../domain/audit/actions.ts';
import { type MethodTable, methodEntries } from '../../domain/method-table.ts';

/** What the audit log says of the calls of an RPC. Throws for an RPC that no table names: there is no default. */
export function auditedAs(method: DescMethod): Audited {
  const audited = auditedByMethod.get(method);
  if (audited === undefined) throw new TypeError(`Nothing says what the audit log has of ${method.name}`);
  return audited;
}

/** Stored with what is changed. */
const changes = (...actions: AuditAction[]): Audited => ({ stored: 'with the change', actions });

/** Stored soon after. */
const notes = (...actions: AuditAction[]): Audited => ({ stored: 'soon', actions });

const isNot = (reason: string): Audited => ({ stored: 'never', reason });

const changesNothing = isNot('It changes nothing, and shows nothing that was stored.');
const showsNoAnswers = isNot('It shows definitions and settings, which hold nothing of people who answered.');
const isAnswer = isNot(
  'It is what people answer: submissions and files say themselves where they come from.',
);

const forms: AuditTable<typeof FormsService> = {
  validateForm: changesNothing,
  createForm: changes('form.created'),
  getActivation: changesNothing,
  activateForm: changes('form.activated'),
  getForm: showsNoAnswers,
  listForms: showsNoAnswers,
  listFormVersions: showsNoAnswers,
  getFormVersion: showsNoAnswers,
  publishFormVersion: changes('form.published'),
  archiveForm: changes('form.archived'),
  deleteForm: changes('form.deleted'),
  changeFormOwner: changes('form.owner_proposed'),
  getAgentSchema: showsNoAnswers,
};

const submissions: AuditTable<typeof SubmissionsService> = {
  createSubmission: isAnswer,
  createManagedSubmission: isAnswer,
  checkAnswers: changesNothing,
  checkManagedAnswers: changesNothing,
  createDemoSubmission: isAnswer,
  getSubmission: notes('submission.read'),
  listSubmissions: notes('submission.listed'),
  exportSubmissions: notes('submission.exported'),
  watchSubmissions: notes('submission.watched'),
  deleteSubmission: changes('submission.deleted'),
  eraseSubmissions: changes('submission.erased'),
};

const sessions: AuditTable<typeof SessionsService> = {
  createSession: notes('session.created'),
  getSession: notes('session.read'),
  awaitSession: notes('session.read'),
  getSessionAgentSchema: notes('session.read'),
  listSessions: notes('session.listed'),
  updateSession: notes('session.changed'),
  cancelSession: notes('session.cancelled'),
  submitSession: isAnswer,
};

const webhooks: AuditTable<typeof WebhooksService> = {
  createWebhook: changes('webhook.created'),
  listWebhooks: showsNoAnswers,
  getWebhook: showsNoAnswers,
  updateWebhook: changes('webhook.changed'),
  deleteWebhook: changes('webhook.deleted'),
  rotateWebhookSecret: changes('webhook.secret_rotated'),
  testWebhook: changes('webhook.tested'),
  listDeliveries: notes('delivery.listed'),
  listFormDeliveries: notes('delivery.listed'),
  replayDelivery: changes('delivery.replayed'),
  replayDeliveries: changes('delivery.replayed'),
  listen: notes('webhook.listened'),
};

const keys: AuditTable<typeof KeysService> = {
  createKey: changes('key.created'),
  listKeys: showsNoAnswers,
  deleteKey: changes('key.revoked'),
};

const audit: AuditTable<typeof AuditService> = { listAuditEntries: notes('audit.listed') };

const hosted: AuditTable<typeof HostedService> = {
  getHostedSession: isAnswer,
  saveHostedAnswers: isAnswer,
  submitHostedSession: isAnswer,
  getHostedForm: isAnswer,
  openHostedSession: isAnswer,
  checkHostedAnswers: changesNothing,
  submitHostedForm: isAnswer,
  submitPostedForm: isAnswer,
};

const uploads: AuditTable<typeof UploadsService> = {
  createUpload: isAnswer,
  uploadFile: isAnswer,
  getUpload: notes('upload.read'),
  getLinkedUpload: notes('upload.read'),
};

const mail: AuditTable<typeof MailService> = {
  getMailLink: changesNothing,
  followMailLink: changes('form.owner_confirmed', 'form.recipient_confirmed', 'form.mails_stopped'),
  startMail: changes('form.mails_started'),
};

const owners: AuditTable<typeof OwnersService> = {
  requestSignIn: isNot('Anybody can ask for a mail to any address. Who follows its link is recorded.'),
  getSignInLink: changesNothing,
  signIn: changes('owner.signed_in'),
  signOut: changes('owner.signed_out'),
  getOwner: showsNoAnswers,
  listOwnedForms: showsNoAnswers,
  getOwnedForm: showsNoAnswers,
  confirmOwnedForm: changes('form.owner_confirmed'),
  closeOwnedForm: changes('form.closed'),
  reopenOwnedForm: changes('form.reopened'),
  setOwnedFormMails: changes('form.mails_stopped', 'form.mails_started'),
  addFormRecipient: changes('form.recipient_added'),
  removeFormRecipient: changes('form.recipient_removed'),
  offerOwnedForm: changes('form.owner_proposed'),
  listOwnedSubmissions: notes('submission.listed'),
  searchOwnedSubmissions: notes('submission.searched'),
  getOwnedFormStatistics: notes('form.statistics_read'),
  getOwnedSubmission: notes('submission.read'),
  deleteOwnedSubmission: changes('submission.deleted'),
  exportOwnedSubmissions: notes('submission.exported'),
  getOwnedUpload: notes('upload.read'),
};

/** What the log has of each RPC. */
export const auditedByMethod: ReadonlyMap<DescMethod, Audited> = new Map<DescMethod, Audited>([
  ...methodEntries(FormsService, forms),
  ...methodEntries(SubmissionsService, submissions),
  ...methodEntries(SessionsService, sessions),
  ...methodEntries(WebhooksService, webhooks),
  ...methodEntries(KeysService, keys),
  ...methodEntries(AuditService, audit),
  ...methodEntries(HostedService, hosted),
  ...methodEntries(UploadsService, uploads),
  ...methodEntries(MailService, mail),
  ...methodEntries(OwnersService, owners),
]);

/** Which actions the entries of an RPC can have, and when they are stored; or why it has none. */
export type Audited =
  | { stored: 'with the change' | 'soon'; actions: readonly AuditAction[] }
  | { stored: 'never'; reason: string };

type AuditTable<S extends DescService> = MethodTable<S, Audited>;
