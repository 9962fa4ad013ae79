import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type ApplyFormRequest, ApplyOutcome } from '../../../gen/headlessforms/v1/forms_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { ownerProblems, recipientsIn } from '../../domain/definition/delivery.ts';
import { failed, invalid } from '../../domain/errors/failure.ts';
import { required } from '../../domain/errors/violations.ts';
import { newId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { insertEvents } from '../../store/events.ts';
import { type Form, insertForm, lockFormByKey, updateForm } from '../../store/forms/forms.ts';
import { findVersion, publishFirstVersion, type Version } from '../../store/forms/versions.ts';
import { proposeOwner } from '../../store/owners/owners.ts';
import { lockProject } from '../../store/projects/projects.ts';
import { findDefinitionWebhook } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { requireEmail } from '../request-values.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
import { projectForm, requireRight } from './form-access.ts';
import { readFormKey } from './form-keys.ts';
import { sharedFormToMessage, versionToMessage } from './form-proto.ts';
import { formEvents, newForm, newVersion, readDefinition } from './form-rows.ts';
import { nextOf, type Published, publishNext, withAffected } from './publishing.ts';

/**
 * Brings the form with a key to a definition. The form is locked before it is read, and the project if there is no such
 * form yet, so that of two calls at once the second finds what the first has made.
 */
export async function applyForm(context: ServiceContext, request: ApplyFormRequest, call: HandlerContext) {
  const { database, settings, now } = context;
  const caller = callerOf(call);
  if (request.key === '') throw invalid([required('key')]);
  readFormKey(request, { keyless: false });
  const owner = request.owner === '' ? '' : requireEmail(request.owner, 'owner');

  const at = new Date(now());
  const apply = async (tx: Transaction): Promise<Applied> => {
    const form = await lockedForm(tx, caller.projectId, request.key);
    const current = form?.currentVersionId == null ? null : await findVersion(tx, form.currentVersionId);
    const checked = readDefinition(request.definition, {
      keyless: false,
      allowPrivateUrls: settings.allowPrivateWebhooks,
      ...(current !== null && nextOf(current.definition)),
    });
    const wanted = { request: { ...request, owner }, ...checked, at };
    if (form === null || form.status === 'draft') return publishFirst(tx, context, call, form, wanted);
    if (form.status === 'archived' || current === null) throw failed(Reason.ARCHIVED, 'The form is archived');
    return publishChanges(tx, context, call, { form, current }, wanted);
  };
  const { formId, ...reply } = await database.transaction(async (tx) => {
    const { version, outcome, webhookSecret, formId, changes } = await apply(tx);
    const form = await projectForm(tx, caller, formId);
    const kept = await keepReply(tx, call, {
      form: sharedFormToMessage(context, form, version.definition, caller),
      version: versionToMessage(version, form),
      outcome,
      webhookSecret,
      changes: await withAffected(tx, caller, form, changes),
    });
    return { ...kept, formId };
  });
  if (reply.outcome !== ApplyOutcome.UNCHANGED) {
    context.forms.forget(formId);
    context.notifyWorkers();
  }
  return reply;
}

/** Forms are locked before their project, as by all calls that lock both: two of them never wait for each other. */
async function lockedForm(tx: Transaction, projectId: string, key: string): Promise<Form | null> {
  const found = await lockFormByKey(tx, projectId, key);
  if (found !== null) return found;
  await lockProject(tx, projectId);
  return lockFormByKey(tx, projectId, key);
}

/** Makes a form that there is not, and publishes it, or a draft, whose activation token is void from then on. */
async function publishFirst(
  tx: Transaction,
  context: ServiceContext,
  call: HandlerContext,
  draft: Form | null,
  { request: { key, owner, managedBy }, definition, deliverySecret, at }: Wanted,
): Promise<Applied> {
  const { delivery } = definition;
  const further = recipientsIn(delivery);
  const problems = ownerProblems(delivery.type === 'email' ? further : undefined, owner);
  if (problems.length > 0) throw invalid(problems);
  const { projectId, keyId = '' } = callerOf(call);
  const drafted = { id: newId('form', at.getTime()), projectId, createdBy: keyId };
  const form = draft ?? { ...newForm(definition, drafted, at), key };
  if (draft === null) {
    await insertForm(tx, form);
    await context.audit.change(tx, call, { action: 'form.created', formId: form.id });
  }
  if (managedBy !== '') await updateForm(tx, form.id, { managedBy });
  const ownerEmail = owner === '' ? null : owner;
  const first = { formId: form.id, key, ownerEmail, version: newVersion(definition, at) };
  const version = await publishFirstVersion(tx, first);
  await insertEvents(tx, [
    ...(ownerEmail === null ? [] : [formEvents.activated(form, at, { address: ownerEmail })]),
    ...(further.length > 0 ? [formEvents.recipientsAdded(form, at, further)] : []),
  ]);
  const kept = draft?.draftSecret == null ? undefined : context.secrets.open(draft.draftSecret);
  const secret = deliverySecret ?? kept;
  const webhookSecret = await syncDefinitionWebhook(tx, context, { form, delivery, secret, at });
  await context.audit.change(tx, call, { resource: version.id, formId: form.id });
  return {
    formId: form.id,
    version,
    outcome: draft === null ? ApplyOutcome.CREATED : ApplyOutcome.PUBLISHED,
    webhookSecret,
    changes: [],
  };
}

/** Publishes what differs from the current version, and changes owner and keeper where they do. */
async function publishChanges(
  tx: Transaction,
  context: ServiceContext,
  call: HandlerContext,
  { form, current }: { form: Form; current: Version },
  { request, definition, deliverySecret, at }: Wanted,
): Promise<Applied> {
  const { owner, managedBy, expectedVersionId, allowBreaking } = request;
  const { id: formId } = form;
  const caller = callerOf(call);
  const webhook = deliverySecret === undefined ? null : await findDefinitionWebhook(tx, formId);
  const isSecretKnown = webhook !== null && context.secrets.open(webhook.secret) === deliverySecret;
  // The secret that is there already is no change, so that nothing is rotated.
  const secret = isSecretKnown ? undefined : deliverySecret;
  const isCurrent = newVersion(definition, at).checksum === current.checksum;
  const unchanged: Published = { version: current, webhookSecret: '', changes: [] };
  const next = { formId, definition, deliverySecret: secret, at, expectedVersionId, allowBreaking };
  const isPublished = !isCurrent || secret !== undefined || expectedVersionId !== '';
  const published = isPublished ? await publishNext(tx, context, call, next) : unchanged;

  const isOwnerNew = owner !== '' && owner !== form.ownerEmail && owner !== form.pendingOwnerEmail;
  if (isOwnerNew) {
    requireRight(caller, 'ownership');
    await proposeOwner(tx, caller.projectId, formId, owner);
    await insertEvents(tx, [formEvents.ownerChangeRequested(form, at, { address: owner })]);
    await context.audit.change(tx, call, { action: 'form.owner_proposed', formId });
  }
  const isManagerNew = managedBy !== '' && managedBy !== form.managedBy;
  if (isManagerNew) await updateForm(tx, formId, { managedBy });
  const isChanged = !isCurrent || secret !== undefined || isOwnerNew || isManagerNew;
  return { ...published, formId, outcome: isChanged ? ApplyOutcome.UPDATED : ApplyOutcome.UNCHANGED };
}

type Wanted = {
  request: ApplyFormRequest;
  definition: FormDefinition;
  deliverySecret?: string;
  at: Date;
};

type Applied = Published & { formId: string; outcome: ApplyOutcome };
