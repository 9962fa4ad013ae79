import { describe, expect, it } from 'vitest';
import {
  lackingFromAgent,
  lackingFromLink,
  shownFields,
} from '../../../src/domain/conditions/shown-fields.ts';
import type { Condition, Field } from '../../../src/domain/definition/definition.ts';

const field = (id: string, visibleWhen?: Condition, hidden = false): Field => ({
  id,
  type: 'text',
  label: id,
  required: false,
  hidden,
  answeredBy: 'anyone',
  page: 1,
  ...(visibleWhen !== undefined && { visibleWhen }),
});
const hidden = (id: string, visibleWhen?: Condition) => field(id, visibleWhen, true);
const is = (name: string, value: string): Condition => ({ field: name, op: 'eq', value });

describe('shownFields', () => {
  it('leaves out hidden fields, what they rule out, and agent hints', () => {
    const fields = [
      hidden('plan'),
      field('a', is('plan', 'pro')),
      field('b', is('plan', 'free')),
      field('c'),
    ];

    const shown = shownFields([...fields, { ...field('d'), agentHint: 'secret' }], { plan: 'pro' });

    expect(shown).toEqual([field('a'), field('c'), field('d')]);
  });

  it.each<[string, Condition, Condition | undefined | 'left out']>([
    ['all keeps what is open', { all: [is('plan', 'pro'), is('name', 'x')] }, is('name', 'x')],
    ['all is decided by one that fails', { all: [is('plan', 'free'), is('name', 'x')] }, 'left out'],
    ['any is decided by one that holds', { any: [is('plan', 'pro'), is('name', 'x')] }, undefined],
    ['any keeps what is open', { any: [is('plan', 'free'), is('name', 'x')] }, is('name', 'x')],
    ['not turns a decision around', { not: is('plan', 'pro') }, 'left out'],
    ['not keeps what is open', { not: is('name', 'x') }, { not: is('name', 'x') }],
  ])('%s', (_, condition, expected) => {
    const [, shown] = shownFields([hidden('plan'), field('name'), field('a', condition)], { plan: 'pro' });

    expect(shown).toEqual(expected === 'left out' ? undefined : field('a', expected));
  });

  it("puts a hidden field's own condition in place of its value", () => {
    const fields = [field('name'), hidden('plan', is('name', 'x'))];

    const [, present] = shownFields([...fields, field('a', is('plan', 'pro'))], { plan: 'pro' });
    const [, absent] = shownFields([...fields, field('a', { field: 'plan', op: 'empty' })], { plan: 'pro' });

    expect(present?.visibleWhen).toEqual(is('name', 'x'));
    expect(absent?.visibleWhen).toEqual({ not: is('name', 'x') });
  });

  it('shows fields always whose condition would double with each hidden field before', () => {
    const twice = (id: string): Condition => ({ any: [is(id, 'v'), is(id, 'v')] });
    const doubled = Array.from({ length: 16 }, (_, index) => hidden(`h${index + 1}`, twice(`h${index}`)));
    const all = [
      field('name'),
      hidden('h0', is('name', 'x')),
      ...doubled.slice(0, 3),
      field('early', is('h3', 'v')),
      ...doubled.slice(3),
      field('late', is('h16', 'v')),
    ];
    const answers = Object.fromEntries(doubled.map(({ id }) => [id, 'v']));

    const [, early, late] = shownFields(all, { h0: 'v', ...answers });

    expect(JSON.stringify(early).match(/"x"/g)).toHaveLength(8);
    expect(late).toEqual(field('late'));
  });
});

describe('lackingFromAgent', () => {
  const byAgent = (id: string, visibleWhen?: Condition): Field => ({
    ...field(id, visibleWhen),
    required: true,
    answeredBy: 'agent',
  });

  it.each<[string, Field[], object, string[]]>([
    ['nothing that is answered', [byAgent('a')], { a: 'x' }, []],
    ['what is not', [byAgent('a'), byAgent('b')], { a: 'x', b: '' }, ['b']],
    ['nothing that is optional', [{ ...byAgent('a'), required: false }], {}, []],
    ['nothing that has a default', [{ ...byAgent('a'), defaultValue: 'x' }], {}, []],
    ['nothing that is ruled out', [hidden('plan'), byAgent('a', is('plan', 'pro'))], { plan: 'free' }, []],
    ['what people decide', [field('plan'), byAgent('a', is('plan', 'pro'))], { plan: 'free' }, ['a']],
  ])('names %s', (_, fields, answers, expected) => {
    expect(lackingFromAgent(fields, { ...answers }).map(({ id }) => id)).toEqual(expected);
  });
});

describe('lackingFromLink', () => {
  const needed = (id: string, visibleWhen?: Condition): Field => ({
    ...hidden(id, visibleWhen),
    required: true,
  });

  it.each<[string, Field[], object, string[]]>([
    ['nothing that is given', [needed('token')], { token: 'x' }, []],
    ['what is not', [needed('token'), needed('plan')], { token: 'x', plan: '' }, ['plan']],
    ['nothing that has a default', [{ ...needed('token'), defaultValue: 'x' }], {}, []],
    ['nothing that people see', [{ ...field('token'), required: true }], {}, []],
    ['nothing that an agent gives', [{ ...needed('token'), answeredBy: 'agent' }], {}, []],
    ['nothing that is ruled out', [hidden('plan'), needed('a', is('plan', 'pro'))], { plan: 'free' }, []],
    ['what is decided', [hidden('plan'), needed('a', is('plan', 'pro'))], { plan: 'pro' }, ['a']],
    ['nothing that people decide', [field('plan'), needed('a', is('plan', 'pro'))], {}, []],
  ])('names %s', (_, fields, answers, expected) => {
    expect(lackingFromLink(fields, { ...answers }).map(({ id }) => id)).toEqual(expected);
  });
});
