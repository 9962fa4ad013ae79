import { describe, expect, it } from 'vitest';
import { EventType, WebhookEvent } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { addressesOf, sentBody, sentWithAnswers } from '../../../src/domain/events/bodies.ts';
import {
  effectsOf,
  emittedEvents,
  eventNameOf,
  eventTypeOf,
  eventTypes,
  registrableEvents,
  sessionEvent,
} from '../../../src/domain/events/index.ts';

const event = { id: 'evt_1', at: '2026-11-21T10:00:00.001Z' };
const submission = {
  id: 'sub_1',
  formId: 'form_1',
  formVersionId: 'ver_1',
  formCreatedBy: 'public',
  source: 'api',
  metadata: {},
  createdAt: '2026-11-21T10:00:00.000Z',
  provenance: [{ by: 'api' as const }],
};

describe('the body of a submission', () => {
  const storedBody = (facts: object, answers: object) => {
    const { start, end } = eventTypes['submission.created'].body(event, {
      ...submission,
      sessionId: null,
      ...facts,
    });
    return `${start}${JSON.stringify(answers)}${end}`;
  };
  const bodyOf = (type: 'submission.created' | 'submission.completed', sessionId: string | null) => {
    const { start, end } = eventTypes[type].body(event, { ...submission, sessionId });
    return JSON.parse(sentBody(`${start}{"name":"Jo"}${end}`));
  };

  it('announces what came by API as created and accepted', () => {
    expect(bodyOf('submission.created', null)).toEqual({
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
        provenance: { name: { by: 'api', at: '2026-11-21T10:00:00.000Z' } },
        metadata: {},
        createdAt: '2026-11-21T10:00:00.000Z',
      },
    });
  });

  it('says of each answer where it comes from, also where a field is named like that', () => {
    const provenance = [
      { by: 'default' as const, fields: ['seats'] },
      { by: 'api' as const, key: 'key_1' },
    ];
    const answers = { provenance: ['a'], seats: 1, name: ',"provenance":[' };

    const { data } = JSON.parse(sentBody(storedBody({ provenance }, answers)));

    const at = '2026-11-21T10:00:00.000Z';
    const byKey = { by: 'api', at, keyId: 'key_1' };
    expect(data.answers).toEqual(answers);
    expect(data.provenance).toEqual({ provenance: byKey, seats: { by: 'default', at }, name: byKey });
  });

  it.each([
    ['an API', [{ by: 'api' as const, key: 'key_1' }]],
    ['an API and defaults', [{ by: 'default' as const, fields: ['seats'] }, { by: 'api' as const }]],
    [
      'a page at several times',
      [{ by: 'human' as const, at: '2026-11-21T09:59:00.000Z', fields: ['seats'] }],
    ],
    ['nowhere that is known', []],
  ])('is sent in the same characters when it is stored and later, with answers of %s', (_of, provenance) => {
    const answers = { provenance: ['a'], seats: 1, name: ',"provenance":[ \u2028 <é>' };
    const { start, end } = eventTypes['submission.created'].body(event, {
      ...submission,
      sessionId: null,
      provenance,
    });

    const atOnce = sentWithAnswers(
      { start, end },
      { answers, provenance, createdAt: new Date(submission.createdAt) },
    );

    expect(atOnce).toBe(sentBody(`${start}${JSON.stringify(answers)}${end}`));
    expect(sentBody(atOnce)).toBe(atOnce);
  });

  it('is sent as it is stored where that says it of each answer already', () => {
    const at = '2026-11-21T10:00:00.000Z';
    const stored = storedBody({}, { list: 1, provenance: ['a'] }).replace(
      '"provenance":[{"by":"api"}]',
      `"provenance":{"list":{"by":"api","at":"${at}"}}`,
    );

    expect(sentBody(stored)).toBe(stored);
  });

  it('announces what a human completed as completed and complete', () => {
    expect(bodyOf('submission.completed', 'sess_1')).toMatchObject({
      event: 'submission.completed',
      data: { status: 'complete', sessionId: 'sess_1' },
    });
  });
});

