import { expect, it } from 'vitest';
import { SessionSchema, SessionStatus } from '../../gen/headlessforms/v1/sessions_pb.js';
import { rowToMessage } from '../../src/services/row-proto.ts';

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
