import { isMessage } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { FormDefinition as DefinitionMessage } from '../../gen/headlessforms/v1/definition_pb.js';
import {
  type ApplyFormRequest,
  ApplyFormRequestSchema,
  CreateFormRequestSchema,
  PublishFormVersionRequestSchema,
} from '../../gen/headlessforms/v1/forms_pb.js';
import { CreateKeyRequestSchema } from '../../gen/headlessforms/v1/keys_pb.js';
import {
  ContextItemKind,
  type SessionContext,
  SessionContextSchema,
} from '../../gen/headlessforms/v1/session_context_pb.js';
import type { CreateSessionRequest } from '../../gen/headlessforms/v1/sessions_pb.js';
import { CreateWebhookRequestSchema } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { changesBetween } from '../domain/contracts/changes.ts';
import { checkDefinition, type DefinitionOptions, withoutDefaults } from '../domain/definition/definition.ts';
import { definitionFromMessage, definitionToMessage, jsonOf } from '../domain/definition/definition-proto.ts';
import { notFound } from '../domain/errors/failure.ts';
import { isId, isKeyless } from '../domain/ids.ts';
import { canonicalJson, fingerprint } from '../domain/json/json-text.ts';
import { pseudonymOf } from '../domain/secrets/secret-key.ts';
import { callerIfAny, callerOf } from '../rpc/context.ts';
import { findAnyForm } from '../store/forms/forms.ts';
import { findVersion, findVersionByNumber } from '../store/forms/versions.ts';
import { findKey } from '../store/keys.ts';
import type { ServiceContext } from './context.ts';
import { changeableForm, definitionInUse, projectForm } from './forms/form-access.ts';
import { formToMessage, sharedFormToMessage, versionToMessage } from './forms/form-proto.ts';
import { withAffected } from './forms/publishing.ts';
import { type FormerReplies, type KeyedRequest, requestIdempotency } from './idempotency.ts';
import { projectNamed } from './keys/key-reader.ts';
import { keyToMessage } from './keys/keys.ts';
import { lifeOf } from './sessions/session-request.ts';
import { eventName, webhookToMessage } from './webhooks/webhook-proto.ts';
import { givenFilter, projectWebhook } from './webhooks/webhook-request.ts';

/**
 * How the version of 27 November 2026 kept what requests with idempotency keys made, for as long as those count: it
 * listed by hand what makes two requests the same, and kept ids instead of replies.
 */
export function formerReplies(context: ServiceContext): FormerReplies {
  return {
    async isSame(call, request, { madeId, requestFingerprint }) {
      const isFormer = madeId !== '' && !isId('sess', madeId);
      if (!isFormer && !isMessage(request, ApplyFormRequestSchema)) return false;
      return (await digestOf(context, call, request)) === requestFingerprint;
    },
    read: (call, request, id, secret) => readReply(context, call, { request, id, secret }),
  };
}

async function digestOf(context: ServiceContext, call: HandlerContext, request: KeyedRequest) {
  const { database } = context;
  const caller = callerIfAny(call);
  if (isMessage(request, ApplyFormRequestSchema)) {
    const definition = filledIn(request.definition);
    const whole: ApplyFormRequest | undefined = definition && { ...request, definition };
    return whole && requestIdempotency(context, call, whole)?.fingerprint;
  }
  if (isMessage(request, CreateFormRequestSchema)) {
    const { definition, key } = request;
    const content = contentOf(context, definition, { keyless: caller?.keyId === undefined });
    return fingerprint({ ...content, ...(key !== '' && { key }) });
  }
  if (isMessage(request, PublishFormVersionRequestSchema)) {
    const { formId, definition } = request;
    const form = await projectForm(database, callerOf(call), formId);
    const { delivery } = await definitionInUse(database, form);
    const keptUrl = delivery.type === 'webhook' ? delivery.url : '';
    return fingerprint({
      form_id: formId,
      ...contentOf(context, definition, { keyless: isKeyless(form), keptUrl }),
    });
  }
  if (isMessage(request, CreateKeyRequestSchema)) {
    const { name, scopes, expiresIn } = request;
    const project = request.project === '' ? caller?.project : request.project;
    return fingerprint({ name, scopes, project, expires_in: expiresIn ? durationMs(expiresIn) : null });
  }
  if (isMessage(request, CreateWebhookRequestSchema)) {
    const { url, secret, formId, traceparent, template = {}, ed25519 } = request;
    const { values: headers } = request.headers ?? { values: {} };
    return fingerprint({
      url,
      events: request.events.map(eventName),
      secret: secretInContent(context, secret),
      form_id: formId === '' ? null : formId,
      ...whereGiven({
        traceparent,
        template: Object.keys(template).length > 0 && template,
        headers: Object.keys(headers).length > 0 && secretInContent(context, canonicalJson(headers)),
        filter: givenFilter(request.filter),
        ed25519,
      }),
    });
  }
  return undefined;
}