describe('the body of an expired session', () => {
  const session = {
    id: 'sess_1',
    formId: 'form_1',
    outcome: 'expired',
    expiresAt: new Date('2026-11-21T09:59:59Z'),
    metadata: { a: 1 },
  };

  it('names the session, and its partial answers only where there are any', () => {
    const data = {
      sessionId: 'sess_1',
      formId: 'form_1',
      outcome: 'expired',
      expiresAt: '2026-11-21T09:59:59.000Z',
      metadata: { a: 1 },
    };

    const without = JSON.parse(eventTypes['session.expired'].body(event, session));
    const withThem = JSON.parse(
      eventTypes['session.expired'].body(event, { ...session, partialAnswers: { name: 'J' } }),
    );

    expect(without).toEqual({
      id: 'evt_1',
      event: 'session.expired',
      createdAt: event.at,
      data,
    });
    expect(withThem.data).toEqual({ ...data, partialAnswers: { name: 'J' } });
  });
});

describe('the body of a test', () => {
  it('names the webhook that is tested, with answers that are made up', () => {
    const test = { webhookId: 'wh_1', formId: 'form_1', answers: { name: 'Sample' } };

    expect(JSON.parse(eventTypes['webhook.test'].body(event, test))).toMatchObject({
      event: 'webhook.test',
      data: test,
    });
  });
});

describe('the bodies of events that become mails', () => {
  it('name whom to write to', () => {
    const one = eventTypes['owner.change_requested'].body({ address: 'jo@example.com' });
    const several = eventTypes['recipients.added'].body({ addresses: ['a@example.com', 'b@example.com'] });

    expect(addressesOf(one)).toEqual(['jo@example.com']);
    expect(addressesOf(several)).toEqual(['a@example.com', 'b@example.com']);
  });
});

describe('the table of events', () => {
  it('has a name for each event that a webhook can register for', () => {
    const known = Object.values(WebhookEvent).filter((value) => typeof value === 'number' && value !== 0);

    expect(new Set<unknown>(Object.values(registrableEvents))).toEqual(new Set(known));
  });

  it('has a name for each type of event that messages know, and finds it by the type', () => {
    const known = Object.values(EventType).filter((value) => typeof value === 'number' && value !== 0);

    const [notified, callback] = [EventType.SESSION_NOTIFIED, EventType.SESSION_ENDED];
    expect(new Set([...emittedEvents.map(eventTypeOf), notified, callback])).toEqual(new Set(known));
    expect(eventNameOf(notified)).toBe('session.notified');
    expect(eventNameOf(callback)).toBe('session.ended');
    expect(emittedEvents.map(eventTypeOf).map(eventNameOf)).toEqual(emittedEvents);
    expect([eventTypeOf('form.activated'), eventNameOf(EventType.UNSPECIFIED)]).toEqual([0, '']);
  });

  it('shows listeners what webhooks receive, and not what becomes mail alone', () => {
    expect(emittedEvents).toEqual([
      'submission.created',
      'submission.completed',
      'session.expired',
      'session.cancelled',
      'webhook.test',
      'submission.deleted',
      'submission.replaced',
      'session.declined',
    ]);
  });

  it('leads to nothing for an event that only another version knows', () => {
    expect(effectsOf('form.painted')).toEqual({ webhooks: 'none', mails: 'none' });
    expect(effectsOf('constructor')).toEqual({ webhooks: 'none', mails: 'none' });
  });
});

const session = {
  id: 'sess_1',
  projectId: 'prj_1',
  formId: 'form_1',
  expiresAt: new Date('2026-11-21T10:00:00Z'),
  createdAt: new Date('2026-11-21T09:00:00Z'),
  metadata: {},
  context: null,
  declineReason: null,
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
