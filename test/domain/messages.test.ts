import { create, isFieldSet } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  CreateSessionRequestSchema,
  SessionSchema,
  SessionStatus,
  UpdateSessionRequestSchema,
} from '../../gen/headlessforms/v1/sessions_pb.js';
import { UpdateWebhookRequestSchema } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { messageFrom, rowToMessage } from '../../src/domain/messages.ts';

it('makes durations, enums, lists and nested messages of JSON', () => {
  const json = {
    form_id: 'form_1',
    expires_in: 60,
    prefill: { a: [1] },
    return_url: undefined,
    context: { title: 'Trip', items: [{ label: 'Plan', value: 'a', kind: 'code' }] },
    notify: { webhook_id: 'wh_1', remind_after: [60, 120] },
  };

  const message = create(CreateSessionRequestSchema, messageFrom(CreateSessionRequestSchema, json));

  expect(message).toMatchObject({
    subject: { case: 'formId', value: 'form_1' },
    expiresIn: { seconds: 60n, nanos: 0 },
    prefill: { a: [1] },
    returnUrl: '',
    context: { title: 'Trip', text: '', items: [{ label: 'Plan', value: 'a', kind: 2 }] },
    notify: { webhookId: 'wh_1', remindAfter: [{ seconds: 60n }, { seconds: 120n }] },
  });
});

it('reads null as empty, and a message of a map alone as the map', () => {
  const messageOf = (json: object) =>
    create(UpdateWebhookRequestSchema, messageFrom(UpdateWebhookRequestSchema, json));

  const removed = messageOf({ url: null, template: null, headers: null, filter: null });
  const given = messageOf({ headers: { 'x-a': '1' }, filter: { field_id: 'topic', value: true } });

  expect(removed).toMatchObject({ url: '', template: {}, headers: { values: {} }, filter: { source: '' } });
  expect(given.headers?.values).toEqual({ 'x-a': '1' });
  expect(given.filter).toMatchObject({
    fieldId: 'topic',
    value: { kind: { case: 'boolValue', value: true } },
  });
  expect(isFieldSet(given, UpdateWebhookRequestSchema.field.url)).toBe(false);
});

it('takes an instant for the time of its verb, and a message as it is', () => {
  const expireTime = { $typeName: 'google.protobuf.Timestamp', seconds: 1n, nanos: 0 };

  expect(messageFrom(UpdateSessionRequestSchema, { expires_at: expireTime })).toEqual({ expireTime });
});

it('refuses a name that is no field', () => {
  expect(() => messageFrom(UpdateSessionRequestSchema, { metaData: {} })).toThrow(
    'has no field for metaData',
  );
});

const createdAt = new Date('2026-11-28T08:00:00.000Z');

it('takes texts, times, enums and JSON objects from the properties of their names', () => {
  const row = {
    id: 'sess_1',
    createdAt,
    expiresAt: createdAt,
    status: 'open',
    prefill: { a: 1 },
    returnUrl: null,
  };

  const message = rowToMessage(SessionSchema, row, { url: 'https://forms.example.com/f/sess_1' });

  expect(message).toMatchObject({ id: 'sess_1', status: SessionStatus.OPEN, prefill: { a: 1 } });
  expect(message.createTime).toEqual(message.expireTime);
  expect(message.createTime?.seconds).toBe(BigInt(createdAt.getTime() / 1000));
  expect(message.url).toBe('https://forms.example.com/f/sess_1');
  expect(message.returnUrl).toBeUndefined();
});

it('takes no message from a row, which may hold more than is shown', () => {
  const row = {
    callback: { url: 'https://example.com/hook' },
    respondent: { codes: 3 },
    provenance: { a: {} },
  };

  const message = rowToMessage(SessionSchema, row, {});

  expect(Object.values(message).filter((value) => value !== undefined)).toEqual([]);
});

it('lets a field of its own go before that of the row, also to leave it out', () => {
  const row = { partialAnswers: { a: 1 } };

  const message = rowToMessage(SessionSchema, row, { partialAnswers: undefined });

  expect(message.partialAnswers).toBeUndefined();
});
