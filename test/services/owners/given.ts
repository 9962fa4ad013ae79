import { createClient } from '@connectrpc/connect';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { MailService } from '../../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import type { EngineName } from '../../support/database.ts';
import { givenSignInLink } from '../../support/owner.ts';
import { startServices } from '../../support/services.ts';

/** Runs all services, as `startServices`, with what tests do to owners. */
export async function startOwnersServices(engine: EngineName) {
  const rpc = await startServices(engine);

  const owners = (token?: string) => createClient(OwnersService, rpc.as(token));
  const mail = () => createClient(MailService, rpc.as());
  const linkFor = (address: string, { agoMs = 0, browser }: { agoMs?: number; browser?: string } = {}) => {
    const given = { key: rpc.secretKey, now: rpc.clock.ms - agoMs, ...(browser && { browser }) };
    return givenSignInLink(rpc.database, address, given);
  };

  async function signedIn(address: string) {
    const { sessionToken } = await owners().signIn({ token: await linkFor(address) });
    return { token: sessionToken, ...owners(sessionToken) };
  }

  /** A form of an owner of its own, who has confirmed and is signed in. */
  async function givenOwner({ address = `${crypto.randomUUID()}@example.com`, confirmed = true } = {}) {
    const { id, token } = await rpc.givenDraft(rpc.key, {
      fields: [
        { id: 'email', type: FormFieldType.EMAIL, required: true },
        { id: 'colour', type: FormFieldType.SELECT, options: [{ label: 'Deep red', value: 'r' }] },
        { id: 'note', type: FormFieldType.TEXTAREA },
        { id: 'cv', type: FormFieldType.FILE },
      ],
    });
    await rpc.forms.activateForm({ formId: id, activationToken: token, email: address });
    const owner = await signedIn(address);
    if (confirmed) await owner.confirmOwnedForm({ formId: id });
    return { formId: id, address, owner };
  }

  async function givenSubmission(formId: string, answers: JsonObject = {}) {
    const given = { email: 'ada@example.com', ...answers };
    return (await rpc.submissions.createSubmission({ formId, answers: given })).submissionId;
  }

  /** A submission with a file. */
  async function givenFile(formId: string) {
    const { upload } = await rpc.uploads.createUpload({
      target: { case: 'formId', value: formId },
      fieldId: 'cv',
      filename: 'cv.txt',
      content: new TextEncoder().encode('my life'),
    });
    const uploadId = upload?.id ?? '';
    return { uploadId, submissionId: await givenSubmission(formId, { cv: { upload_id: uploadId } }) };
  }

  return { ...rpc, owners, mail, linkFor, signedIn, givenOwner, givenSubmission, givenFile };
}

/** Calls an RPC by its name, and reads what it answers to the end. */
export async function outcomeOf(client: object, name: string, request: object): Promise<unknown> {
  const answer: unknown = Reflect.apply(Reflect.get(client, name), client, [request]);
  return isStream(answer) ? readAll(answer) : answer;
}

function isStream(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

export async function readAll(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

export type OwnersServices = Awaited<ReturnType<typeof startOwnersServices>>;
