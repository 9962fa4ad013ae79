import { isDeepStrictEqual } from 'node:util';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { FieldOption } from '../../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type {
  OwnedFormTexts,
  OwnersService,
  PublishOwnedFormTextsRequest,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import type { Field, FormDefinition } from '../../domain/definition/definition.ts';
import { failed, invalid, notFound } from '../../domain/errors/failure.ts';
import { required } from '../../domain/errors/violations.ts';
import { isKeyless } from '../../domain/ids.ts';
import { deleteForm } from '../../store/forms/form-removal.ts';
import { archiveForm } from '../../store/forms/forms.ts';
import { addKeylessBytes } from '../../store/keyless-storage.ts';
import type { OwnedForm } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { requireDefinition } from '../forms/form-rows.ts';
import { nextOf, publishNext } from '../forms/publishing.ts';
import { strangerAddress } from '../limits/keyless-storage.ts';
import { confirmedForm, keeperOf, lockForOwner, requireFreshSignIn, withoutDelivery } from './owned-form.ts';

/** The RPCs by which owners change what a form says, and delete it. */
export function textMethods(context: ServiceContext) {
  const { database, forms, notifyWorkers, audit, now } = context;
  return {
    async publishOwnedFormTexts(request, call) {
      const form = await requireChangeable(context, call, request.formId);
      const current = await forms.version(form.currentVersionId);
      const definition = definitionWith(context, form, current.definition, request);
      const reply = { definition: withoutDelivery(definition), versionId: form.currentVersionId };
      // The same texts again, as of a call that is repeated, need no version.
      if (request.validateOnly || isDeepStrictEqual(definition, current.definition)) return reply;
      if (request.expectedVersionId === '') throw invalid([required('expected_version_id')]);

      const { id: formId, projectId } = form;
      const next = {
        formId,
        definition,
        deliverySecret: undefined,
        at: new Date(now()),
        expectedVersionId: request.expectedVersionId,
        allowBreaking: false,
        // Without a scope, so that nothing of it gives a right over answers.
        publisher: { projectId, keyId: undefined, scopes: [] },
      };
      const bytes = isKeyless(form) ? Buffer.byteLength(JSON.stringify(definition)) : 0;
      using room = context.keylessStorage.reserve(projectId, strangerAddress(call, projectId));
      if (bytes > 0) await room.add(bytes);
      const { version } = await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        if (bytes > 0) await addKeylessBytes(tx, { formId, projectId, bytes });
        return publishNext(tx, context, call, next);
      });
      room.keep();
      forms.forget(formId);
      notifyWorkers();
      return { ...reply, versionId: version.id };
    },

    /** The delivery loop removes what belongs to it. */
    async deleteOwnedForm({ formId, name }, call) {
      requireFreshSignIn(call, now());
      const form = await requireChangeable(context, call, formId);
      if (name.trim() !== form.name.trim()) {
        throw invalid([{ path: 'name', code: 'custom', message: 'Expected the name of the form' }]);
      }
      const { projectId } = form;
      await database.transaction(async (tx) => {
        await lockForOwner(tx, form);
        await archiveForm(tx, projectId, formId);
        if ((await deleteForm(tx, projectId, formId)) !== 'deleted') throw notFound('form');
        await audit.change(tx, call, { projectId, formId });
      });
      forms.forget(formId);
      notifyWorkers();
      return {};
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

/** A form whose definition its owner may change. Throws CONFLICT for one that is kept elsewhere. */
async function requireChangeable(
  context: ServiceContext,
  call: HandlerContext,
  formId: string,
): Promise<OwnedForm> {
  const form = await confirmedForm(context, call, formId);
  const keeper = keeperOf(form);
  if (keeper === '') return form;
  throw failed(Reason.CONFLICT, `The form is kept in ${keeper}: change it there`);
}

/** A definition with other texts, checked as every definition is. */
function definitionWith(
  { settings }: ServiceContext,
  form: OwnedForm,
  current: FormDefinition,
  { texts }: PublishOwnedFormTextsRequest,
): FormDefinition {
  if (texts === undefined) throw invalid([required('texts')]);
  const { settings: before, description: _, ...rest } = current;
  const { successMessage: __, closesAt: ___, maxSubmissions: ____, ...kept } = before;
  const { name, description, successMessage, closeTime, maxSubmissions, fields } = texts;
  const byId = new Map(fields.map((field) => [field.fieldId, field]));
  for (const [index, { fieldId }] of fields.entries()) {
    if (rest.fields.some(({ id }) => id === fieldId)) continue;
    const path = `texts.fields[${index}].field_id`;
    throw invalid([{ path, code: 'custom', message: 'Expected a field of the form' }]);
  }
  const wanted = {
    ...rest,
    name,
    ...(description !== '' && { description }),
    fields: rest.fields.map((field) => fieldWith(field, byId.get(field.id))),
    settings: {
      ...kept,
      ...(successMessage !== '' && { successMessage }),
      ...(closeTime !== undefined && { closesAt: timestampDate(closeTime).toISOString() }),
      ...(maxSubmissions !== 0 && { maxSubmissions }),
    },
  };
  const { allowPrivateWebhooks: allowPrivateUrls } = settings;
  const keyless = isKeyless(form);
  const options = { keyless, allowPrivateUrls, isInUse: true, ...nextOf(current) };
  return requireDefinition(wanted, options).definition;
}

function fieldWith(field: Field, texts: OwnedFormTexts['fields'][number] | undefined): Field {
  if (texts === undefined) return field;
  const { description: _, ...kept } = field;
  const { label, description, options, rows } = texts;
  return {
    ...kept,
    label,
    ...(description !== '' && { description }),
    ...(field.options && { options: labelled(field.options, options) }),
    ...(field.rows && { rows: labelled(field.rows, rows) }),
  };
}

/** Options with the labels of those that are named. */
function labelled(
  options: readonly { label: string; value: string }[],
  named: readonly Pick<FieldOption, 'label' | 'value'>[],
): { label: string; value: string }[] {
  const labels = new Map(named.map(({ value, label }) => [value, label]));
  return options.map(({ value, label }) => ({ value, label: labels.get(value) ?? label }));
}
