import { isDeepStrictEqual } from 'node:util';
import type { HandlerContext } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { PublishFormVersionRequest } from '../../../gen/headlessforms/v1/forms_pb.js';
import { type Delivery, type FormDefinition, withoutDefaults } from '../../domain/definition/definition.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { isKeyless } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { insertEvents } from '../../store/events.ts';
import { type Form, findFormState } from '../../store/forms/forms.ts';
import { findVersion, publishVersion, type Version } from '../../store/forms/versions.ts';
import { findDefinitionWebhook } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { replayFirst, secretInContent } from '../idempotency.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
import { definitionInUse, projectForm, requireRight } from './form-access.ts';
import { sharedFormToMessage, versionToMessage } from './form-proto.ts';
import { formEvents, newVersion, readDefinition } from './form-rows.ts';

/** Publishes a new definition of a published form; one that was published before gets its old version back. */
export async function publishFormVersion(
  context: ServiceContext,
  request: PublishFormVersionRequest,
  call: HandlerContext,
) {
  const { database, settings, secrets, now, audit } = context;
  const { formId } = request;
  const caller = callerOf(call);
  const form = await projectForm(database, caller, formId);
  const keyless = isKeyless(form);
  const { definition, deliverySecret } = readDefinition(request.definition, {
    keyless,
    allowPrivateUrls: settings.allowPrivateWebhooks,
    ...keptUrlOf(await definitionInUse(database, form)),
  });

  const at = new Date(now());
  const version = newVersion(definition, at);
  const replyOf = async (published: Version, webhookSecret: string) => {
    const form = await projectForm(database, caller, formId);
    return {
      form: sharedFormToMessage(context, form, definition, caller.scopes),
      version: versionToMessage(published, form),
      webhookSecret,
    };
  };
  return replayFirst(context, call, {
    key: request.idempotencyKey,
    content: {
      form_id: formId,
      definition: withoutDefaults(definition, { keyless }),
      secret: secretInContent(context, deliverySecret),
    },
    async again(first) {
      const published = await findVersion(database, first.id);
      if (published === null) throw notFound('version');
      return replyOf(published, first.secret);
    },
    async make(record) {
      const published = await database.transaction(async (tx) => {
        const before = await projectForm(tx, caller, formId);
        refuseUnlessPublished(before);
        const former = await definitionInUse(tx, before);
        const webhook = deliverySecret === undefined ? null : await findDefinitionWebhook(tx, formId);
        const isSecretNew =
          deliverySecret !== undefined &&
          (webhook === null || secrets.open(webhook.secret) !== deliverySecret);
        if (isSecretNew || !isDeepStrictEqual(definition.delivery, former.delivery)) {
          requireRight(caller, 'destination');
        }
        if (keepsShorter(definition, former) && (await hasSubmissions(tx, formId))) {
          requireRight(caller, 'retention');
        }
        const outcome = await publishVersion(tx, { projectId: caller.projectId, formId, version });
        if (outcome.outcome !== 'published') throw notFound('form');

        const { delivery } = definition;
        const formerly = recipientsOf(former.delivery);
        const added = recipientsOf(delivery).filter((address) => !formerly.includes(address));
        if (added.length > 0) await insertEvents(tx, [formEvents.recipientsAdded(before, at, added)]);
        const { maxWebhooks } = settings;
        const change = { form: before, delivery, secret: deliverySecret, secrets, maxWebhooks, at };
        const webhookSecret = await syncDefinitionWebhook(tx, change);
        await record(tx, { id: outcome.version.id, secret: webhookSecret });
        await audit.change(tx, call, { resource: outcome.version.id, formId });
        return { version: outcome.version, webhookSecret };
      });
      context.forms.forget(formId);
      context.notifyWorkers();
      return replyOf(published.version, published.webhookSecret);
    },
  });
}

/** A version that leaves the URL out, as callers who may not read it do, keeps the one that there is. */
function keptUrlOf({ delivery }: FormDefinition): { keptUrl?: string } {
  return delivery.type === 'webhook' ? { keptUrl: delivery.url } : {};
}

function keepsShorter({ settings: now }: FormDefinition, { settings: before }: FormDefinition): boolean {
  const forEver = Number.POSITIVE_INFINITY;
  return (now.retentionDays ?? forEver) < (before.retentionDays ?? forEver);
}

async function hasSubmissions(tx: Transaction, formId: string): Promise<boolean> {
  const form = await findFormState(tx, formId);
  return form !== null && form.accepted + form.spam > 0;
}

function refuseUnlessPublished({ status }: Form): void {
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

/** The addresses beside the owner's that a form is delivered to. */
function recipientsOf(delivery: Delivery): string[] {
  return delivery.type === 'email' ? (delivery.to ?? []) : [];
}
