import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { compileForm } from '../../../src/domain/answers/answers.ts';
import type { VersionToDescribe } from '../../../src/domain/contracts/answers-file.ts';
import { changesBetween, refusedBy } from '../../../src/domain/contracts/changes.ts';
import { firstContract, nextContract } from '../../../src/domain/contracts/contract.ts';
import { type ChangeKind, changeKinds } from '../../../src/domain/contracts/field-changes.ts';
import { generateSchema } from '../../../src/domain/contracts/generate.ts';
import { checkDefinition, type FormDefinition } from '../../../src/domain/definition/definition.ts';
import { isObject } from '../../../src/domain/json/json.ts';
import { createRandom } from '../../days/world/random.ts';
import { temporaryFolder } from '../../support/spawn.ts';
import { givenDefinition, sent, withKey } from '../given.ts';
import { type Case, corpus, pool } from './corpus.ts';
import { messageOf } from './given.ts';
import { changedFields, randomAnswers, randomFields } from './random-forms.ts';

describe('changes between two versions of a form', () => {
  it.each(corpus)('$name', ({ former, next, kinds }) => {
    const changes = changesBetween(givenDefinition(former), givenDefinition(next));

    expect(changes.map(({ kind }) => kind)).toEqual(kinds);
  });

  it('are of every kind in the corpus', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    expect(new Set(corpus.flatMap(({ kinds }) => kinds))).toEqual(new Set(Object.keys(changeKinds)));
  });

  it.each(corpus)('keep what was valid exactly if they say so: $name', (one) => {
    const former = givenDefinition(one.former);
    const changes = changesBetween(former, givenDefinition(one.next));

    const refused = answersTo(one.former).filter(({ given }) => !isValid(one.next, given));

    const isBackward = changes.every(({ backward }) => backward);
    expect(
      isBackward === (refused.length === 0) || one.explained !== undefined,
      JSON.stringify(refused[0]),
    ).toBe(true);
    // What is explained is on the safe side.
    if (one.explained !== undefined) expect(isBackward).toBe(false);
  });

  it('are of types exactly if buf says that generated files are broken', async () => {
    using folder = temporaryFolder();
    const [before, after] = ['before', 'after'].map((name) => join(folder.path, name));
    corpus.forEach((one, index) => {
      const [former, next] = versionsOf(one, `case-${index}`);
      for (const [root = '', version] of [
        [before, former],
        [after, next],
      ] as const) {
        const { path, content } = generateSchema('proto', version);
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), content);
      }
    });

    const buf = join(import.meta.dirname, '../../../node_modules/.bin/buf');
    const args = ['breaking', after ?? '', '--against', before ?? '', '--error-format', 'json'];
    const { stdout, stderr } = spawnSync(buf, args, { encoding: 'utf8' });

    expect(stderr).toBe('');
    const broken = new Set(
      [...stdout.matchAll(/case_(\d+)[/\\]+\w+_answers\.proto/g)].map(([, index]) => Number(index)),
    );
    const namesOf = (indices: Iterable<number>) =>
      [...indices].toSorted((a, b) => a - b).map((index) => corpus[index]?.name);
    const ofTypes = corpus.flatMap(({ kinds }, index) =>
      kinds.some((kind) => typeKinds.has(kind)) ? [index] : [],
    );
    expect(namesOf(broken)).toEqual(namesOf(ofTypes));
    expect(broken.size).toBeGreaterThan(10);
  });

  it.each(corpus)('let the former message read new answers if they say so: $name', (one) => {
    const former = givenDefinition(one.former);
    const changes = changesBetween(former, givenDefinition(one.next));

    const asked = former.fields.map(({ id }) => id);
    const formerAnswers = answersTo(one.former);
    const always = asked.filter((id) => formerAnswers.every(({ stored }) => id in stored));
    const [before, after] = versionsOf(one).map(messageOf);
    if (before === undefined || after === undefined) throw new Error('There are two versions');
    const unread = answersTo(one.next).filter(({ stored }) => {
      const sent = toBinary(after, fromJson(after, stored));
      const read = toJson(before, fromBinary(before, sent));
      const wanted = Object.entries(stored).filter(([id]) => asked.includes(id));
      return (
        !isObject(read) ||
        always.some((id) => !(id in read)) ||
        !isDeepStrictEqual(read, Object.fromEntries(wanted))
      );
    });

    // They are read, and say something else.
    const isForward = changes.every(({ kind, forward }) => forward || kind === 'meaning_changed');
    expect(isForward, JSON.stringify(unread[0])).toBe(unread.length === 0);
  });

  it('announce all that was accepted and is refused after, over generated pairs', () => {
    let refusals = 0;
    for (let seed = 0; seed < PAIRS; seed += 1) {
      const random = createRandom(`changes ${seed}`);
      const fields = randomFields(random);
      const checked = checkDefinition(sent({ fields: changedFields(random, fields) }), withKey);
      if (!checked.ok) continue;
      const [former, next] = [compileForm(givenDefinition({ fields })), compileForm(checked.definition)];
      const changes = changesBetween(former.definition, next.definition);
      const isBackward = changes.every(({ backward }) => backward);
      for (let n = 0; n < ANSWERS_A_PAIR; n += 1) {
        const answers = fitting(former.definition, randomAnswers(random, former.definition.fields));
        if (!former.checkAnswers(answers).ok || next.checkAnswers(answers).ok) continue;
        refusals += 1;
        expect(isBackward, JSON.stringify({ seed, answers, changes })).toBe(false);
      }
    }
    expect(refusals).toBeGreaterThan(PAIRS);
  });

  it('are refused by the compatibility that the former version promises', () => {
    const refusedIn = (compatibility: 'none' | 'backward' | 'forward' | 'full', next: object[]) => {
      const former = givenDefinition({
        fields: [{ id: 'f', type: 'text', required: true }],
        settings: { compatibility },
      });
      const changes = changesBetween(former, givenDefinition({ fields: next, settings: { compatibility } }));
      return refusedBy(former.settings, changes).map(({ path, kind }) => `${path} ${kind}`);
    };
    const optional = [{ id: 'f', type: 'text' }];
    const shorter = [{ id: 'f', type: 'text', required: true, maxLength: 5 }];

    expect(refusedIn('none', shorter)).toEqual([]);
    expect(refusedIn('backward', shorter)).toEqual(['fields.f limits_narrowed']);
    expect(refusedIn('backward', optional)).toEqual([]);
    expect(refusedIn('forward', shorter)).toEqual([]);
    expect(refusedIn('forward', optional)).toEqual(['fields.f made_optional']);
    expect(refusedIn('full', shorter)).toEqual(['fields.f limits_narrowed']);
    expect(refusedIn('full', optional)).toEqual(['fields.f made_optional']);
  });
});

