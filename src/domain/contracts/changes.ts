import { isDeepStrictEqual } from 'node:util';
import { type Condition, evaluate } from '../conditions/condition.ts';
import type { FormDefinition } from '../definition/definition.ts';
import type { Settings } from '../definition/settings.ts';
import { type Field, takesAnswer } from '../fields/field.ts';
import {
  changeKinds,
  compareField,
  type FoundChange,
  isAlwaysAnswered,
  isRefusedWithout,
  type Verdict,
} from './field-changes.ts';

/**
 * What a new definition changes for everybody who relies on the former one, in the order of the former one's fields.
 *
 * A change that can't be shown to be harmless counts as one that breaks: a new pattern may match the same texts as the
 * former one, but is reported as narrower.
 */
export function changesBetween(former: FormDefinition, next: FormDefinition): DefinitionChange[] {
  const found: FoundChange[] = [...fieldChanges(former, next), ...formChanges(former, next)];
  return found.map(({ path, kind }) => ({ path, kind, ...changeKinds[kind] }));
}

/** The changes that a form's `compatibility` refuses. */
export function refusedBy(
  { compatibility = 'none' }: Settings,
  changes: readonly DefinitionChange[],
): DefinitionChange[] {
  const { backward, forward } = promises[compatibility];
  return changes.filter((change) => (backward && !change.backward) || (forward && !change.forward));
}

const promises: Record<NonNullable<Settings['compatibility']>, Pick<Verdict, 'backward' | 'forward'>> = {
  none: { backward: false, forward: false },
  backward: { backward: true, forward: false },
  forward: { backward: false, forward: true },
  full: { backward: true, forward: true },
  full_transitive: { backward: true, forward: true },
};

function fieldChanges({ fields: former }: FormDefinition, { fields: next }: FormDefinition): FoundChange[] {
  const formerAsked = new Map(former.filter(takesAnswer).map((field) => [field.id, field]));
  const nextAsked = new Map(next.filter(takesAnswer).map((field) => [field.id, field]));
  const kept = [...formerAsked.values()].flatMap((field): FoundChange[] => {
    const path = `fields.${field.id}`;
    const changed = nextAsked.get(field.id);
    if (changed !== undefined) return compareField(field, changed, path);
    return [{ path, kind: isAlwaysAnswered(field) ? 'required_field_removed' : 'field_removed' }];
  });
  const added = [...nextAsked.values()]
    .filter(({ id }) => !formerAsked.has(id))
    .map((field): FoundChange => {
      const kind = isRefusedWithout(field) ? 'required_field_added' : 'field_added';
      return { path: `fields.${field.id}`, kind };
    });
  return [...kept, ...askedAnew(formerAsked, nextAsked), ...added, ...statementChanges(former, next)];
}

/** The required fields that can come to be asked since what their unchanged condition names is answered otherwise. */
function askedAnew(former: ReadonlyMap<string, Field>, next: ReadonlyMap<string, Field>): FoundChange[] {
  /** Whether it can be decided in another way than before, though the same answers are given. */
  const isUnsettled = (condition: Condition | undefined): boolean => {
    if (condition === undefined) return false;
    if ('all' in condition) return condition.all.some(isUnsettled);
    if ('any' in condition) return condition.any.some(isUnsettled);
    if ('not' in condition) return isUnsettled(condition.not);
    const [before, after] = [former, next].map((fields) => fields.get(condition.field));
    const [without, within] = [before, after].map((field) =>
      evaluate(condition, { [condition.field]: field?.defaultValue }),
    );
    return (
      without !== within ||
      !isDeepStrictEqual(before?.visibleWhen, after?.visibleWhen) ||
      isUnsettled(after?.visibleWhen)
    );
  };
  return [...next.values()].flatMap((field): FoundChange[] => {
    const before = former.get(field.id);
    const wasNeeded = before !== undefined && isRefusedWithout(before) && before.visibleWhen !== undefined;
    const isSame = wasNeeded && isDeepStrictEqual(before.visibleWhen, field.visibleWhen);
    const isAsked = isSame && isRefusedWithout(field) && isUnsettled(field.visibleWhen);
    return isAsked ? [{ path: `fields.${field.id}`, kind: 'made_required' }] : [];
  });
}

/** Statements are texts; so is the order of the questions. */
function statementChanges(former: readonly Field[], next: readonly Field[]): FoundChange[] {
  const statements = (fields: readonly Field[]) => fields.filter((field) => !takesAnswer(field));
  const order = (fields: readonly Field[]) => fields.map(({ id }) => id);
  const isSame =
    isDeepStrictEqual(statements(former), statements(next)) &&
    isDeepStrictEqual(commonOf(order(former), order(next)), commonOf(order(next), order(former)));
  return isSame ? [] : [{ path: 'fields', kind: 'text_changed' }];
}

function commonOf(ids: readonly string[], others: readonly string[]): string[] {
  return ids.filter((id) => others.includes(id));
}

function formChanges(former: FormDefinition, next: FormDefinition): FoundChange[] {
  const texts = (['name', 'slug', 'description', 'pages', 'translations'] as const)
    .filter((name) => !isDeepStrictEqual(former[name], next[name]))
    .map((name): FoundChange => ({ path: name, kind: 'text_changed' }));
  const delivery: FoundChange[] = isDeepStrictEqual(former.delivery, next.delivery)
    ? []
    : [{ path: 'delivery', kind: 'delivery_changed' }];
  const names = new Set([...keysOf(former.settings), ...keysOf(next.settings)]);
  const settings = [...names].flatMap((name): FoundChange[] => {
    if (isDeepStrictEqual(former.settings[name], next.settings[name])) return [];
    const narrows = narrowerSettings[name]?.(former.settings, next.settings) ?? false;
    return [{ path: `settings.${name}`, kind: narrows ? 'access_narrowed' : 'setting_changed' }];
  });
  return [...texts, ...delivery, ...settings];
}

function keysOf(settings: Settings): (keyof Settings)[] {
  return Object.keys(settings) as (keyof Settings)[];
}

/** The settings by which a form can come to refuse what it accepted, and when they do. */
const narrowerSettings: {
  [Name in keyof Settings]?: (former: Settings, next: Settings) => boolean;
} = {
  allowPartial: (_former, next) => !next.allowPartial,
  publicPage: (_former, next) => !next.publicPage,
  allowedOrigins: ({ allowedOrigins: former }, { allowedOrigins: next }) =>
    next.length > 0 && (former.length === 0 || former.some((origin) => !next.includes(origin))),
  embedOrigins: ({ embedOrigins: former }, { embedOrigins: next }) =>
    former.some((origin) => !next.includes(origin)),
  closesAt: ({ closesAt: former }, { closesAt: next }) =>
    next !== undefined && (former === undefined || Date.parse(next) < Date.parse(former)),
  maxSubmissions: ({ maxSubmissions: former }, { maxSubmissions: next }) =>
    next !== undefined && (former === undefined || next < former),
  onePerRespondent: (_former, next) => next.onePerRespondent === true,
};

/** `path` names fields by their ids: `fields.email`, `settings.publicPage`. */
export type DefinitionChange = FoundChange & Verdict;
