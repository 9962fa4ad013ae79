import type { FormDefinition as DefinitionMessage } from '../../../gen/headlessforms/v1/definition_pb.js';
import {
  checkDefinition,
  type DefinitionOptions,
  type FormDefinition,
} from '../../domain/definition/definition.ts';
import { ofFields } from '../../domain/definition/definition-path.ts';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { invalid } from '../../domain/errors/failure.ts';
import { type EventType, eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { nullsOf } from '../../store/database/columns.ts';
import type { NewEvent } from '../../store/events.ts';
import { type Form, FormEntity } from '../../store/forms/forms.ts';
import type { NewVersion } from '../../store/forms/versions.ts';

/** Reads and checks a definition that a caller sent. Throws INVALID with every problem. */
export function readDefinition(
  message: DefinitionMessage | undefined,
  options: DefinitionOptions,
): { definition: FormDefinition; deliverySecret?: string } {
  return requireDefinition(message && definitionFromMessage(message), options);
}

/** Checks a definition as JSON has it. Throws INVALID with every problem. */
export function requireDefinition(
  input: unknown,
  options: DefinitionOptions,
): { definition: FormDefinition; deliverySecret?: string } {
  const checked = checkDefinition(input, options);
  if (!checked.ok) throw invalid(checked.violations.map(ofFields));
  return checked;
}

/**
 * The row of a draft. `draft` says what forms differ in; `at` is when it is made. Without a hash there nobody knows the
 * token that activates it.
 */
export function newForm(definition: FormDefinition, draft: Draft, at: Date): Form {
  return {
    ...nullsOf(FormEntity),
    activationHash: hashSecret(newToken()),
    activationExpiresAt: at,
    ...draft,
    name: definition.name,
    slug: definition.slug,
    status: 'draft',
    draftDefinition: definition,
    ownerEpoch: 0,
    createdAt: at,
    updatedAt: at,
  };
}

/** A version of a form before it has its place in it. */
export function newVersion(definition: FormDefinition, at: Date): NewVersion {
  return { id: newId('ver', at.getTime()), definition, checksum: fingerprint(definition), createdAt: at };
}

type Draft = Pick<Form, 'id' | 'projectId' | 'createdBy'> &
  Partial<Pick<Form, 'createdFrom' | 'draftSecret' | 'activationHash' | 'activationExpiresAt'>>;

/** Events about a form that no webhook receives: the delivery loop makes emails of them. */
export const formEvents = {
  activated: (form: Named, at: Date, facts: { address: string; browserHash?: string }) =>
    newEvent(form, at, 'form.activated', eventTypes['form.activated'].body(facts)),

  ownerChangeRequested: (form: Named, at: Date, facts: { address: string; by?: string }) =>
    newEvent(form, at, 'owner.change_requested', eventTypes['owner.change_requested'].body(facts)),

  /** `address` is that of the former owner. */
  ownerChanged: (form: Named, at: Date, facts: { address: string; next: string }) =>
    newEvent(form, at, 'owner.changed', eventTypes['owner.changed'].body(facts)),

  recipientsAdded: (form: Named, at: Date, addresses: string[]) =>
    newEvent(form, at, 'recipients.added', eventTypes['recipients.added'].body({ addresses })),
};

function newEvent(form: Named, createdAt: Date, type: EventType, body: string): NewEvent {
  return {
    id: newId('evt', createdAt.getTime()),
    projectId: form.projectId,
    formId: form.id,
    type,
    body,
    createdAt,
  };
}

type Named = Pick<Form, 'id' | 'projectId'>;