/** Each is a form and the same with a few changes. */
const PAIRS = 2000;
const ANSWERS_A_PAIR = 30;

/** The answers that fit their fields by themselves. What is not asked is dropped, so it could be anything. */
function fitting(definition: FormDefinition, answers: Record<string, unknown>): Record<string, unknown> {
  const fields = definition.fields.map((field) => {
    const { visibleWhen: _, ...asked } = field;
    return { ...asked, required: false };
  });
  const { checkAnswers } = compileForm({ ...definition, fields });
  return Object.fromEntries(
    Object.entries(answers).filter(([id, answer]) => checkAnswers({ [id]: answer }).ok),
  );
}

/** The version before and the one after. */
function versionsOf(one: Case, owner = 'form_01k'): [former: VersionToDescribe, next: VersionToDescribe] {
  const definition = givenDefinition(one.former);
  const changed = givenDefinition(one.next);
  const facts = { formId: 'form_01k', checksum: 'c0ffee' };
  const former = { ...facts, version: 1, definition, contract: firstContract(owner, definition) };
  return [former, { ...facts, version: 2, definition: changed, contract: nextContract(former, changed) }];
}

/** The changes after which generated code lacks a field, or has another in its place. All others keep the types. */
const typeKinds: ReadonlySet<ChangeKind> = new Set([
  'field_removed',
  'required_field_removed',
  'field_retyped',
]);

/** The pool's answers that a form takes, to `f` and to nothing, with the condition met and not, and what it stores of them. */
function answersTo(parts: Case['former']) {
  const form = compileForm(givenDefinition(parts));
  const asked = new Set(form.definition.fields.map(({ id }) => id));
  const all = [{}, ...pool.map((value) => ({ f: value }))].flatMap((answers) => [
    answers,
    ...(asked.has('other') ? [{ ...answers, other: 'yes' }] : []),
  ]);
  return all.flatMap((given) => {
    const checked = form.checkAnswers(given);
    return checked.ok && isObject(checked.answers) ? [{ given, stored: checked.answers }] : [];
  });
}

function isValid(parts: Case['next'], answers: Record<string, unknown>): boolean {
  return compileForm(givenDefinition(parts)).checkAnswers(answers).ok;
}
