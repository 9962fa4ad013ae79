import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { HostedService } from '../../gen/forms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/forms/v1/audit_pb.js';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { MailService } from '../../gen/forms/v1/mail_pb.js';
import { OwnersService } from '../../gen/forms/v1/owners_pb.js';
import { SessionsService } from '../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/forms/v1/webhooks_pb.js';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.js';
import { type MethodTable, methodEntries } from '../domain/method-table.ts';
import type { Scope } from '../domain/scopes.ts';

/** Who may call an RPC, and how often. Throws for an RPC that no table names: there is no default. */
export function accessOf(method: DescMethod): Access {
  const access = accessByMethod.get(method);
  if (access === undefined) throw new TypeError(`Nothing says who may call ${method.name}`);
  return access;
}

/** Whether pages of any origin may call an RPC: what they need to show forms and to send answers, without a key. */
export function isOpenToPages(method: DescMethod): boolean {
  return servicesForPages.has(method.parent) && accessOf(method).key !== 'required';
}

const servicesForPages: ReadonlySet<DescService> = new Set<DescService>([
  FormsService,
  SubmissionsService,
  UploadsService,
  HostedService,
]);

const needs = (scope: Scope): Access => ({ key: 'required', scope });
const open: Access = { key: 'none' };

/** Needs a key, but where keys are not required it answers without one, in the default project. */
const mayOpen = (scope: Scope): Access => ({ key: 'required', scope, openWithoutKeys: true });

const forms: AccessTable<typeof FormsService> = {
  validateForm: mayOpen('forms:read'),
  createForm: {
    key: 'optional',
    scope: 'forms:write',
    limit: { name: 'create', calls: 100, per: 'hour' },
  },
  getActivation: open,
  activateForm: { key: 'none', limit: { name: 'activate', calls: 30, per: 'hour', each: 'form' } },
  getForm: needs('forms:read'),
  listForms: needs('forms:read'),
  listFormVersions: needs('forms:read'),
  getFormVersion: needs('forms:read'),
  publishFormVersion: needs('forms:write'),
  archiveForm: needs('forms:write'),
  deleteForm: needs('submissions:delete'),
  changeFormOwner: needs('forms:write'),
  getAgentSchema: mayOpen('forms:read'),
};

const submitLimit: Limit = { name: 'submit', calls: 60, per: 'minute', each: 'form' };
const submit: Access = { key: 'none', limit: submitLimit };
const submitManaged: Access = { ...mayOpen('submissions:write'), limit: submitLimit };

const submissions: AccessTable<typeof SubmissionsService> = {
  createSubmission: submit,
  createManagedSubmission: submitManaged,
  checkAnswers: submit,
  checkManagedAnswers: submitManaged,
  createDemoSubmission: { key: 'none', limit: { name: 'demo', calls: 30, per: 'hour' } },
  getSubmission: needs('submissions:read'),
  listSubmissions: needs('submissions:read'),
  exportSubmissions: needs('submissions:read'),
  watchSubmissions: needs('submissions:read'),
  deleteSubmission: needs('submissions:delete'),
  eraseSubmissions: needs('submissions:delete'),
};

const sessions: AccessTable<typeof SessionsService> = {
  createSession: mayOpen('sessions:write'),
  getSession: mayOpen('sessions:read'),
  awaitSession: mayOpen('sessions:read'),
  getSessionAgentSchema: needs('sessions:read'),
  listSessions: needs('sessions:read'),
  updateSession: mayOpen('sessions:write'),
  cancelSession: needs('sessions:write'),
  submitSession: mayOpen('sessions:write'),
};

const webhooks: AccessTable<typeof WebhooksService> = {
  createWebhook: mayOpen('webhooks:write'),
  listWebhooks: mayOpen('webhooks:read'),
  getWebhook: mayOpen('webhooks:read'),
  updateWebhook: needs('webhooks:write'),
  deleteWebhook: mayOpen('webhooks:write'),
  rotateWebhookSecret: needs('webhooks:write'),
  testWebhook: needs('webhooks:write'),
  listDeliveries: mayOpen('webhooks:read'),
  listFormDeliveries: needs('submissions:read'),
  replayDelivery: mayOpen('webhooks:write'),
  replayDeliveries: needs('webhooks:write'),
  listen: needs('webhooks:write'),
};

const keys: AccessTable<typeof KeysService> = {
  createKey: needs('keys:write'),
  listKeys: needs('keys:write'),
  deleteKey: needs('keys:write'),
};

