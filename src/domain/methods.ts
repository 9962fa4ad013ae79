import type { DescMethod, DescService, MessageShape } from '@bufbuild/protobuf';
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
 * Whether the answers of a method are too small to compress. Then no encoding is announced: the health checks within
 * channels of older gRPC libraries (Python and Ruby of Debian 12) end their program on any.
 */
export function isPlain({ parent }: DescMethod): boolean {
  return parent.typeName === Health.typeName;
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

/** What pages read, and what needs a key reads where keys are not required. */
const reads = { name: 'read', per: 'minute', client: 600, form: 600, total: 60_000 } as const;

/** Needs no key. */
const open = <L extends ClientLimits>(limits: L) => ({ key: 'none', limits }) as const;

/** Answers with a key or without one. */
const takes = <L extends ClientLimits>(scope: Scope, limits: L) =>
  ({ key: 'optional', scope, limits }) as const;

const openRead = open(reads);

/** Needs a key, but where keys are not required it answers without one, in the default project. */
const mayOpen = <L extends ClientLimits>(scope: Scope, limits: L) =>
  ({ key: 'required', scope, openWithoutKeys: true, limits }) as const;

/** Stored with what is changed. */
const changes = (...actions: AuditAction[]): Audited => ({ stored: 'with the change', actions });

/** Stored soon after. */
const notes = (...actions: AuditAction[]): Audited => ({ stored: 'soon', actions });

const isNot = (reason: string): Audited => ({ stored: 'never', reason });

const keepsReply = { keeps: 'reply' } as const;

/** Changes whose reply shows what cannot be made again, so that a repeated call gets it. */
const repeats = (...actions: AuditAction[]) => ({ audit: changes(...actions), ...keepsReply });

/** Changes that only take away or mark, and go on while the disk is low. */
const frees = (...actions: AuditAction[]) => ({ audit: changes(...actions), stores: 'nothing' }) as const;

/** Reads many rows, which may take too long. */
const lists = (action: AuditAction, narrowedBy: string) => ({ audit: notes(action), narrowedBy });

const changesNothing = isNot('It changes nothing, and shows nothing that was stored.');
const showsNoAnswers = isNot('It shows definitions and settings, which hold nothing of people who answered.');
const isAnswer = isNot(
  'It is what people answer: submissions and files say themselves where they come from.',
);

/** What a post of a page counts against, by what it comes to. */
export const pageLimits = {
  submit: { name: 'submit', per: 'minute', client: 600, form: 60, total: 60_000 },
  /**
   * Saving answers, submitting and starting over. Anybody can begin sessions, so that all of a client's are counted
   * together.
   */
  session: { name: 'session', per: 'minute', client: 600, total: 30_000 },
  /** Each opens a session that is kept for a week. */
  visit: { name: 'visit', per: 'hour', client: 300, form: 100, total: 3_000 },
  /** Emails a code to the address that a visitor of a form's page has entered. */
  code: { name: 'code', per: 'hour', client: 10, total: 600 },
  /** Without a session. A person goes through a few steps a minute, and a network of people through some more. */
  check: { name: 'check', per: 'minute', client: 600, form: 300, total: 30_000 },
} as const satisfies Record<string, ClientLimits>;

const forms: MethodTable<typeof FormsService> = {
  validateForm: {
    ...mayOpen('forms:read', { name: 'validate', per: 'minute', client: 120, total: 3_000 }),
    audit: changesNothing,
    size: messageLimits.definition,
    keylessSize: messageLimits.keylessDefinition,
  },
  createForm: {
    ...takes('forms:write', { name: 'create', per: 'hour', client: 100, total: 600 }),
    ...repeats('form.created'),
    size: messageLimits.definition,
    keylessSize: messageLimits.keylessDefinition,
  },
  getActivation: { ...openRead, audit: changesNothing },
  activateForm: {
    ...open({ name: 'activate', per: 'hour', client: 120, form: 30, total: 600, wider: true }),
    ...repeats('form.activated'),
  },
  getForm: { ...needs('forms:read'), audit: showsNoAnswers },
  listForms: { ...needs('forms:read'), audit: showsNoAnswers },
  listFormVersions: { ...needs('forms:read'), audit: showsNoAnswers },
  getFormVersion: { ...needs('forms:read'), audit: showsNoAnswers },
  publishFormVersion: {
    ...needs('forms:write'),
    ...repeats('form.published'),
    size: messageLimits.definition,
  },
  applyForm: {
    ...needs('forms:publish'),
    ...repeats('form.published', 'form.created', 'form.owner_proposed'),
    size: messageLimits.definition,
  },
  updateForm: { ...needs('forms:write'), audit: changes('form.updated') },
  archiveForm: { ...needs('forms:write'), ...frees('form.archived') },
  deleteForm: { ...needs('submissions:delete'), ...frees('form.deleted') },
  changeFormOwner: { ...needs('forms:write'), ...repeats('form.owner_proposed') },
  getAgentSchema: { ...mayOpen('forms:read', reads), audit: showsNoAnswers },
  getAnswersSchema: { ...needs('forms:read'), audit: showsNoAnswers },
  getPublicForm: { ...openRead, audit: changesNothing },
};

const submit = open(pageLimits.submit);
const submitManaged = mayOpen('submissions:write', pageLimits.submit);

/** What to ask for where a list takes too long. */
const shorterTime = 'a shorter time (created_after, created_before), fewer conditions or a smaller page';
const smallerPage = 'another status or a smaller page';

const submissions: MethodTable<typeof SubmissionsService> = {
  createSubmission: { ...submit, audit: isAnswer },
  createManagedSubmission: { ...submitManaged, audit: isAnswer },
  checkAnswers: { ...submit, audit: changesNothing },
  checkManagedAnswers: { ...submitManaged, audit: changesNothing },
  createDemoSubmission: {
    ...open({ name: 'demo', per: 'hour', client: 30, total: 600 }),
    audit: isAnswer,
  },
  getSubmission: { ...needs('submissions:read'), audit: notes('submission.read') },
  listSubmissions: { ...needs('submissions:read'), ...lists('submission.listed', shorterTime) },
  exportSubmissions: {
    ...needs('submissions:read'),
    ...lists('submission.exported', 'a list by created_after and created_before in its place'),
  },
  watchSubmissions: {
    ...needs('submissions:read'),
    streamTokens: true,
    audit: notes('submission.watched'),
  },
  createStreamToken: {
    ...needs('submissions:read'),
    audit: isNot('It reads nothing. Who watches with the token is recorded.'),
    stores: 'nothing',
  },
  deleteSubmission: { ...needs('submissions:delete'), ...frees('submission.deleted') },
  eraseSubmissions: { ...needs('submissions:delete'), ...frees('submission.erased') },
};

const sessions: MethodTable<typeof SessionsService> = {
  createSession: {
    ...mayOpen('sessions:write', pageLimits.session),
    audit: notes('session.created', 'form.created', 'submission.read'),
    size: messageLimits.definition,
  },
  getSession: { ...mayOpen('sessions:read', reads), audit: notes('session.read', 'submission.read') },
  awaitSession: { ...mayOpen('sessions:read', reads), audit: notes('session.read', 'submission.read') },
  getSessionAgentSchema: { ...needs('sessions:read'), audit: notes('session.read') },
  listSessions: { ...needs('sessions:read'), ...lists('session.listed', smallerPage) },
  updateSession: {
    ...mayOpen('sessions:write', pageLimits.session),
    audit: notes('session.changed'),
    ...keepsReply,
  },
  cancelSession: { ...needs('sessions:write'), audit: notes('session.cancelled'), stores: 'nothing' },
  declineSession: {
    ...needs('sessions:write'),
    audit: notes('session.declined'),
    stores: 'nothing',
    ...keepsReply,
  },
  submitSession: { ...mayOpen('sessions:write', pageLimits.session), audit: isAnswer },
};

/** Of changes to webhooks where keys are not required. */
const webhookLimits = { name: 'webhook', per: 'minute', client: 60, form: 60, total: 600 } as const;

const webhooks: MethodTable<typeof WebhooksService> = {
  createWebhook: { ...mayOpen('webhooks:write', webhookLimits), ...repeats('webhook.created') },
  listWebhooks: { ...mayOpen('webhooks:read', reads), audit: showsNoAnswers },
  getWebhook: { ...mayOpen('webhooks:read', reads), audit: showsNoAnswers },
  updateWebhook: { ...needs('webhooks:write'), ...frees('webhook.changed') },
  deleteWebhook: { ...mayOpen('webhooks:write', webhookLimits), ...frees('webhook.deleted') },
  getWebhookPublicKey: { ...openRead, audit: changesNothing },
  rotateWebhookSecret: { ...needs('webhooks:write'), ...repeats('webhook.secret_rotated') },
  testWebhook: { ...needs('webhooks:write'), ...repeats('webhook.tested') },
  listDeliveries: { ...mayOpen('webhooks:read', reads), ...lists('delivery.listed', smallerPage) },
  listFormDeliveries: { ...needs('submissions:read'), ...lists('delivery.listed', smallerPage) },
  replayDelivery: { ...mayOpen('webhooks:write', webhookLimits), ...repeats('delivery.replayed') },
  replayDeliveries: { ...needs('webhooks:write'), ...repeats('delivery.replayed') },
  listen: { ...needs('webhooks:write'), audit: notes('webhook.listened') },
};

const keys: MethodTable<typeof KeysService> = {
  createKey: { ...needs('keys:write'), ...repeats('key.created') },
  listKeys: { ...needs('keys:write'), audit: showsNoAnswers },
  deleteKey: { ...needs('keys:write'), ...frees('key.revoked') },
};

const audit: MethodTable<typeof AuditService> = {
  listAuditEntries: { ...needs('audit:read'), ...lists('audit.listed', shorterTime) },
};

const hosted: MethodTable<typeof HostedService> = {
  getHosted: { ...openRead, audit: isAnswer, stores: 'nothing' },
  openHostedSession: { ...open(pageLimits.visit), audit: isAnswer },
  // Which of the limits of pages it counts against, too, is known when it is read.
  postHosted: {
    ...open({ name: 'post', per: 'minute', client: 900, form: 600, total: 60_000 }),
    audit: isAnswer,
  },
  submitPostedForm: { ...submit, audit: isAnswer },
  previewForm: {
    ...takes('forms:write', { name: 'preview', per: 'minute', client: 60, total: 3_000 }),
    audit: changesNothing,
    size: messageLimits.keylessDefinition,
  },
  sendRespondentCode: {
    ...open({ name: 'send-code', per: 'hour', client: 60, form: 60, total: 600, wider: true }),
    audit: isNot('Anyone who opens a page can ask for a code. The submission says who has given one.'),
    ...keepsReply,
  },
  giveRespondentCode: {
    ...open({ name: 'give-code', per: 'minute', client: 60, form: 60, total: 3_000 }),
    audit: isNot('What is submitted says who has given a code.'),
    ...keepsReply,
  },
};

const upload = open({ name: 'upload', per: 'minute', client: 60, total: 1_200 });

const uploads: MethodTable<typeof UploadsService> = {
  createUpload: { ...upload, audit: isAnswer, stores: 'files', size: messageLimits.upload },
  uploadFile: { ...upload, audit: isAnswer, stores: 'files' },
  getUpload: { ...needs('submissions:read'), audit: notes('upload.read') },
  // A person opens some files of an export at a time; the token in the link is the credential.
  getLinkedUpload: {
    ...open({ name: 'file', per: 'minute', client: 120, total: 6_000 }),
    audit: notes('upload.read'),
  },
};

/** The token in the link is the credential. */
const mailedLink = open({ name: 'mailed-link', per: 'minute', client: 60, total: 3_000 });

const mail: MethodTable<typeof MailService> = {
  getMailLink: { ...mailedLink, audit: changesNothing },
  followMailLink: {
    ...mailedLink,
    ...frees('form.owner_confirmed', 'form.recipient_confirmed', 'form.mails_stopped', 'owner.signed_in'),
  },
  startMail: { ...mailedLink, audit: changes('form.mails_started') },
};

/** Needs a session of an owner. */
const ofOwner = (limits: OwnerLimits) => ({ key: 'none', owner: 'required', limits }) as const;

const owner = ofOwner({ name: 'owner', per: 'minute', owner: 300 });

/** Of calls that read many submissions. */
const ownerReadsMany = ofOwner({ name: 'owner-reads', per: 'minute', owner: 30 });

/** The token in the link is the credential. */
const signInLink = {
  ...open({ name: 'sign-in-link', per: 'minute', client: 60, total: 3_000 }),
  owner: 'none',
} as const;

/** Of calls that email somebody who has not asked for it. */
const ownerAsksOthers = ofOwner({ name: 'owner-asks', per: 'hour', owner: 20 });

const owners: MethodTable<typeof OwnersService> = {
  requestSignIn: {
    ...signInLink,
    limits: { name: 'sign-in', per: 'hour', client: 20, total: 600, wider: true },
    audit: isNot('Anyone can ask for an email to any address. Who follows its link is recorded.'),
    ...keepsReply,
  },
  getSignInLink: { ...signInLink, audit: changesNothing },
  signIn: { ...signInLink, ...repeats('owner.signed_in') },
  signOut: { ...owner, ...frees('owner.signed_out') },
  listOwnerSessions: { ...owner, audit: showsNoAnswers },
  endOwnerSession: { ...owner, ...frees('owner.signed_out') },
  getOwner: { ...owner, audit: showsNoAnswers },
  listOwnedForms: { ...owner, audit: showsNoAnswers },
  getOwnedForm: { ...owner, audit: showsNoAnswers },
  confirmOwnedForm: { ...owner, audit: changes('form.owner_confirmed') },
  closeOwnedForm: { ...owner, ...frees('form.closed') },
  reopenOwnedForm: { ...owner, audit: changes('form.reopened') },
  setOwnedFormMails: { ...owner, audit: changes('form.mails_stopped', 'form.mails_started') },
  addFormRecipient: { ...ownerAsksOthers, ...repeats('form.recipient_added') },
  removeFormRecipient: { ...owner, ...frees('form.recipient_removed') },
  offerOwnedForm: { ...ownerAsksOthers, ...repeats('form.owner_proposed') },
  withdrawOwnedFormOffer: { ...owner, ...frees('form.offer_withdrawn') },
  publishOwnedFormTexts: {
    ...ofOwner({ name: 'owner-texts', per: 'hour', owner: 120 }),
    audit: changes('form.published'),
    size: messageLimits.definition,
  },
  deleteOwnedForm: { ...owner, ...frees('form.deleted') },
  markOwnedSubmissionsRead: {
    ...owner,
    audit: isNot('It is a mark for the owner alone, and shows nothing.'),
    stores: 'nothing',
  },
  listOwnedSubmissions: { ...owner, ...lists('submission.listed', shorterTime) },
  searchOwnedSubmissions: { ...ownerReadsMany, ...lists('submission.searched', shorterTime) },
  getOwnedFormStatistics: {
    ...ownerReadsMany,
    ...lists('form.statistics_read', 'a list by a shorter time in its place'),
  },
  getOwnedSubmission: { ...owner, audit: notes('submission.read') },
  replayOwnedDelivery: { ...owner, ...repeats('delivery.replayed') },
  deleteOwnedSubmission: { ...owner, ...frees('submission.deleted') },
  exportOwnedSubmissions: {
    ...ownerReadsMany,
    ...lists('submission.exported', 'a list by a shorter time in its place'),
  },
  getOwnedUpload: { ...owner, audit: notes('upload.read') },
};

/**
 * Of what asks many times a second in all: balancers and orchestrators, which would stop a process that refuses them.
 */
const probe = open({ name: 'health', per: 'minute', client: 600, total: 600_000 });

const health: MethodTable<typeof Health> = {
  check: { ...probe, audit: changesNothing },
  watch: { ...probe, audit: changesNothing },
};

const reflection: MethodTable<typeof ServerReflection> = {
  serverReflectionInfo: {
    ...open({ name: 'reflection', per: 'minute', client: 60, total: 1_200 }),
    audit: changesNothing,
    stores: 'nothing',
  },
};

/** Of calls of any RPC that name forms which nobody has made: far more than a page with an old address comes to. */
export const unknownForms = { name: 'unknown-form', calls: 60, per: 'minute' } as const;

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

export type Policy = LimitedAccess & {
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
  /**
   * Of what reads much, in statements with a short time limit on a server: what to ask for where one takes longer, to
   * be read after "ask for".
   */
  narrowedBy?: string;
  /**
   * `reply`: with an idempotency key its reply is kept for 24 hours, and given again when the call is repeated. Of
   * other methods that take such a key, what they make keeps it.
   */
  keeps?: 'reply';
  streamTokens?: Access['streamTokens'];
};

/** Who may call an RPC. */
export type Access = {
  /**
   * `required`: only with a key that has `scope`. `optional`: with such a key or none. `none`: any
   * key or none. A key that is given is always checked.
   */
  key: 'none' | 'optional' | 'required';
  scope?: Scope | undefined;
  /** Whether a `required` key may be missing where the settings do not require keys. */
  openWithoutKeys?: boolean | undefined;
  /** Whether a token of `CreateStreamToken` does in place of a key. */
  streamTokens?: true | undefined;
  /** On the RPCs of owners, which take no key: whether they need an owner's session. */
  owner?: 'required' | 'none' | undefined;
};

/** The same, and how often callers without a key may call: what answers them has limits. */
type LimitedAccess =
  | { key: 'required'; scope: Scope; openWithoutKeys?: never; owner?: never; limits?: never }
  | { key: 'required'; scope: Scope; openWithoutKeys: true; owner?: never; limits: ClientLimits }
  | { key: 'optional'; scope: Scope; openWithoutKeys?: never; owner?: never; limits: ClientLimits }
  | { key: 'none'; scope?: never; openWithoutKeys?: never; owner?: 'none'; limits: ClientLimits }
  | { key: 'none'; scope?: never; openWithoutKeys?: never; owner: 'required'; limits: OwnerLimits };

/** How often callers without a key may call. Minutes are counted in this process, hours in the database over all. */
export type ClientLimits = {
  name: string;
  per: 'minute' | 'hour';
  /** Calls of one client: an IPv4 address, or an IPv6 /64. */
  client: number;
  /** Those of them for one form. */
  form?: number;
  /** Calls of all clients a minute, in this process. */
  total: number;
  /** Whether it counts for wider networks, too, as what emails somebody does: see `widerNetworksOf`. */
  wider?: true;
};

/** How often one owner may call. */
type OwnerLimits = { name: string; per: 'minute' | 'hour'; owner: number };

export type Limits = ClientLimits | OwnerLimits;

/** Which actions the entries of an RPC can have, and when they are stored; or why it has none. */
type Audited =
  | { stored: 'with the change' | 'soon'; actions: readonly AuditAction[] }
  | { stored: 'never'; reason: string };

/** Says something of every RPC of a service, by the name of its method. One that names a form has limits for each. */
type MethodTable<S extends DescService> = {
  [M in keyof S['method']]: MessageShape<S['method'][M]['input']> extends { formId: string }
    ? Policy & { limits?: { form: number } | OwnerLimits }
    : Policy;
};
