import { isDeepStrictEqual } from 'node:util';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import {
  ChangeKind,
  Consumer,
  type DefinitionChangeSchema,
} from '../../../gen/headlessforms/v1/changes_pb.js';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { PublishFormVersionRequest } from '../../../gen/headlessforms/v1/forms_pb.js';
import { changesBetween, type DefinitionChange, refusedBy } from '../../domain/contracts/changes.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { recipientsIn } from '../../domain/definition/delivery.ts';
import { enumValue } from '../../domain/enums.ts';
import { type FailureFacts, failed } from '../../domain/errors/failure.ts';
import { fieldsNamedIn } from '../../domain/events/template.ts';
import { isKeyless } from '../../domain/ids.ts';
import { holds } from '../../domain/scopes.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { insertEvents } from '../../store/events.ts';
import { type Form, findFormState, lockForm } from '../../store/forms/forms.ts';
import { findVersion, publishVersion, type Version, versionsInUse } from '../../store/forms/versions.ts';
import { countOpenSessions } from '../../store/sessions/sessions.ts';
import { findDefinitionWebhook, listTemplates } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
import { changeableForm, definitionInUse, requireRight } from './form-access.ts';
import { sharedFormToMessage, versionToMessage } from './form-proto.ts';
import { formEvents, newVersion, readDefinition } from './form-rows.ts';

/** Publishes a new definition of a published form; one that was published before gets its old version back. */
export async function publishFormVersion(
  context: ServiceContext,
  request: PublishFormVersionRequest,
  call: HandlerContext,
) {
  const { database, settings, now } = context;
  const { formId, expectedVersionId, allowBreaking } = request;
  const caller = callerOf(call);
  const form = await changeableForm(database, caller, formId);
  const keyless = isKeyless(form);
  const { definition, deliverySecret } = readDefinition(request.definition, {
    keyless,
    allowPrivateUrls: settings.allowPrivateWebhooks,
    ...nextOf(await definitionInUse(database, form)),
  });

  const next = { formId, definition, deliverySecret, at: new Date(now()), expectedVersionId, allowBreaking };
  const reply = await database.transaction(async (tx) => {
    const { version, webhookSecret, changes } = await publishNext(tx, context, call, next);
    const published = await changeableForm(tx, caller, formId);
    return keepReply(tx, call, {
      form: sharedFormToMessage(context, published, definition, caller),
      version: versionToMessage(version, published),
      webhookSecret,
      changes: await withAffected(tx, caller, published, changes),
    });
  });
  context.forms.forget(formId);
  context.notifyWorkers();
  return reply;
}

/**
 * Makes a definition the current version of a published form of the caller's project, with the webhook, the recipients
 * and the audit entry that follow from it. The form is locked first, so that all is judged by what is current then.
 */
export async function publishNext(
  tx: Transaction,
  context: ServiceContext,
  call: HandlerContext,
  next: NextDefinition,
): Promise<Published> {
  const { formId, definition, deliverySecret: secret, at } = next;
  const caller = next.publisher ?? callerOf(call);
  const before = await lockPublished(tx, caller, next);
  const former = await definitionInUse(tx, before);
  await requireRights(tx, context, caller, former, next);
  const { changes, breaking } = await judgeChanges(tx, before, former, next);

  const currentId = before.currentVersionId ?? '';
  const version = await publishVersion(tx, {
    formId,
    currentId,
    version: newVersion(definition, at),
    breaking,
  });
  const { delivery } = definition;
  const formerly = recipientsIn(former.delivery);
  const added = recipientsIn(delivery).filter((address) => !formerly.includes(address));
  if (added.length > 0) await insertEvents(tx, [formEvents.recipientsAdded(before, at, added)]);
  const webhookSecret = await syncDefinitionWebhook(tx, context, { form: before, delivery, secret, at });
  const detail = breaking ? { detail: 'although it breaks the compatibility of the form' } : {};
  const entry = { projectId: before.projectId, resource: version.id, formId, ...detail };
  await context.audit.change(tx, call, entry);
  return { version, webhookSecret, changes };
}

/** Throws unless the form is published, in the version that the next one was made from. */
async function lockPublished(
  tx: Transaction,
  caller: Publisher,
  { formId, expectedVersionId }: NextDefinition,
): Promise<Form> {
  await lockForm(tx, formId);
  const form = await changeableForm(tx, caller, formId);
  refuseUnlessPublished(form);
  if (expectedVersionId === '' || expectedVersionId === form.currentVersionId) return form;
  throw failed(Reason.CONFLICT, `The current version is ${form.currentVersionId}`);
}

/** Throws where the caller may not change to whom answers go, or how long those that are there are kept. */
async function requireRights(
  tx: Transaction,
  { secrets }: ServiceContext,
  caller: Publisher,
  former: FormDefinition,
  { formId, definition, deliverySecret }: NextDefinition,
): Promise<void> {
  const webhook = deliverySecret === undefined ? null : await findDefinitionWebhook(tx, formId);
  const isSecretNew =
    deliverySecret !== undefined && (webhook === null || secrets.open(webhook.secret) !== deliverySecret);
  if (isSecretNew || !isDeepStrictEqual(definition.delivery, former.delivery))
    requireRight(caller, 'destination');
  if (keepsShorter(definition, former) && (await hasSubmissions(tx, formId)))
    requireRight(caller, 'retention');
}

