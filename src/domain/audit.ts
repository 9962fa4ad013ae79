/** An entry of what no call has asked for: what the service does by itself, or an admin command. */
export function systemEntry(entry: Uncalled): NewEntry {
  const { projectId, at, actor = SERVICE, action, resource, formId, detail, count = 1 } = entry;
  return {
    projectId,
    createdAt: new Date(at),
    actor,
    action,
    resource: resource ?? formId ?? null,
    formId: formId ?? null,
    detail: detail ?? null,
    count,
    clientAddress: null,
    requestId: null,
  };
}

/** What was done, by an action of this version. */
export type NewEntry = {
  /** Whose log it belongs to: a project's, or `INSTALLATION`. */
  projectId: string;
  createdAt: Date;
  /** `key:…`, `owner:…`, `admin:…`, `service` or `anonymous`. */
  actor: string;
  action: AuditAction;
  resource: string | null;
  formId: string | null;
  /** Words of this service. Never what callers send. */
  detail: string | null;
  count: number;
  clientAddress: string | null;
  requestId: string | null;
};

/** `at` is in milliseconds since 1970; without a resource it is the form. */
export type Uncalled = Pick<NewEntry, 'projectId' | 'action'> & {
  at: number;
  actor?: string;
  resource?: string;
  formId?: string;
  detail?: string;
  count?: number;
};

/** What was done. `action` may be of a later version. */
export type AuditEntry = Omit<NewEntry, 'action'> & { action: string };

/** The log of what belongs to no project. No id of a project is empty. */
export const INSTALLATION = '';

/** The actor of what nobody has asked for. */
const SERVICE = 'service';

/** Everything that the audit log names, by what it is done to; `removed` is what was older than it may be. */
export const auditActions = [
  'form.created',
  'form.activated',
  'form.published',
  'form.updated',
  'form.archived',
  'form.deleted',
  'form.closed',
  'form.reopened',
  'form.removed',
  'form.owner_proposed',
  'form.offer_withdrawn',
  'form.owner_confirmed',
  'form.recipient_added',
  'form.recipient_removed',
  'form.recipient_confirmed',
  'form.mails_stopped',
  'form.mails_started',
  'form.statistics_read',
  'submission.read',
  'submission.listed',
  'submission.searched',
  'submission.exported',
  'submission.watched',
  'submission.deleted',
  'submission.erased',
  'submission.removed',
  'session.created',
  'session.read',
  'session.listed',
  'session.changed',
  'session.cancelled',
  'session.declined',
  'session.removed',
  'upload.read',
  'webhook.created',
  'webhook.changed',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.tested',
  'webhook.listened',
  'webhook.turned_off',
  'delivery.listed',
  'delivery.replayed',
  'key.created',
  'key.revoked',
  'owner.signed_in',
  'owner.signed_out',
  'project.exported',
  'project.erased',
  'installation.backed_up',
  'installation.secrets_rotated',
  'audit.listed',
  'audit.lost',
] as const;

export type AuditAction = (typeof auditActions)[number];