const audit: AccessTable<typeof AuditService> = { listAuditEntries: needs('audit:read') };

/** Saving answers and submitting. Anybody can begin sessions, so that all of a client's are counted together. */
const inSession: Access = { key: 'none', limit: { name: 'session', calls: 600, per: 'minute' } };

const hosted: AccessTable<typeof HostedService> = {
  getHostedSession: open,
  saveHostedAnswers: inSession,
  submitHostedSession: inSession,
  getHostedForm: open,
  // Each opens a session that is kept for a week.
  openHostedSession: { key: 'none', limit: { name: 'visit', calls: 100, per: 'hour', each: 'form' } },
  // A person goes through a few steps a minute, and a network of people through some more.
  checkHostedAnswers: { key: 'none', limit: { name: 'check', calls: 300, per: 'minute', each: 'form' } },
  submitHostedForm: submit,
  submitPostedForm: submit,
};

const upload: Access = {
  key: 'none',
  limit: { name: 'upload', calls: 60, per: 'minute', each: 'form' },
};

const uploads: AccessTable<typeof UploadsService> = {
  createUpload: upload,
  uploadFile: upload,
  getUpload: needs('submissions:read'),
  // A person opens some files of an export at a time; the token in the link is the credential.
  getLinkedUpload: { key: 'none', limit: { name: 'file', calls: 120, per: 'minute' } },
};

const mail: AccessTable<typeof MailService> = {
  getMailLink: open,
  followMailLink: open,
  startMail: open,
};

const owner: Access = {
  key: 'none',
  owner: 'required',
  limit: { name: 'owner', calls: 300, per: 'minute', each: 'owner' },
};

/** Of calls that read many submissions. */
const ownerReadsMany: Access = {
  ...owner,
  limit: { name: 'owner-reads', calls: 30, per: 'minute', each: 'owner' },
};

/** The token in the link is the credential. */
const signInLink: Access = {
  key: 'none',
  owner: 'none',
  limit: { name: 'sign-in-link', calls: 60, per: 'minute' },
};

/** Of calls that mail somebody who has not asked for it. */
const ownerAsksOthers: Access = {
  ...owner,
  limit: { name: 'owner-asks', calls: 20, per: 'hour', each: 'owner' },
};

const owners: AccessTable<typeof OwnersService> = {
  requestSignIn: { ...signInLink, limit: { name: 'sign-in', calls: 20, per: 'hour' } },
  getSignInLink: signInLink,
  signIn: signInLink,
  signOut: owner,
  getOwner: owner,
  listOwnedForms: owner,
  getOwnedForm: owner,
  confirmOwnedForm: owner,
  closeOwnedForm: owner,
  reopenOwnedForm: owner,
  setOwnedFormMails: owner,
  addFormRecipient: ownerAsksOthers,
  removeFormRecipient: owner,
  offerOwnedForm: ownerAsksOthers,
  listOwnedSubmissions: owner,
  searchOwnedSubmissions: ownerReadsMany,
  getOwnedFormStatistics: ownerReadsMany,
  getOwnedSubmission: owner,
  deleteOwnedSubmission: owner,
  exportOwnedSubmissions: ownerReadsMany,
  getOwnedUpload: owner,
};

const health: AccessTable<typeof Health> = { check: open, watch: open };

const reflection: AccessTable<typeof ServerReflection> = { serverReflectionInfo: open };

const accessByMethod = new Map<DescMethod, Access>([
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
  ...methodEntries(Health, health),
  ...methodEntries(ServerReflection, reflection),
  ...methodEntries(ServerReflectionAlpha, reflection),
]);

/** Who may call an RPC. */
export type Access = {
  /**
   * `required`: only with a key that has `scope`. `optional`: with such a key or none. `none`: any
   * key or none. A key that is given is always checked.
   */
  key: 'none' | 'optional' | 'required';
  scope?: Scope;
  /** Whether a `required` key may be missing where the settings do not require keys. */
  openWithoutKeys?: boolean;
  /** On the RPCs of owners, which take no key: whether they need an owner's session. */
  owner?: 'required' | 'none';
  /** How often one client address may call without a key, or one owner. */
  limit?: Limit;
};

/** A rate of calls. Minutes are counted in this process, hours in the database over all. */
export type Limit = { name: string; calls: number; per: 'minute' | 'hour'; each?: 'form' | 'owner' };

type AccessTable<S extends DescService> = MethodTable<S, Access>;
