import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import type { AuditAction } from './audit.ts';
import { type MessageLimits, messageLimits } from './limits/limits.ts';
import { holds, type Scope } from './scopes.ts';

/**
 * What holds for the calls of an RPC: who may make them, how often, how large they may be, what they store and what
 * the audit log has of them. Throws for an RPC that no table names: there is no default.
 */
export function policyOf(method: DescMethod): Policy {
  const policy = policies.get(method);
  if (policy === undefined) throw new TypeError(`No policy for ${method.name}`);
  return policy;
}

/**
 * How much a request message of an RPC may hold, whatever the protocol; a JSON body by REST is one, too. `keyless`
 * callers have no key.
 */
export function limitsOf(method: DescMethod, { keyless = false } = {}): MessageLimits {
  const { size = messageLimits.standard, keylessSize = size } = policyOf(method);
  return keyless ? keylessSize : size;
}

/** Whether pages of any origin may call an RPC: what they need to show forms and to send answers, without a key. */
export function isOpenToPages(method: DescMethod): boolean {
  return servicesForPages.has(method.parent) && policyOf(method).key !== 'required';
}

/** Whether a key with the scopes `held` may make calls with this access. */
export function isWithinScopes({ key, scope }: Access, held: readonly string[]): boolean {
  return key === 'none' || scope === undefined || holds(held, scope);
}

/** What a call of an RPC stores: rows unless its policy says otherwise, nothing if it has no side effects. */
export function storedBy(method: DescMethod): 'files' | 'rows' | 'nothing' {
  const { stores = 'rows' } = policyOf(method);
  return method.idempotency === IdempotencyLevel.NO_SIDE_EFFECTS ? 'nothing' : stores;
}

const servicesForPages: ReadonlySet<DescService> = new Set<DescService>([
  FormsService,
  SubmissionsService,
  UploadsService,
  HostedService,
]);

const needs = (scope: Scope) => ({ key: 'required', scope }) as const;
const open = { key: 'none' } as const;

/** Needs a key, but where keys are not required it answers without one, in the default project. */
const mayOpen = (scope: Scope) => ({ key: 'required', scope, openWithoutKeys: true }) as const;

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

/** What a post of a page counts against, by what it comes to. */
export const pageLimits = {
  submit: { name: 'submit', calls: 60, per: 'minute', each: 'form' },
  /** Saving answers, submitting and starting over. Anybody can begin sessions, so that all of a client's are counted together. */
  session: { name: 'session', calls: 600, per: 'minute' },
  /** Each opens a session that is kept for a week. */
  visit: { name: 'visit', calls: 100, per: 'hour', each: 'form' },
  /** Without a session. A person goes through a few steps a minute, and a network of people through some more. */
  check: { name: 'check', calls: 300, per: 'minute', each: 'form' },
} as const satisfies Record<string, Limit>;

const forms: MethodTable<typeof FormsService> = {
  validateForm: {
    ...mayOpen('forms:read'),
    audit: changesNothing,
    size: messageLimits.definition,
    keylessSize: messageLimits.keylessDefinition,
  },
  createForm: {
    key: 'optional',
    scope: 'forms:write',
    limit: { name: 'create', calls: 100, per: 'hour' },
    audit: changes('form.created'),
    size: messageLimits.definition,
    keylessSize: messageLimits.keylessDefinition,
  },
  getActivation: { ...open, audit: changesNothing },
  activateForm: {
    key: 'none',
    limit: { name: 'activate', calls: 30, per: 'hour', each: 'form', wider: true },
    audit: changes('form.activated'),
  },
  getForm: { ...needs('forms:read'), audit: showsNoAnswers },
  listForms: { ...needs('forms:read'), audit: showsNoAnswers },
  listFormVersions: { ...needs('forms:read'), audit: showsNoAnswers },
  getFormVersion: { ...needs('forms:read'), audit: showsNoAnswers },
  publishFormVersion: {
    ...needs('forms:write'),
    audit: changes('form.published'),
    size: messageLimits.definition,
  },
  archiveForm: { ...needs('forms:write'), audit: changes('form.archived'), stores: 'nothing' },
  deleteForm: { ...needs('submissions:delete'), audit: changes('form.deleted'), stores: 'nothing' },
  changeFormOwner: { ...needs('forms:write'), audit: changes('form.owner_proposed') },
  getAgentSchema: { ...mayOpen('forms:read'), audit: showsNoAnswers },
};

const submit = { key: 'none', limit: pageLimits.submit } as const;
const submitManaged = { ...mayOpen('submissions:write'), limit: pageLimits.submit };

