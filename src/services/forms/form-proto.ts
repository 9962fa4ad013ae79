import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AgentSchemaSchema } from '../../../gen/headlessforms/v1/agent_schema_pb.js';
import {
  type CreatorSchema,
  CreatorType,
  FormSchema,
  FormVersionSchema,
  type PublicFormSchema,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { agentSchema } from '../../domain/answers/agent-schema.ts';
import type { Answers } from '../../domain/answers/answers.ts';
import { sampleAnswers } from '../../domain/answers/json-schema.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { definitionToMessage } from '../../domain/definition/definition-proto.ts';
import { publicDefinition } from '../../domain/definition/public-definition.ts';
import { type Share, shareOf } from '../../domain/definition/share.ts';
import { missingTranslations } from '../../domain/definition/translate.ts';
import { KEYLESS_CREATOR } from '../../domain/ids.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { holds } from '../../domain/scopes.ts';
import type { Form, FormSummary } from '../../store/forms/forms.ts';
import type { VersionSummary } from '../../store/forms/versions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from './form-access.ts';

/** A form as callers with these scopes see it; lists leave the definition out. */
export function formToMessage(
  form: FormSummary,
  definition?: FormDefinition,
  { share, scopes = ['*'] }: { share?: Share; scopes?: readonly string[] } = {},
): MessageInitShape<typeof FormSchema> {
  return rowToMessage(FormSchema, form, {
    createdBy: creatorOf(form.createdBy),
    ...(definition !== undefined && {
      definition: definitionToReader(definition, scopes),
      missingTranslations: missingTranslations(definition),
    }),
    ...(share !== undefined && { share }),
  });
}

/** What a form asks, as callers without a key see it: nothing of its owner, its maker and its receivers. */
export function formToStranger(
  { id, name, slug, currentVersionId }: FormSummary,
  definition: FormDefinition,
): MessageInitShape<typeof FormSchema> {
  const { delivery: _, ...described } = definitionToMessage(definition);
  return { id, name, slug, currentVersionId: currentVersionId ?? '', definition: described };
}

/** A published form as anybody may read it. */
export function publicFormToMessage(
  { id, version }: PublishedForm,
  { open }: { open: boolean },
): MessageInitShape<typeof PublicFormSchema> {
  const { id: versionId, number, checksum } = version;
  const definition = definitionToMessage(publicDefinition(version.definition));
  return { id, versionId, version: number, checksum, open, definition };
}

/** The URL of a webhook may hold a secret: who may not read webhooks gets its host alone. */
function definitionToReader(definition: FormDefinition, scopes: readonly string[]) {
  const message = definitionToMessage(definition);
  const channel = message.delivery?.channel;
  if (channel?.case === 'webhook' && !holds(scopes, 'webhooks:read')) {
    channel.value.urlHost = new URL(channel.value.url).host;
    channel.value.url = '';
  }
  return message;
}

/** A version of a form as callers with these scopes see it; lists leave the definition out. */
export function versionToMessage(
  version: VersionSummary,
  form: Pick<Form, 'currentVersionId'>,
  { definition, scopes = [] }: { definition?: FormDefinition; scopes?: readonly string[] } = {},
): MessageInitShape<typeof FormVersionSchema> {
  return rowToMessage(FormVersionSchema, version, {
    current: version.id === form.currentVersionId,
    ...(definition !== undefined && { definition: definitionToReader(definition, scopes) }),
  });
}

/** Who made a form, as the database has it: `public`, `system` or the id of a key. */
function creatorOf(createdBy: string): MessageInitShape<typeof CreatorSchema> {
  if (createdBy === KEYLESS_CREATOR) return { type: CreatorType.PUBLIC };
  if (createdBy === 'system') return { type: CreatorType.SYSTEM };
  return { type: CreatorType.KEY, keyId: createdBy };
}

/** A form with its definition as callers with these scopes see it, and how to share it if it is published. */
export function sharedFormToMessage(
  context: Pick<ServiceContext, 'settings'>,
  form: FormSummary,
  definition: FormDefinition,
  { scopes, withQr }: { scopes?: readonly string[]; withQr?: boolean } = {},
): MessageInitShape<typeof FormSchema> {
  const shared = form.status === 'published' &&
    form.questionChecksum === null && { share: shareOfForm(context, form.id, definition, withQr) };
  return formToMessage(form, definition, { ...(scopes && { scopes }), ...shared });
}

/** How to share a published form; `withQr`: with the QR code itself. */
export function shareOfForm(
  { settings: { baseUrl, hostedUrl } }: Pick<ServiceContext, 'settings'>,
  formId: string,
  definition: FormDefinition,
  withQr = false,
): Share {
  return shareOf(formId, definition, { baseUrl, hostedUrl, sample: exampleOf(definition), withQr });
}

/** Answers for an example of a call. */
function exampleOf(definition: FormDefinition) {
  const fields = definition.fields.filter(
    ({ answeredBy, required }) => answeredBy !== 'human' && (answeredBy !== 'agent' || required),
  );
  return sampleAnswers({ ...definition, fields });
}

/**
 * What an agent needs to fill a form, or what is left of it beside the answers in `held`. `needsPage`: no client may
 * ask a person for them itself.
 */
export function agentSchemaToMessage(
  { formId, versionId, definition }: Described,
  held: Answers = {},
  { needsPage = true } = {},
): MessageInitShape<typeof AgentSchemaSchema> {
  const { elicitation, ...described } = agentSchema(definition, held, sampleAnswers(definition));
  return {
    formId,
    formVersionId: versionId,
    name: definition.name,
    description: definition.description ?? '',
    ...described,
    ...(elicitation !== undefined && !needsPage && { elicitation }),
  };
}

/** `versionId` is empty for a draft. */
type Described = { formId: string; versionId: string; definition: FormDefinition };
