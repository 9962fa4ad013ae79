import { pathOf, type Violation } from '../errors/violations.ts';
import type { Json, JsonObject } from '../json/json.ts';
import { jsonProblems } from '../json/json-problems.ts';
import { nearestName } from '../text/nearest-name.ts';

/**
 * What templates can name of an event. `by` says whose words a value is: the service's own are safe in any text, those
 * of people and askers are not. What is `open` holds values by names of their own, as `data.answers.email`.
 */
export const templateNames: Record<string, TemplateName> = {
  id: { by: 'service' },
  event: { by: 'service' },
  createdAt: { by: 'service' },
  data: { by: 'others' },
  'data.submissionId': { by: 'service' },
  'data.formId': { by: 'service' },
  'data.formVersionId': { by: 'service' },
  'data.formCreatedBy': { by: 'service' },
  'data.sessionId': { by: 'service' },
  'data.url': { by: 'service' },
  'data.project': { by: 'others' },
  'data.question': { by: 'others' },
  'data.title': { by: 'others' },
  'data.message': { by: 'others' },
  'data.reminder': { by: 'service' },
  'data.webhookId': { by: 'service' },
  'data.status': { by: 'service' },
  'data.outcome': { by: 'service' },
  'data.reason': { by: 'others' },
  'data.contextChecksum': { by: 'service' },
  'data.createdAt': { by: 'service' },
  'data.expiresAt': { by: 'service' },
  'data.language': { by: 'others' },
  'data.respondent': { by: 'others', open: true },
  'data.source': { by: 'others' },
  'data.answers': { by: 'others', open: true },
  'data.partialAnswers': { by: 'others', open: true },
  'data.provenance': { by: 'others', open: true },
  'data.metadata': { by: 'others', open: true },
};

/** What the template of a callback can name; of answers only with the right to them. */
export function callbackNames({ answers }: { answers: boolean }): Names {
  const names = [
    'id',
    'event',
    'createdAt',
    'data',
    'sessionId',
    'formId',
    'submissionId',
    'outcome',
    'metadata',
  ];
  const carried = answers ? [...names, 'answers', 'reason'] : names;
  return Object.fromEntries(
    Object.entries(templateNames).filter(([name]) => carried.includes(name.replace('data.', ''))),
  );
}

/** The part of a text that is a name in double braces, or the characters between two of these. */
export function partsOf(text: string): TemplatePart[] {
  return text.split(placeholder).flatMap((part, index): TemplatePart[] => {
    if (index % 2 === 1) return [{ name: part }];
    return part === '' ? [] : [{ text: part }];
  });
}

/** The ids of the fields that a template names in answers, or in what is known of them. */
export function fieldsNamedIn(template: Json): Set<string> {
  if (typeof template === 'object' && template !== null) {
    return new Set(Object.values(template).flatMap((child) => [...fieldsNamedIn(child)]));
  }
  const names =
    typeof template === 'string'
      ? partsOf(template).flatMap((part) => ('name' in part ? part.name : []))
      : [];
  return new Set(
    names.flatMap((name) => /^data\.(?:answers|partialAnswers|provenance)\.([^.]+)/.exec(name)?.[1] ?? []),
  );
}

/** Whose words a value is, by a name that `templateProblems` has accepted. */
export function isByOthers(name: string): boolean {
  return knownName(name, templateNames)?.by !== 'service';
}

/**
 * What is wrong with a template, at its place below `path`: JSON of up to 8 KiB, in whose strings `{{…}}` holds one of
 * the `names`.
 */
export function templateProblems(
  template: JsonObject,
  path: string,
  names: Names = templateNames,
): Violation[] {
  const problems = jsonProblems(template, path, { maxKib: MAX_TEMPLATE_KIB });
  return problems.length > 0 ? problems : problemsIn(template, path, names);
}

function problemsIn(value: Json, path: string, names: Names): Violation[] {
  if (typeof value === 'string') return textProblems(value, path, names);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [
    ...(/\{\{|\}\}/.test(key)
      ? [invalid(pathOf(path, key), 'Only values can hold {{names}}, not keys')]
      : []),
    ...problemsIn(child, pathOf(path, key), names),
  ]);
}

function textProblems(text: string, path: string, names: Names): Violation[] {
  return partsOf(text).flatMap((part) => {
    if ('text' in part) {
      return /\{\{|\}\}/.test(part.text) ? [invalid(path, 'Expected a name between {{ and }}')] : [];
    }
    return knownName(part.name, names) === undefined ? [invalid(path, unknownName(part.name, names))] : [];
  });
}

function unknownName(name: string, names: Names): string {
  const shown = name.slice(0, MAX_SHOWN_NAME);
  const near = nearestName(name, Object.keys(names));
  return `Unknown name "${shown}"${near === undefined ? '' : `. Did you mean "${near}"?`}`;
}

/** A name itself, or one within what is `open`. */
function knownName(name: string, names: Names): TemplateName | undefined {
  if (Object.hasOwn(names, name)) return names[name];
  const [first = '', second = '', ...inside] = name.split('.');
  const outer = `${first}.${second}`;
  const isInside = inside.length > 0 && inside.every((part) => part !== '');
  return isInside && Object.hasOwn(names, outer) && names[outer]?.open === true ? names[outer] : undefined;
}

function invalid(path: string, message: string): Violation {
  return { path, code: 'invalid_string', message };
}

const placeholder = /\{\{\s*([^\s{}]+)\s*\}\}/;

/** The documented limit of a template. */
const MAX_TEMPLATE_KIB = 8;

const MAX_SHOWN_NAME = 100;

export type TemplatePart = { text: string } | { name: string };

type TemplateName = { by: 'service' | 'others'; open?: true };

type Names = Readonly<Record<string, TemplateName>>;