const submissions: MethodTable<typeof SubmissionsService> = {
  createSubmission: { ...submit, audit: isAnswer },
  createManagedSubmission: { ...submitManaged, audit: isAnswer },
  checkAnswers: { ...submit, audit: changesNothing },
  checkManagedAnswers: { ...submitManaged, audit: changesNothing },
  createDemoSubmission: { key: 'none', limit: { name: 'demo', calls: 30, per: 'hour' }, audit: isAnswer },
  getSubmission: { ...needs('submissions:read'), audit: notes('submission.read') },
  listSubmissions: { ...needs('submissions:read'), audit: notes('submission.listed') },
  exportSubmissions: { ...needs('submissions:read'), audit: notes('submission.exported') },
  watchSubmissions: { ...needs('submissions:read'), audit: notes('submission.watched') },
  deleteSubmission: {
    ...needs('submissions:delete'),
    audit: changes('submission.deleted'),
    stores: 'nothing',
  },
  eraseSubmissions: {
    ...needs('submissions:delete'),
    audit: changes('submission.erased'),
    stores: 'nothing',
  },
};

const sessions: MethodTable<typeof SessionsService> = {
  createSession: { ...mayOpen('sessions:write'), audit: notes('session.created') },
  getSession: { ...mayOpen('sessions:read'), audit: notes('session.read') },
  awaitSession: { ...mayOpen('sessions:read'), audit: notes('session.read') },
  getSessionAgentSchema: { ...needs('sessions:read'), audit: notes('session.read') },
  listSessions: { ...needs('sessions:read'), audit: notes('session.listed') },
  updateSession: { ...mayOpen('sessions:write'), audit: notes('session.changed') },
  cancelSession: { ...needs('sessions:write'), audit: notes('session.cancelled'), stores: 'nothing' },
  submitSession: { ...mayOpen('sessions:write'), audit: isAnswer },
};

const webhooks: MethodTable<typeof WebhooksService> = {
  createWebhook: { ...mayOpen('webhooks:write'), audit: changes('webhook.created') },
  listWebhooks: { ...mayOpen('webhooks:read'), audit: showsNoAnswers },
  getWebhook: { ...mayOpen('webhooks:read'), audit: showsNoAnswers },
  updateWebhook: { ...needs('webhooks:write'), audit: changes('webhook.changed'), stores: 'nothing' },
  deleteWebhook: { ...mayOpen('webhooks:write'), audit: changes('webhook.deleted'), stores: 'nothing' },
  rotateWebhookSecret: { ...needs('webhooks:write'), audit: changes('webhook.secret_rotated') },
  testWebhook: { ...needs('webhooks:write'), audit: changes('webhook.tested') },
  listDeliveries: { ...mayOpen('webhooks:read'), audit: notes('delivery.listed') },
  listFormDeliveries: { ...needs('submissions:read'), audit: notes('delivery.listed') },
  replayDelivery: { ...mayOpen('webhooks:write'), audit: changes('delivery.replayed') },
  replayDeliveries: { ...needs('webhooks:write'), audit: changes('delivery.replayed') },
  listen: { ...needs('webhooks:write'), audit: notes('webhook.listened') },
};

const keys: MethodTable<typeof KeysService> = {
  createKey: { ...needs('keys:write'), audit: changes('key.created') },
  listKeys: { ...needs('keys:write'), audit: showsNoAnswers },
  deleteKey: { ...needs('keys:write'), audit: changes('key.revoked'), stores: 'nothing' },
};

const audit: MethodTable<typeof AuditService> = {
  listAuditEntries: { ...needs('audit:read'), audit: notes('audit.listed') },
};

const hosted: MethodTable<typeof HostedService> = {
  getHosted: { ...open, audit: isAnswer, stores: 'nothing' },
  openHostedSession: { key: 'none', limit: pageLimits.visit, audit: isAnswer },
  // Which of the limits of pages it counts against is known when it is read.
  postHosted: { ...open, audit: isAnswer },
  submitPostedForm: { ...submit, audit: isAnswer },
};

const upload: Access = {
  key: 'none',
  limit: { name: 'upload', calls: 60, per: 'minute' },
};

const uploads: MethodTable<typeof UploadsService> = {
  createUpload: { ...upload, audit: isAnswer, stores: 'files', size: messageLimits.upload },
  uploadFile: { ...upload, audit: isAnswer, stores: 'files' },
  getUpload: { ...needs('submissions:read'), audit: notes('upload.read') },
  // A person opens some files of an export at a time; the token in the link is the credential.
  getLinkedUpload: {
    key: 'none',
    limit: { name: 'file', calls: 120, per: 'minute' },
    audit: notes('upload.read'),
  },
};

/** The token in the link is the credential. */
const mailedLink: Access = { key: 'none', limit: { name: 'mailed-link', calls: 60, per: 'minute' } };

