import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient, type Transport } from '@connectrpc/connect';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { type CreateKeyRequestSchema, KeysService } from '../../../gen/headlessforms/v1/keys_pb.js';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { WebhookEvent, WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { fileLink, type MailLinkPurpose } from '../../../src/domain/links.ts';
import { definitionOf } from '../definitions.ts';
import { givenMailLink, givenSignInLink } from '../owner.ts';
import type { TestServices } from '../services.ts';

/** What stands in what people answered, by the right that shows it. */
export const marks = {
  reading: 'Ada lives in the lighthouse',
  session: 'Ada has not sent this yet',
  file: 'Ada drew a map',
} as const;

/** Where callers want answers to go: a mailbox and a host of theirs. */
export const eve = { address: 'eve@example.com', url: 'https://eve.example.com/hook' } as const;

/** A definition in JSON, delivered by mail, with what is given instead. */
export function definitionJson(overrides: object = {}): object {
  return {
    name: 'Census',
    slug: 'census',
    fields: [
      { id: 'home', type: 'FORM_FIELD_TYPE_TEXT' },
      { id: 'map', type: 'FORM_FIELD_TYPE_FILE' },
    ],
    delivery: { email: {} },
    settings: { allowPartial: true },
    ...overrides,
  };
}

/** Names the form in its project. */
const formKey = 'census';

/**
 * A project of its own with a form that people have answered, a session that holds some, a webhook with a
 * delivery, and an owner who has signed in.
 */
export async function givenWorld(services: TestServices) {
  const name = `p-${randomUUID().slice(0, 12)}`;
  const owner = `owner-${name}@example.com`;
  const adminKey = await givenKey(services.as(services.key), { scopes: ['*'], project: name });
  const admin = services.as(adminKey.secret);
  const formId = await givenOwnedForm(services, admin, owner, formKey);
  const { form } = await createClient(FormsService, admin).getForm({ formId });
  const webhooks = createClient(WebhooksService, admin);
  const hook = {
    formId,
    url: 'https://crm.example.com/hook',
    events: [WebhookEvent.SUBMISSION_CREATED, WebhookEvent.SESSION_EXPIRED],
  };
  const { webhook } = await webhooks.createWebhook(hook);
  const content = Buffer.from(marks.file);
  const { upload } = await createClient(UploadsService, admin).createUpload({
    target: { case: 'formId', value: formId },
    fieldId: 'map',
    filename: 'map.txt',
    content,
  });
  const uploadId = upload?.id ?? '';
  const answers = { home: marks.reading, map: { upload_id: uploadId } };
  const sessions = createClient(SessionsService, admin);
  const givenSession = async () => {
    const { session } = await sessions.createSession({
      subject: { case: 'formId', value: formId },
      prefill: { home: marks.session },
      allowDecline: true,
    });
    return session?.id ?? '';
  };
  const endedSessionId = await givenSession();
  const { submission } = await sessions.submitSession({ sessionId: endedSessionId, answers });
  const sessionId = await givenSession();
  const { deliveries } = await webhooks.listDeliveries({ webhookId: webhook?.id ?? '' });

  /** The session of an address that has signed in. */
  async function signIn(address: string): Promise<string> {
    const token = await givenSignInLink(services.database, address, linkOptions);
    const { sessionToken } = await createClient(OwnersService, services.as()).signIn({ token });
    return sessionToken;
  }

  // What comes later has later ids.
  services.clock.ms += 1;
  const linkOptions = { key: services.secretKey, now: services.clock.ms };
  return {
    services,
    name,
    owner,
    formId,
    formKey,
    versionId: form?.currentVersionId ?? '',
    submissionId: submission?.id ?? '',
    uploadId,
    sessionId,
    endedSessionId,
    webhookId: webhook?.id ?? '',
    deliveryId: deliveries[0]?.id ?? '',
    adminKey,
    admin,
    signIn,
    owners: async (address: string) => createClient(OwnersService, services.as(await signIn(address))),
    /** The token of a link as it is mailed to an address. */
    mailedLink: (purpose: MailLinkPurpose, address: string) =>
      givenMailLink(services.database, { purpose, formId, address }, { key: services.secretKey }),
    /** The token of a link to the file, as it stands in mails. */
    fileToken(): string {
      const maker = { secretKey: services.secretKey, baseUrl: '', now: services.clock.ms };
      return fileLink(maker, { id: formId, ownerEpoch: 0 }, uploadId).slice('/files/'.length);
    },
  };
}

/** A key, made by who calls by `maker`, and its id. */
export async function givenKey(maker: Transport, wanted: WantedKey): Promise<{ id: string; secret: string }> {
  const { key, secret } = await createClient(KeysService, maker).createKey({ name: 'test', ...wanted });
  return { id: key?.id ?? '', secret };
}

/** A published form of this world's project, confirmed by its owner. */
export async function givenOwnedForm(
  services: TestServices,
  admin: Transport,
  email: string,
  key = '',
): Promise<string> {
  const forms = createClient(FormsService, admin);
  const fields = [
    { id: 'home', type: 'text' },
    { id: 'map', type: 'file' },
  ];
  const { form, activationToken } = await forms.createForm({
    definition: definitionOf(fields, { allowPartial: true }),
    key,
  });
  const formId = form?.id ?? '';
  await forms.activateForm({ formId, activationToken, email });
  await services.database.execute('update forms set owner_confirmed_at = now() where id = $1', [formId]);
  return formId;
}

export type World = Awaited<ReturnType<typeof givenWorld>>;

type WantedKey = Omit<MessageInitShape<typeof CreateKeyRequestSchema>, '$typeName'>;
