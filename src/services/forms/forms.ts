import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/forms/v1/errors_pb.js';
import type {
  ChangeFormOwnerRequest,
  CreateFormRequest,
  CreateFormResponseSchema,
  FormsService,
} from '../../../gen/forms/v1/forms_pb.js';
import { answersSchema } from '../../domain/answers/json-schema.ts';
import { definitionToMessage } from '../../domain/definition/definition-message.ts';
import { missingTranslations } from '../../domain/definition/missing-translations.ts';
import { translate } from '../../domain/definition/translate.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { isId, newId } from '../../domain/ids.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { callerIfAny, callerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import { insertEvents } from '../../store/events.ts';
import { archiveForm, findForm, insertForm, listForms } from '../../store/forms/forms.ts';
import { findVersionByNumber, listVersions } from '../../store/forms/versions.ts';
import { proposeOwner } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { makeOnce, secretInContent } from '../idempotency/make-once.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { strangerAddress } from '../limits/keyless-storage.ts';
import { pageRequestOf } from '../request-values.ts';
import { activationMethods } from './activation.ts';
import { agentSchemaToMessage } from './agent-schema-message.ts';
import { creatorOf } from './confirmation-mail.ts';
import { deleteForm } from './deletion.ts';
import { definitionInUse, ownForm } from './form-access.ts';
import { formEvents } from './form-events.ts';
import { formToMessage, formToStranger, versionToMessage } from './form-message.ts';
import { definitionContent, readDefinition, requireEmail } from './form-request.ts';
import { newForm } from './new-rows.ts';
import { publishFormVersion } from './publishing.ts';
import { sharedFormToMessage } from './share-message.ts';

/** Makes forms, publishes them, and describes what they ask. */
export function formsService(context: ServiceContext): ServiceImpl<typeof FormsService> {
  const { database, settings, audit } = context;
  return {
    ...activationMethods(context),

    async validateForm(request, call) {
      const { definition } = readDefinition(request.definition, {
        keyless: callerOf(call).keyId === undefined,
        allowPrivateUrls: settings.allowPrivateWebhooks,
      });
      return {
        definition: definitionToMessage(definition),
        missingTranslations: missingTranslations(definition),
      };
    },

    createForm: (request, call) => createForm(context, request, call),

    async getForm({ formId }, call) {
      const form = await ownForm(database, callerOf(call), formId);
      return { form: await sharedFormToMessage(context, form, await definitionInUse(database, form)) };
    },

    async listForms(request, call) {
      const page = await listForms(database, callerOf(call).projectId, pageRequestOf(request, 'form'));
      return { forms: page.items.map((form) => formToMessage(form)), nextPageToken: page.nextCursor ?? '' };
    },

    publishFormVersion: (request, call) => publishFormVersion(context, request, call),

    async listFormVersions(request, call) {
      const form = await ownForm(database, callerOf(call), request.formId);
      const page = await listVersions(database, form.id, pageRequestOf(request, 'ver'));
      return {
        versions: page.items.map((version) => versionToMessage(version, form)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getFormVersion({ formId, number }, call) {
      const form = await ownForm(database, callerOf(call), formId);
      const version = await findVersionByNumber(database, form.id, number);
      if (version === null) throw notFound('version');
      return { version: versionToMessage(version, form, version.definition) };
    },

    async archiveForm({ formId }, call) {
      const caller = callerOf(call);
      if (!isId('form', formId)) throw notFound('form');
      await database.transaction(async (tx) => {
        if (!(await archiveForm(tx, caller.projectId, formId))) throw notFound('form');
        await audit.change(tx, call, { formId });
      });
      context.forms.forget(formId);
      return { form: formToMessage(await ownForm(database, caller, formId)) };
    },

    async deleteForm({ formId }, call) {
      await deleteForm(context, formId, call);
      return {};
    },

    changeFormOwner: (request, call) => changeFormOwner(context, request, call),

    async getAgentSchema({ formId, includeDefinition, language }, call) {
      const caller = callerOf(call);
      const form = await ownForm(database, caller, formId);
      const definition = translate(await definitionInUse(database, form), preferredLanguages(language));
      if (!includeDefinition) {
        const described = { formId, versionId: form.currentVersionId ?? '', definition };
        return { schema: await agentSchemaToMessage(context, described) };
      }
      const named = { ...form, name: definition.name };
      const message =
        caller.keyId === undefined ? formToStranger(named, definition) : formToMessage(named, definition);
      return { form: message, jsonSchema: answersSchema(definition) };
    },
  };
}

async function createForm(
  context: ServiceContext,
  request: CreateFormRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof CreateFormResponseSchema>> {
  const { database, settings, secrets, now, keylessStorage, audit } = context;
  const caller = callerIfAny(call);
  if (caller === undefined && !settings.allowPublicCreate) {
    throw failed(Reason.MISSING_KEY, 'Making a form needs an API key here');
  }
  const keyless = caller === undefined;
  const { definition, deliverySecret } = readDefinition(request.definition, {
    keyless,
    allowPrivateUrls: settings.allowPrivateWebhooks,
  });

  const time = now();
  const projectId = caller?.projectId ?? (await projectNamed(database, settings.publicProject, time)).id;
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  const stranger = strangerAddress(call, projectId);
  const activationToken = newToken();
  const draft = {
    id: newId('form', time),
    projectId,
    createdBy: caller?.keyId ?? 'public',
    createdFrom: caller?.keyId === undefined ? creatorOf(context, call) : null,
    draftSecret: deliverySecret === undefined ? null : secrets.seal(deliverySecret),
    activationHash: hashSecret(activationToken),
    activationExpiresAt: new Date(time + ACTIVATION_DAYS * DAY_MS),
  };
  const form = newForm(definition, draft, new Date(time));
  return makeOnce(context, call, {
    key: request.idempotencyKey,
    ...definitionContent({ definition, secret: secretInContent(context, deliverySecret) }, { keyless }),
    async again(first) {
      const made = await findForm(database, projectId, first.id);
      if (made === null) throw notFound('form');
      return { form: formToMessage(made, definition), activationToken: first.secret };
    },
    async make(record) {
      using room = stranger === undefined ? undefined : keylessStorage.reserve(projectId, stranger);
      await room?.add(bytes);
      await database.transaction(async (tx) => {
        await record(tx, { id: form.id, secret: activationToken });
        await insertForm(tx, form);
        await audit.change(tx, call, { projectId, formId: form.id });
      });
      if (room !== undefined) keylessStorage.record({ formId: form.id, projectId, bytes });
      room?.keep();
      return { form: formToMessage(form, definition), activationToken };
    },
  });
}

async function changeFormOwner(
  context: ServiceContext,
  request: ChangeFormOwnerRequest,
  call: HandlerContext,
) {
  const { database, now, notifyWorkers, audit } = context;
  const caller = callerOf(call);
  const { formId, email } = request;
  const form = await ownForm(database, caller, formId);
  if (form.ownerEmail === null) {
    throw failed(Reason.CONFLICT, 'The form is a draft: whoever activates it becomes its owner', {
      nextCall: NextCall.ACTIVATE_FORM,
    });
  }
  requireEmail(email);

  await database.transaction(async (tx) => {
    if (!(await proposeOwner(tx, caller.projectId, formId, email))) throw notFound('form');
    await insertEvents(tx, [formEvents.ownerChangeRequested(form, new Date(now()), email)]);
    await audit.change(tx, call, { formId });
  });
  notifyWorkers();
  return { form: formToMessage(form) };
}

/** How long an activation link works. */
const ACTIVATION_DAYS = 7;
