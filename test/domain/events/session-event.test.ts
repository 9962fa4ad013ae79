import { expect, it } from 'vitest';
import { sessionEvent } from '../../../src/domain/events/session-event.ts';

const session = {
  id: 'sess_1',
  projectId: 'prj_1',
  formId: 'form_1',
  expiresAt: new Date('2026-11-21T10:00:00Z'),
  createdAt: new Date('2026-11-21T09:00:00Z'),
  metadata: {},
  partialAnswers: { name: 'Jo', city: null, plan: 'pro' },
  provenance: {
    prefill: [],
    partial: [
      { by: 'api' as const, key: 'key_1', fields: ['plan'] },
      { by: 'human' as const, at: '2026-11-21T09:30:00.000Z' },
    ],
  },
};
const dataOf = (given: object = {}) =>
  JSON.parse(sessionEvent('session.expired', { ...session, ...given }, 0).body).data;

it('tells where the partial answers come from', () => {
  expect(dataOf().provenance).toEqual({
    name: { by: 'human', at: '2026-11-21T09:30:00.000Z' },
    plan: { by: 'api', at: '2026-11-21T09:00:00.000Z', keyId: 'key_1' },
  });
});

it('says nothing of it where there are none, and where they are older than the record', () => {
  expect(dataOf({ partialAnswers: null })).not.toHaveProperty('provenance');
  expect(dataOf({ provenance: null }).provenance).toEqual({});
});
