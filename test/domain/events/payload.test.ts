import { describe, expect, it } from 'vitest';
import { sessionExpiredPayload, submissionPayload, testPayload } from '../../../src/domain/events/payload.ts';

const event = { id: 'evt_1', at: new Date('2026-11-21T10:00:00.001Z') };
const submission = {
  id: 'sub_1',
  formId: 'form_1',
  formVersionId: 'ver_1',
  formCreatedBy: 'public',
  sessionId: null,
  source: 'api',
  metadata: {},
  createdAt: new Date('2026-11-21T10:00:00.000Z'),
};

describe('submissionPayload', () => {
  const bodyOf = (facts: { byHuman: boolean; sessionId?: string }) => {
    const { start, end } = submissionPayload(event, { ...submission, ...facts });
    return JSON.parse(`${start}{"name":"Jo"}${end}`);
  };

  it('announces what came by API as created and accepted', () => {
    expect(bodyOf({ byHuman: false })).toEqual({
      id: 'evt_1',
      event: 'submission.created',
      createdAt: '2026-11-21T10:00:00.001Z',
      data: {
        submissionId: 'sub_1',
        formId: 'form_1',
        formVersionId: 'ver_1',
        formCreatedBy: 'public',
        sessionId: null,
        source: 'api',
        status: 'accepted',
        answers: { name: 'Jo' },
        metadata: {},
        createdAt: '2026-11-21T10:00:00.000Z',
      },
    });
  });

  it('announces what a human completed as completed and complete', () => {
    expect(bodyOf({ sessionId: 'sess_1', byHuman: true })).toMatchObject({
      event: 'submission.completed',
      data: { status: 'complete', sessionId: 'sess_1' },
    });
  });
});

describe('sessionExpiredPayload', () => {
  const session = {
    id: 'sess_1',
    formId: 'form_1',
    expiresAt: new Date('2026-11-21T09:59:59Z'),
    metadata: { a: 1 },
  };

  it('names the session, and its partial answers only where there are any', () => {
    const data = {
      sessionId: 'sess_1',
      formId: 'form_1',
      expiresAt: '2026-11-21T09:59:59.000Z',
      metadata: { a: 1 },
    };

    const without = JSON.parse(sessionExpiredPayload(event, session));
    const withThem = JSON.parse(sessionExpiredPayload(event, { ...session, partialAnswers: { name: 'J' } }));

    expect(without).toEqual({
      id: 'evt_1',
      event: 'session.expired',
      createdAt: event.at.toISOString(),
      data,
    });
    expect(withThem.data).toEqual({ ...data, partialAnswers: { name: 'J' } });
  });
});

describe('testPayload', () => {
  it('names the webhook that is tested, with answers that are made up', () => {
    const test = { webhookId: 'wh_1', formId: null, answers: { name: 'Sample' } };

    expect(JSON.parse(testPayload(event, test))).toMatchObject({ event: 'webhook.test', data: test });
  });
});