/** The definition with all defaults, as the gateway sent it. */
function filledIn(message: DefinitionMessage | undefined): DefinitionMessage | undefined {
  const checked = checkedOf(message, { keyless: false, keptUrl: '' });
  if (!checked.ok) return undefined;
  const definition = definitionToMessage(checked.definition);
  const channel = definition.delivery?.channel;
  if (channel?.case === 'webhook') channel.value.secret = checked.deliverySecret ?? '';
  return definition;
}

function contentOf(
  context: ServiceContext,
  message: DefinitionMessage | undefined,
  form: Omit<DefinitionOptions, 'allowPrivateUrls'>,
) {
  const checked = checkedOf(message, form);
  if (!checked.ok) return {};
  const { definition, deliverySecret } = checked;
  return { definition: withoutDefaults(definition, form), secret: secretInContent(context, deliverySecret) };
}

function checkedOf(
  message: DefinitionMessage | undefined,
  form: Omit<DefinitionOptions, 'allowPrivateUrls'>,
) {
  return checkDefinition(message && definitionFromMessage(message), { ...form, allowPrivateUrls: true });
}

/** The properties that are neither empty nor false. */
function whereGiven(properties: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => Boolean(value)));
}

/** Stands for a secret. */
function secretInContent({ secretKey }: ServiceContext, secret = ''): string | null {
  return secret === '' ? null : pseudonymOf(secretKey, 'idempotency-secret', secret);
}

async function readReply(
  context: ServiceContext,
  call: HandlerContext,
  { request, id, secret }: { request: KeyedRequest; id: string; secret: string },
) {
  const { database, now } = context;
  if (isId('form', id)) {
    const form = await findAnyForm(database, id);
    if (form === null) throw notFound('form');
    return { form: formToMessage(form, await definitionInUse(database, form)), activationToken: secret };
  }
  const caller = callerOf(call);
  if (isId('wh', id)) {
    return { webhook: webhookToMessage(await projectWebhook(database, caller, id), context), secret };
  }
  if (isMessage(request, CreateKeyRequestSchema)) {
    const name = request.project === '' ? caller.project : request.project;
    const key = await findKey(database, (await projectNamed(database, name, now())).id, id);
    if (key === null) throw notFound('key');
    return { key: keyToMessage(key, name), secret };
  }
  const version = await findVersion(database, id);
  if (version === null) throw notFound('version');
  const form = await changeableForm(database, caller, version.formId);
  const before = await findVersionByNumber(database, form.id, version.number - 1);
  const changes = before === null ? [] : changesBetween(before.definition, version.definition);
  return {
    form: sharedFormToMessage(context, form, version.definition, caller),
    version: versionToMessage(version, form),
    webhookSecret: secret,
    changes: await withAffected(database, caller, form, changes),
  };
}

/** What made two requests for a session of a form the same. */
export function formerSessionDigest(context: ServiceContext, request: CreateSessionRequest): string {
  const { callback, notify, respondent } = request;
  return fingerprint({
    expires_in: lifeOf(request),
    prefill: request.prefill ?? {},
    metadata: request.metadata ?? {},
    ...whereGiven({
      return_url: request.returnUrl,
      return_outcome: request.returnOutcome,
      context: request.context && jsonOf(SessionContextSchema, withKinds(request.context)),
      allow_decline: request.allowDecline,
      callback: callback && {
        url: callback.url,
        secret: secretInContent(context, callback.secret),
        ...whereGiven({ template: callback.template }),
      },
      notify: notify && {
        email: notify.email,
        webhookId: notify.webhookId,
        message: notify.message,
        remindAfter: notify.remindAfter.map(({ seconds }) => Number(seconds)),
      },
    }),
    ...(respondent !== undefined && { respondent: respondent.email }),
  });
}

function withKinds(context: SessionContext): SessionContext {
  const items = context.items.map((item) => ({ ...item, kind: item.kind || ContextItemKind.TEXT }));
  return { ...context, items };
}