const mail: MethodTable<typeof MailService> = {
  getMailLink: { ...mailedLink, audit: changesNothing },
  followMailLink: {
    ...mailedLink,
    audit: changes('form.owner_confirmed', 'form.recipient_confirmed', 'form.mails_stopped'),
    stores: 'nothing',
  },
  startMail: { ...mailedLink, audit: changes('form.mails_started') },
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

const owners: MethodTable<typeof OwnersService> = {
  requestSignIn: {
    ...signInLink,
    limit: { name: 'sign-in', calls: 20, per: 'hour', wider: true },
    audit: isNot('Anybody can ask for a mail to any address. Who follows its link is recorded.'),
  },
  getSignInLink: { ...signInLink, audit: changesNothing },
  signIn: { ...signInLink, audit: changes('owner.signed_in') },
  signOut: { ...owner, audit: changes('owner.signed_out'), stores: 'nothing' },
  listOwnerSessions: { ...owner, audit: showsNoAnswers },
  endOwnerSession: { ...owner, audit: changes('owner.signed_out'), stores: 'nothing' },
  getOwner: { ...owner, audit: showsNoAnswers },
  listOwnedForms: { ...owner, audit: showsNoAnswers },
  getOwnedForm: { ...owner, audit: showsNoAnswers },
  confirmOwnedForm: { ...owner, audit: changes('form.owner_confirmed') },
  closeOwnedForm: { ...owner, audit: changes('form.closed'), stores: 'nothing' },
  reopenOwnedForm: { ...owner, audit: changes('form.reopened') },
  setOwnedFormMails: { ...owner, audit: changes('form.mails_stopped', 'form.mails_started') },
  addFormRecipient: { ...ownerAsksOthers, audit: changes('form.recipient_added') },
  removeFormRecipient: { ...owner, audit: changes('form.recipient_removed'), stores: 'nothing' },
  offerOwnedForm: { ...ownerAsksOthers, audit: changes('form.owner_proposed') },
  listOwnedSubmissions: { ...owner, audit: notes('submission.listed') },
  searchOwnedSubmissions: { ...ownerReadsMany, audit: notes('submission.searched') },
  getOwnedFormStatistics: { ...ownerReadsMany, audit: notes('form.statistics_read') },
  getOwnedSubmission: { ...owner, audit: notes('submission.read') },
  replayOwnedDelivery: { ...owner, audit: changes('delivery.replayed') },
  deleteOwnedSubmission: { ...owner, audit: changes('submission.deleted'), stores: 'nothing' },
  exportOwnedSubmissions: { ...ownerReadsMany, audit: notes('submission.exported') },
  getOwnedUpload: { ...owner, audit: notes('upload.read') },
};

const health: MethodTable<typeof Health> = {
  check: { ...open, audit: changesNothing },
  watch: { ...open, audit: changesNothing },
};

const reflection: MethodTable<typeof ServerReflection> = {
  serverReflectionInfo: { ...open, audit: changesNothing, stores: 'nothing' },
};

/** What holds for each RPC. */
export const policies: ReadonlyMap<DescMethod, Policy> = new Map<DescMethod, Policy>([
  ...entriesOf(FormsService, forms),
  ...entriesOf(SubmissionsService, submissions),
  ...entriesOf(SessionsService, sessions),
  ...entriesOf(WebhooksService, webhooks),
  ...entriesOf(KeysService, keys),
  ...entriesOf(AuditService, audit),
  ...entriesOf(HostedService, hosted),
  ...entriesOf(UploadsService, uploads),
  ...entriesOf(MailService, mail),
  ...entriesOf(OwnersService, owners),
  ...entriesOf(Health, health),
  ...entriesOf(ServerReflection, reflection),
]);

function entriesOf(service: DescService, table: Readonly<Record<string, Policy>>): [DescMethod, Policy][] {
  return service.methods.flatMap((method): [DescMethod, Policy][] => {
    const policy = table[method.localName];
    return policy === undefined ? [] : [[method, policy]];
  });
}

export type Policy = Access & {
  audit: Audited;
  /** `messageLimits.standard` by default. */
  size?: MessageLimits;
  /** The same without a key; by default no other. */
  keylessSize?: MessageLimits;
  /**
   * What fills a disk. `nothing`: not marked as free of side effects, but makes room, keeps more from coming, or
   * stores next to nothing.
   */
  stores?: 'files' | 'rows' | 'nothing';
};

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
export type Limit = {
  name: string;
  calls: number;
  per: 'minute' | 'hour';
  each?: 'form' | 'owner';
  /** Whether it counts for wider networks, too, as what mails somebody does: see `widerNetworksOf`. */
  wider?: true;
};

/** Which actions the entries of an RPC can have, and when they are stored; or why it has none. */
type Audited =
  | { stored: 'with the change' | 'soon'; actions: readonly AuditAction[] }
  | { stored: 'never'; reason: string };

/** Says something of every RPC of a service, by the name of its method. */
type MethodTable<S extends DescService> = { [M in keyof S['method']]: Policy };