/** Throws for what breaks the promise of the form, unless that is allowed: then it is `breaking`. */
async function judgeChanges(
  tx: Transaction,
  before: Form,
  former: FormDefinition,
  { formId, definition, allowBreaking }: NextDefinition,
): Promise<{ changes: DefinitionChange[]; breaking: boolean }> {
  const changes = await changesSince(tx, formId, former, definition);
  const refused = refusedBy(former.settings, changes);
  const breaking = refused.length > 0;
  if (!breaking || allowBreaking) return { changes, breaking };
  const listed = await withAffected(tx, { scopes: [] }, before, refused.slice(0, LISTED_IN_FAILURE));
  throw breakingChange(former, refused, listed);
}

/**
 * What a definition changes of the current one. Where the form promises to stay compatible with all that is in use, what
 * it breaks of these versions follows.
 */
export async function changesSince(
  db: Queries,
  formId: string,
  former: FormDefinition,
  definition: FormDefinition,
): Promise<DefinitionChange[]> {
  const { settings } = former;
  const changes = changesBetween(former, definition);
  if (settings.compatibility !== 'full_transitive' || changes.length === 0) return changes;
  for await (const { definition: used } of versionsInUse(db, formId))
    changes.push(...refusedBy(settings, changesBetween(used, definition)));
  return [...new Map(changes.map((change) => [`${change.path} ${change.kind}`, change])).values()];
}

function breakingChange(
  { settings }: FormDefinition,
  refused: readonly DefinitionChange[],
  changes: FailureFacts['changes'] = [],
) {
  const named = refused.slice(0, NAMED_IN_MESSAGE).map(({ path, kind }) => `${path} (${kind})`);
  const more = refused.length > named.length ? ` and ${refused.length - named.length} more` : '';
  return failed(
    Reason.BREAKING_CHANGE,
    `The form promises to stay compatible (${settings.compatibility}): ${named.join(', ')}${more}`,
    { changes },
  );
}

const NAMED_IN_MESSAGE = 5;

/** With the longest paths, 100 bytes each, and without ids, they fit into the trailers of gRPC. */
const LISTED_IN_FAILURE = 40;

/**
 * How the next definition of a form is checked. One that leaves the URL out, as callers who may not read it do, keeps the
 * one that there is.
 */
export function nextOf(current: FormDefinition): { current: FormDefinition; keptUrl?: string } {
  const { delivery } = current;
  return { current, ...(delivery.type === 'webhook' && { keptUrl: delivery.url }) };
}

function keepsShorter({ settings: now }: FormDefinition, { settings: before }: FormDefinition): boolean {
  const forEver = Number.POSITIVE_INFINITY;
  return (now.retentionDays ?? forEver) < (before.retentionDays ?? forEver);
}

async function hasSubmissions(tx: Transaction, formId: string): Promise<boolean> {
  const form = await findFormState(tx, formId);
  return form !== null && form.accepted + form.spam > 0;
}

/** Throws unless new versions can be published of a form. */
export function refuseUnlessPublished({ status }: Form): void {
  switch (status) {
    case 'published':
      return;
    case 'draft':
      throw failed(Reason.CONFLICT, 'The form is a draft: activate it first', {
        nextCall: NextCall.ACTIVATE_FORM,
      });
    case 'archived':
      throw failed(Reason.ARCHIVED, 'The form is archived');
    default:
      status satisfies never;
  }
}

/** `expectedVersionId`: the version that it was made from; empty: any. */
type NextDefinition = {
  formId: string;
  definition: FormDefinition;
  deliverySecret: string | undefined;
  at: Date;
  expectedVersionId: string;
  allowBreaking: boolean;
  /** For whom it is published; absent: the caller. */
  publisher?: Publisher;
};

type Publisher = Pick<Caller, 'projectId' | 'keyId' | 'scopes'>;

/** `webhookSecret` is empty unless a secret was made. */
export type Published = { version: Version; webhookSecret: string; changes: readonly DefinitionChange[] };

/** The messages of changes, with who relies now on the fields that they are about, as far as the caller may know. */
export async function withAffected(
  db: Queries,
  { scopes }: Pick<Caller, 'scopes'>,
  form: Form,
  changes: readonly DefinitionChange[],
): Promise<MessageInitShape<typeof DefinitionChangeSchema>[]> {
  if (changes.every(({ breaks }) => breaks.length === 0)) return changes.map(changeToMessage);
  const openByField = await openSessionsByField(db, form.id);
  const templates = (await listTemplates(db, form)).map(({ id, template }) => ({
    id,
    fields: fieldsNamedIn(template),
  }));
  const maySee = holds(scopes, 'webhooks:read');
  return changes.map((change) => {
    const [, fieldId = ''] = /^fields\.(.+)$/.exec(change.path) ?? [];
    const naming = change.breaks.includes('webhooks')
      ? templates.filter(({ fields }) => fields.has(fieldId))
      : [];
    return {
      ...changeToMessage(change),
      openSessions: change.breaks.length === 0 ? 0 : (openByField.get(fieldId) ?? 0),
      webhooks: naming.length,
      webhookIds: maySee ? naming.map(({ id }) => id) : [],
    };
  });
}

function changeToMessage(change: DefinitionChange): MessageInitShape<typeof DefinitionChangeSchema> {
  return {
    path: change.path,
    kind: enumValue(ChangeKind, change.kind),
    breaks: change.breaks.map((name) => enumValue(Consumer, name)),
    backwardCompatible: change.backward,
    forwardCompatible: change.forward,
  };
}

/** How many open sessions ask each field, by the versions that they keep. */
async function openSessionsByField(db: Queries, formId: string): Promise<Map<string, number>> {
  const byField = new Map<string, number>();
  for (const { versionId, count } of await countOpenSessions(db, formId)) {
    const version = await findVersion(db, versionId);
    for (const { id } of version?.definition.fields ?? []) byField.set(id, (byField.get(id) ?? 0) + count);
  }
  return byField;
}
