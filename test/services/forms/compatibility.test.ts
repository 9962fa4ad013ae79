import type { JsonObject } from '@bufbuild/protobuf';
import { ConnectError, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuditService } from '../../../gen/headlessforms/v1/audit_pb.js';
import { ChangeKind, Compatibility, Consumer } from '../../../gen/headlessforms/v1/changes_pb.js';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { FailureSchema } from '../../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { WebhookEvent, WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { oneEngine } from '../../support/database.ts';
import { type DefinitionInit, definitionMessage } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const note = { id: 'note', type: FormFieldType.TEXT };
const email = { id: 'email', type: FormFieldType.EMAIL, required: true };

describe.each(oneEngine('pglite'))('what a new version breaks, on %s', (engine) => {
  let services: TestServices;

  beforeAll(async () => {
    services = await startServices(engine);
  });
  afterAll(() => services[Symbol.asyncDispose]());

  const forms = (key = services.key) => createClient(FormsService, services.as(key));
  const given = async (compatibility: Compatibility, key = services.key) => {
    const definition = { fields: [email, note], settings: { compatibility } };
    return { ...(await services.givenForm(key, definition)), definition };
  };
  const publish = (formId: string, definition: DefinitionInit, options: object = {}) =>
    forms().publishFormVersion({ formId, definition: definitionMessage(definition), ...options });

  it('is said when it is published, with the sessions that still ask a field', async () => {
    const { id, definition } = await given(Compatibility.NONE);
    const sessions = createClient(SessionsService, services.as(services.key));
    await sessions.createSession({ subject: { case: 'formId', value: id } });
    const ended = await sessions.createSession({ subject: { case: 'formId', value: id } });
    await sessions.cancelSession({ sessionId: ended.session?.id ?? '' });

    const { changes } = await publish(id, { ...definition, fields: [email] });

    expect(changes).toMatchObject([
      {
        path: 'fields.note',
        kind: ChangeKind.FIELD_REMOVED,
        breaks: [Consumer.CLIENTS, Consumer.WEBHOOKS, Consumer.CSV, Consumer.PREFILL, Consumer.SESSIONS],
        backwardCompatible: false,
        forwardCompatible: true,
        openSessions: 1,
      },
    ]);
  });

  it('is said with the webhooks whose template names a field, and their ids where they may be read', async () => {
    const { id, definition } = await given(Compatibility.BACKWARD);
    const other = await given(Compatibility.NONE);
    const webhooks = createClient(WebhooksService, services.as(services.key));
    const hook = async (formId: string, template: JsonObject) => {
      const request = {
        url: 'https://hooks.example.com/',
        events: [WebhookEvent.SUBMISSION_CREATED],
        template,
      };
      return (await webhooks.createWebhook({ ...request, formId })).webhook?.id ?? '';
    };
    const naming = await hook(id, {
      text: 'New:',
      blocks: [{ text: '{{data.formId}} {{ data.answers.note }}' }],
    });
    const ofAll = await hook('', { whence: '{{data.provenance.note.kind}}' });
    await hook(id, {
      text: '{{data.answers.email}} {{data.answers}} {{data.metadata.note}} data.answers.note',
    });
    await hook(other.id, { text: '{{data.answers.note}}' });
    const gone = await hook(id, { text: '{{data.answers.note}}' });
    await webhooks.deleteWebhook({ webhookId: gone });
    const next = { ...definition, fields: [{ ...email, label: 'Mail' }] };
    const weak = await services.givenKey({ scopes: ['forms:read'], project: 'default' });
    const validate = (key: string) =>
      forms(key).validateForm({ definition: definitionMessage(next), againstFormId: id });

    const [all, few] = [await validate(services.key), await validate(weak)];
    const refused = await publish(id, next).catch((error: unknown) => error);

    expect(all.changes).toMatchObject([
      { path: 'fields.email', webhooks: 0, webhookIds: [] },
      { path: 'fields.note', webhooks: 2, webhookIds: [naming, ofAll].toSorted() },
    ]);
    expect(few.changes[1]).toMatchObject({ webhooks: 2, webhookIds: [] });
    const [failure] = refused instanceof ConnectError ? refused.findDetails(FailureSchema) : [];
    expect(failure?.changes).toMatchObject([{ path: 'fields.note', webhooks: 2, webhookIds: [] }]);
    await webhooks.deleteWebhook({ webhookId: ofAll });
  });

  it('is refused where the form promises otherwise, and published where that is asked for', async () => {
    const { id, versionId, definition } = await given(Compatibility.BACKWARD);
    const next = { ...definition, fields: [email] };

    const refused = await failureOf(publish(id, next));
    const { form } = await forms().getForm({ formId: id });
    const published = await publish(id, next, { allowBreaking: true });

    expect(refused).toMatchObject({
      reason: 'BREAKING_CHANGE',
      message: 'The form promises to stay compatible (backward): fields.note (field_removed)',
      nextCall: 'CORRECTED',
      changes: [['fields.note', 'FIELD_REMOVED']],
    });
    expect(form?.currentVersionId).toBe(versionId);
    expect(published.version).toMatchObject({ number: 2, breaking: true });
    const { versions } = await forms().listFormVersions({ formId: id });
    expect(versions.map(({ breaking }) => breaking)).toEqual([true, false]);
    const { entries } = await createClient(AuditService, services.as(services.key)).listAuditEntries({
      resource: published.version?.id ?? '',
    });
    expect(entries.map(({ action, detail }) => [action, detail])).toEqual([
      ['form.published', 'although it breaks the compatibility of the form'],
    ]);
  });

  it('is judged by what the current version promises, whatever the new one does', async () => {
    const { id, definition } = await given(Compatibility.BACKWARD);
    const next = { fields: [email], settings: { compatibility: Compatibility.NONE } };

    expect((await failureOf(publish(id, next))).reason).toBe('BREAKING_CHANGE');
    const withdrawn = await publish(id, { ...definition, settings: next.settings });
    const published = await publish(id, next);

    expect(withdrawn.changes).toMatchObject([
      { path: 'settings.compatibility', kind: ChangeKind.SETTING_CHANGED, breaks: [] },
    ]);
    expect(published.version?.breaking).toBe(false);
  });

  it('is told beforehand, without publishing', async () => {
    const { id, versionId, definition } = await given(Compatibility.FORWARD);
    const next = { ...definition, fields: [{ ...email, required: false }, note] };

    const said = await forms().validateForm({ definition: definitionMessage(next), againstFormId: id });
    const same = await forms().validateForm({ definition: definitionMessage(definition), againstFormId: id });
    const stranger = await services.givenKey();

    expect(said.changes).toMatchObject([{ path: 'fields.email', kind: ChangeKind.MADE_OPTIONAL }]);
    expect([said.breaking, same.breaking, same.changes.length]).toEqual([true, false, 0]);
    expect((await forms().getForm({ formId: id })).form?.currentVersionId).toBe(versionId);
    const asStranger = forms(stranger).validateForm({
      definition: definitionMessage(next),
      againstFormId: id,
    });
    expect((await failureOf(asStranger)).reason).toBe('NOT_FOUND');
  });

  it('is judged against all that is in use where the form promises that', async () => {
    const settings = { compatibility: Compatibility.FULL_TRANSITIVE };
    const { id, definition } = await given(Compatibility.FULL_TRANSITIVE);
    const sessions = createClient(SessionsService, services.as(services.key));
    const submissions = createClient(SubmissionsService, services.as(services.key));
    const { session } = await sessions.createSession({ subject: { case: 'formId', value: id } });
    const without = { fields: [email], settings };
    const third = { fields: [email, { ...note, maxLength: 9 }], settings };
    const outcome = (next: DefinitionInit) =>
      publish(id, next).then(
        ({ changes }) => changes.map(({ path, kind }) => [path, ChangeKind[kind]]),
        async (error) => (await failureOf(Promise.reject(error))).changes,
      );

    // The note goes by force, and a new one that takes less breaks nothing of the current version.
    await publish(id, without, { allowBreaking: true });
    const said = await forms().validateForm({ definition: definitionMessage(third), againstFormId: id });
    const whileAsked = await outcome(third);
    const unchanged = await outcome(without);
    await submissions.createSubmission({ formId: id, answers: { email: 'a@b.co' } });
    await sessions.cancelSession({ sessionId: session?.id ?? '' });
    const afterwards = await outcome(third);

    expect(whileAsked).toEqual([['fields.note', 'LIMITS_NARROWED']]);
    expect([said.breaking, said.changes.map(({ kind }) => ChangeKind[kind])]).toEqual([
      true,
      ['FIELD_ADDED', 'LIMITS_NARROWED'],
    ]);
    expect(unchanged).toEqual([]);
    expect(afterwards).toEqual([['fields.note', 'FIELD_ADDED']]);

    await submissions.createSubmission({ formId: id, answers: { email: 'a@b.co', note: 'short' } });
    expect(await outcome({ ...definition, fields: [email, { ...note, maxLength: 5 }] })).toEqual([
      ['fields.note', 'LIMITS_NARROWED'],
    ]);
  });

  it('is not published over another version than it was made from', async () => {
    const { id, versionId, definition } = await given(Compatibility.NONE);
    const next = (name: string) =>
      publish(id, { ...definition, name }, { expectedVersionId: versionId }).then(
        () => 'published',
        async (error) => (await failureOf(Promise.reject(error))).reason,
      );

    const outcomes = await Promise.all([next('Mine'), next('Yours')]);

    expect(outcomes.toSorted()).toEqual(['CONFLICT', 'published']);
    expect((await forms().listFormVersions({ formId: id })).versions).toHaveLength(2);
  });

  it('is listed in a failure no further than trailers hold, whatever the protocol', async () => {
    const fields = Array.from({ length: 100 }, (_, index) => ({
      id: `f${'x'.repeat(60)}${index}`,
      type: FormFieldType.TEXT,
    }));
    const { id } = await services.givenForm(services.key, {
      fields,
      settings: { compatibility: Compatibility.FULL },
    });

    const { message, changes } = await failureOf(publish(id, { fields: [email] }));

    expect(changes).toHaveLength(40);
    expect(message).toContain(' and 96 more');
  });
});
