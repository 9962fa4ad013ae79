import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type {
  CreateFormRequest,
  FormsService,
  ValidateFormRequest,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { checkOrigin } from '../../domain/addresses/origins.ts';
import type { VersionToDescribe } from '../../domain/contracts/answers-file.ts';
import { refusedBy } from '../../domain/contracts/changes.ts';
import { firstContract } from '../../domain/contracts/contract.ts';
import { definitionToMessage } from '../../domain/definition/definition-proto.ts';
import { hasPublicPage } from '../../domain/definition/share.ts';
import { missingTranslations } from '../../domain/definition/translate.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { demoFormId, isId, isKeyless, KEYLESS_CREATOR, newId } from '../../domain/ids.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { callerOf } from '../../rpc/context.ts';
import { insertEvents } from '../../store/events.ts';
import { deleteForm as markDeleted, removeRowsOfForm } from '../../store/forms/form-removal.ts';
import { archiveForm, insertForm, listForms } from '../../store/forms/forms.ts';
import { findVersionByNumber, listVersions, placeOfNext } from '../../store/forms/versions.ts';
import { addKeylessBytes } from '../../store/keyless-storage.ts';
import { proposeOwner } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { strangerAddress } from '../limits/keyless-storage.ts';
import { pageRequestOf, refuseUnfitFilter, requireEmail } from '../request-values.ts';
import { activationMethods, creatorOf } from './activation.ts';
import { applyForm } from './apply.ts';
import {
  archived,
  availabilityOf,
  changeableForm,
  definitionInUse,
  makerOf,
  projectForm,
  publishedForm,
  requireRight,
} from './form-access.ts';
import { readFormKey, refuseTakenKey, updateFormKey } from './form-keys.ts';
import { formToMessage, publicFormToMessage, sharedFormToMessage, versionToMessage } from './form-proto.ts';
import { formEvents, newForm, readDefinition } from './form-rows.ts';
import {
  changesSince,
  nextOf,
  publishFormVersion,
  refuseUnlessPublished,
  withAffected,
} from './publishing.ts';
import { provisionalSchema, schemaMethods } from './schemas.ts';

/** Makes forms, publishes them, and describes what they ask. */
export function formsService(context: ServiceContext): ServiceImpl<typeof FormsService> {
  const { database, settings, now, notifyWorkers, audit } = context;
  return {
    ...activationMethods(context),
    ...schemaMethods(context),

    validateForm: (request, call) => validateForm(context, request, call),

    createForm: (request, call) => createForm(context, request, call),

    async getForm({ formId, includeQrSvg: withQr }, call) {
      const caller = callerOf(call);
      const form = await projectForm(database, caller, formId);
      const definition = await definitionInUse(database, form);
      const { scopes } = caller;
      return { form: sharedFormToMessage(context, form, definition, { scopes, withQr }) };
    },

    async getPublicForm({ formId }, call) {
      const form = await publishedForm(context.forms, formId);
      const { version, status } = form;
      const { definition } = version;
      if (!hasPublicPage(definition)) throw notFound('form');
      checkOrigin(call.requestHeader, definition.settings.allowedOrigins, settings);
      if (status === 'archived') throw archived();
      return { form: publicFormToMessage(form, { open: availabilityOf(form, now()) === 'open' }) };
    },

    async listForms(request, call) {
      // The database refuses texts with NUL.
      readFormKey(request, { keyless: false });
      const { key, slug, managedBy } = request;
      refuseUnfitFilter(slug, 'slug');
      const wanted = { ...pageRequestOf(request, 'form'), key, slug, managedBy };
      const page = await listForms(database, callerOf(call).projectId, wanted);
      return { forms: page.items.map((form) => formToMessage(form)), nextPageToken: page.nextCursor ?? '' };
    },

    publishFormVersion: (request, call) => publishFormVersion(context, request, call),

    applyForm: (request, call) => applyForm(context, request, call),

    updateForm: (request, call) => updateFormKey(context, request, call),

    async listFormVersions(request, call) {
      const form = await projectForm(database, callerOf(call), request.formId);
      const page = await listVersions(database, form.id, pageRequestOf(request, 'ver'));
      return {
        versions: page.items.map((version) => versionToMessage(version, form)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getFormVersion({ formId, number }, call) {
      const { scopes, ...caller } = callerOf(call);
      const form = await projectForm(database, caller, formId);
      const version = await findVersionByNumber(database, form.id, number);
      if (version === null) throw notFound('version');
      return { version: versionToMessage(version, form, { definition: version.definition, scopes }) };
    },

    async archiveForm({ formId }, call) {
      const caller = callerOf(call);
      if (!isId('form', formId)) throw notFound('form');
      await database.transaction(async (tx) => {
        if (!(await archiveForm(tx, caller.projectId, formId))) throw notFound('form');
        await audit.change(tx, call, { formId });
      });
      context.forms.forget(formId);
      return { form: formToMessage(await projectForm(database, caller, formId)) };
    },

    /** Removes at once what can be removed within `REMOVAL_MS`; a sweep of the delivery loop removes the rest. */
    async deleteForm({ formId }, call) {
      const { projectId } = callerOf(call);
      if (!isId('form', formId)) throw notFound('form');
      if (formId === demoFormId) throw failed(Reason.CONFLICT, "The demo form can't be deleted");

      const outcome = await database.transaction(async (tx) => {
        const marked = await markDeleted(tx, projectId, formId);
        if (marked === 'deleted') await audit.change(tx, call, { formId });
        return marked;
      });
      if (outcome === 'not_found') throw notFound('form');
      if (outcome === 'not_archived') throw failed(Reason.CONFLICT, 'Only an archived form can be deleted');
      context.forms.forget(formId);

      const announcement = { at: now(), schedule: settings.retrySchedule };
      const until = performance.now() + REMOVAL_MS;
      for (let more = true; more && performance.now() < until; ) {
        more = await removeRowsOfForm(database, { formId, limit: GROUP }, announcement);
      }
      notifyWorkers();
      return {};
    },

    async changeFormOwner({ formId, email: given }, call) {
      const caller = callerOf(call);
      const form = await changeableForm(database, caller, formId);
      if (form.status === 'draft') {
        const message = 'The form is a draft. The address that activates it becomes its owner';
        throw failed(Reason.CONFLICT, message, { nextCall: NextCall.ACTIVATE_FORM });
      }
      const email = requireEmail(given);
      requireRight(caller, 'ownership');

      const reply = await database.transaction(async (tx) => {
        if (!(await proposeOwner(tx, caller.projectId, formId, email))) throw notFound('form');
        await insertEvents(tx, [formEvents.ownerChangeRequested(form, new Date(now()), { address: email })]);
        await audit.change(tx, call, { formId });
        return keepReply(tx, call, { form: formToMessage(form) });
      });
      notifyWorkers();
      return reply;
    },
  };
}

async function validateForm(context: ServiceContext, request: ValidateFormRequest, call: HandlerContext) {
  const { database, settings } = context;
  const caller = callerOf(call);
  const { allowPrivateWebhooks: allowPrivateUrls } = settings;
  const keyless = caller.keyId === undefined;
  const { key } = readFormKey({ key: request.key }, { keyless });
  if (request.againstFormId === '') {
    const { definition } = readDefinition(request.definition, { keyless, allowPrivateUrls });
    const contract = firstContract(key ?? definition.slug, definition);
    return describe(request, { formId: '', definition, contract });
  }
  if (keyless) throw failed(Reason.MISSING_KEY, 'Comparing with a form needs an API key');
  const form = await changeableForm(database, caller, request.againstFormId);
  refuseUnlessPublished(form);
  const former = await definitionInUse(database, form);
  const { definition } = readDefinition(request.definition, {
    keyless: isKeyless(form),
    allowPrivateUrls,
    ...nextOf(former),
  });
  const changes = await changesSince(database, form.id, former, definition);
  const checked = { definition, checksum: fingerprint(definition) };
  const { contract } = await placeOfNext(database, form, checked);
  return {
    ...describe(request, { formId: form.id, definition, contract }),
    changes: await withAffected(database, caller, form, changes),
    breaking: refusedBy(former.settings, changes).length > 0,
  };
}

function describe({ schemaFormat }: ValidateFormRequest, unpublished: VersionToDescribe) {
  const { definition } = unpublished;
  return {
    definition: definitionToMessage(definition),
    missingTranslations: missingTranslations(definition),
    schema: provisionalSchema(schemaFormat, unpublished),
  };
}

async function createForm(context: ServiceContext, request: CreateFormRequest, call: HandlerContext) {
  const { database, settings, secrets, now, keylessStorage, audit } = context;
  const caller = makerOf(settings, call);
  const keyless = caller === undefined;
  const named = readFormKey(request, { keyless });
  const { definition, deliverySecret } = readDefinition(request.definition, {
    keyless,
    allowPrivateUrls: settings.allowPrivateWebhooks,
  });

  const time = now();
  const projectId = caller?.projectId ?? (await projectNamed(database, settings.publicProject, time)).id;
  // The reply that is kept for an idempotency key holds the definition, too.
  const times = request.idempotencyKey === '' ? 1 : 2;
  const bytes = times * Buffer.byteLength(JSON.stringify(definition));
  const stranger = strangerAddress(call, projectId);
  const activationToken = newToken();
  const draft = {
    id: newId('form', time),
    projectId,
    createdBy: caller?.keyId ?? KEYLESS_CREATOR,
    createdFrom: caller?.keyId === undefined ? creatorOf(context, call) : null,
    draftSecret: deliverySecret === undefined ? null : secrets.seal(deliverySecret),
    activationHash: hashSecret(activationToken),
    activationExpiresAt: new Date(time + ACTIVATION_DAYS * DAY_MS),
  };
  const form = { ...newForm(definition, draft, new Date(time)), ...named };
  using room = stranger === undefined ? undefined : keylessStorage.reserve(projectId, stranger);
  await room?.add(bytes);
  const reply = await database.transaction(async (tx) => {
    if (form.key !== null) await refuseTakenKey(tx, projectId, form.key);
    await insertForm(tx, form);
    if (room !== undefined) await addKeylessBytes(tx, { formId: form.id, projectId, bytes });
    await audit.change(tx, call, { projectId, formId: form.id });
    return keepReply(tx, call, { form: formToMessage(form, definition), activationToken });
  });
  room?.keep();
  return reply;
}

/** A caller waits: forms of a few thousand submissions are done by then. */
const REMOVAL_MS = 2_000;

/** Rows of one statement: some milliseconds. */
const GROUP = 100;

/** How long an activation link works. */
const ACTIVATION_DAYS = 7;
