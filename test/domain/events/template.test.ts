import { describe, expect, it } from 'vitest';
import { sentBody } from '../../../src/domain/events/bodies.ts';
import { eventTypes } from '../../../src/domain/events/index.ts';
import { isByOthers, templateNames, templateProblems } from '../../../src/domain/events/template.ts';

const problems = (template: object) =>
  templateProblems(template as never, 'template').map(({ path, message }) => [path, message]);

describe('a template', () => {
  it('may name what events hold, and anything within answers and metadata', () => {
    expect(
      problems({
        text: 'New: {{ data.answers.email }} {{data.answers.place.city}}, {{data.metadata.ticket}} {no name}',
        whole: ['{{data}}', '{{data.answers}}', { deep: '{{id}}' }, 7, null, true],
      }),
    ).toEqual([]);
  });

  it.each([
    ['data.answer', 'Unknown name "data.answer". Did you mean "data.answers"?'],
    ['answers.email', 'Unknown name "answers.email"'],
    ['data.sessionId.x', 'Unknown name "data.sessionId.x". Did you mean "data.sessionId"?'],
    ['data.answers.', 'Unknown name "data.answers.". Did you mean "data.answers"?'],
    ['constructor', 'Unknown name "constructor"'],
    ['data.__proto__', 'Unknown name "data.__proto__"'],
  ])('may not name %j', (name, message) => {
    expect(problems({ a: [{ b: `x {{${name}}}` }] })).toEqual([['template.a.0.b', message]]);
  });

  it('names every problem at its place', () => {
    const unclosed = 'Expected a name between {{ and }}';

    expect(
      problems({ a: '{{id', b: 'id}}', c: '{{}}', d: '{{a b}}', '{{id}}': 1, e: '{{id}} {{x}}' }),
    ).toEqual([
      ['template.a', unclosed],
      ['template.b', unclosed],
      ['template.c', unclosed],
      ['template.d', unclosed],
      ['template.{{id}}', 'Only values can hold {{names}}, not keys'],
      ['template.e', 'Unknown name "x"'],
    ]);
    expect(problems({ a: 'x'.repeat(8 * 1024) })).toEqual([['template', 'Expected at most 8 KiB as JSON']]);
    expect(problems({ a: 'x\0' })).toHaveLength(1);
  });

  it('can name all that the events have, and nothing that none has', () => {
    const head = { id: 'evt_1', at: '2026-11-21T10:00:00.001Z' };
    const { start, end } = eventTypes['submission.created'].body(head, {
      id: 'sub_1',
      formId: 'form_1',
      formVersionId: 'ver_1',
      formCreatedBy: 'public',
      sessionId: null,
      language: 'de',
      source: 'api',
      metadata: {},
      respondent: { method: 'email_code', email: 'a@example.com', verifiedAt: head.at },
      createdAt: head.at,
      provenance: [{ by: 'api' }],
    });
    const session = {
      id: 's',
      formId: 'f',
      outcome: 'declined',
      reason: 'No',
      contextChecksum: 'c',
      expiresAt: new Date(0),
      metadata: {},
      partialAnswers: {},
      provenance: {},
    };
    const bodies = [
      sentBody(`${start}{}${end}`),
      eventTypes['session.expired'].body(head, session),
      eventTypes['session.cancelled'].body(head, session),
      eventTypes['session.declined'].body(head, session),
      eventTypes['submission.deleted'].body(head, { id: 'sub_1', formId: 'form_1', sessionId: null }),
      eventTypes['session.notified'].body(head, {
        sessionId: 's',
        formId: 'f',
        url: 'https://forms.example.com/f/s',
        project: 'default',
        question: 'Q',
        title: 'T',
        message: 'M',
        reminder: 0,
        expiresAt: head.at,
        metadata: {},
      }),
      eventTypes['webhook.test'].body(head, { webhookId: 'wh_1', formId: 'form_1', answers: {} }),
    ].map((body) => JSON.parse(body));
    const held = bodies.flatMap(({ data, ...rest }) => [
      ...Object.keys(rest),
      'data',
      ...Object.keys(data).map((key) => `data.${key}`),
    ]);

    expect(Object.keys(templateNames).toSorted()).toEqual([...new Set(held)].toSorted());
  });

  it('takes the words of others for theirs, wherever they are', () => {
    expect(['data.answers.x', 'data.metadata.a.b', 'data.source', 'data', 'unknown'].map(isByOthers)).toEqual(
      Array.from({ length: 5 }, () => true),
    );
    expect(['id', 'data.formId'].map(isByOthers)).toEqual([false, false]);
  });
});
