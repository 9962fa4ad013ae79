import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/forms/v1/errors_pb.js';
import type {
  PublishFormVersionRequest,
  PublishFormVersionResponseSchema,
} from '../../../gen/forms/v1/forms_pb.js';
import type { Delivery } from '../../domain/definition/definition.ts';
import { callerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { insertEvents } from '../../store/events.ts';
import type { Form } from '../../store/forms/forms.ts';
import { findVersion, publishVersion, type Version } from '../../store/forms/versions.ts';
import type { ServiceContext } from '../context.ts';
import { makeOnce, secretInContent } from '../idempotency/make-once.ts';
import { syncDefinitionWebhook } from '../webhooks/definition-webhook.ts';
import { definitionInUse, ownForm } from './form-access.ts';
import { formEvents } from './form-events.ts';
import { versionToMessage } from './form-message.ts';
import { definitionContent, readDefinition } from './form-request.ts';
import { newVersion } from './new-rows.ts';
import { sharedFormToMessage } from './share-message.ts';

/** Publishes a new definition of a published form; one that was published before gets its old version back. */
export async function publishFormVersion(
  context: ServiceContext,
  request: PublishFormVersionRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof PublishFormVersionResponseSchema>> {
  const { database, settings, secrets, now, audit } = context;
  const { formId } = request;
  const caller = callerOf(call);
  const { createdBy } = await ownForm(database, caller, formId);
  const keyless = createdBy === 'public';
  const { definition, deliverySecret } = readDefinition(request.definition, {
    keyless,
    allowPrivateUrls: settings.allowPrivateWebhooks,
  });

  const at = new Date(now());
  const version = newVersion(definition, at);
  const replyOf = async (published: Version, webhookSecret: string) => {
    const form = await ownForm(database, caller, formId);
    return {
      form: await sharedFormToMessage(context, form, definition),
      version: versionToMessage(published, form),
      webhookSecret,
    };
  };
  return makeOnce(context, call, {
    key: request.idempotencyKey,
    ...definitionContent(
      { form_id: formId, definition, secret: secretInContent(context, deliverySecret) },
      { keyless },
    ),
    async again(first) {
      const published = await findVersion(database, first.id);
      if (published === null) throw notFound('version');
      return replyOf(published, first.secret);
    },
    async make(record) {
      const published = await database.transaction(async (tx) => {
        const before = await ownForm(tx, caller, formId);
        refuseUnlessPublished(before);
        const delivered = (await definitionInUse(tx, before)).delivery;
        const outcome = await publishVersion(tx, { projectId: caller.projectId, formId, version });
        if (outcome.outcome !== 'published') throw notFound('form');

        const { delivery } = definition;
        const added = recipientsOf(delivery).filter((address) => !recipientsOf(delivered).includes(address));
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
