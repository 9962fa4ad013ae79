import { evaluate, isEmpty } from '../conditions/condition.ts';
import type { FormDefinition } from '../definition/definition.ts';
import type { Field } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { isObject, isScalar, type Json, ownValue } from '../json/json.ts';
import { canonicalJson } from '../json/json-text.ts';
import { type Answers, isUnanswered } from './answers.ts';

/**
 * How an answer came: from the hosted page, by a call or an HTML form, as it was prefilled, as the field's default, or
 * from the user of an MCP client.
 */
export const answerChannels = ['human', 'api', 'prefill', 'default', 'mcp_user'] as const;

/**
 * Tells where the answers of a submission come from, as it is stored.
 *
 * What a person left as the page began with keeps its origin, since a page posts all that it shows. `held` is what
 * the submission's session holds, if it has one.
 */
export function originsOf(submission: Submitted, held?: Held): StoredOrigin[] {
  const { definition, answers, given, by, keyId, at } = submission;
  if (held === undefined) return originsOfCall(submission);
  const own: Origin = { by, at, ...(keyId !== undefined && { keyId }) };
  const filledIn: Origin = { by: 'default', at };
  const provenance: Provenance = new Map();
  for (const field of definition.fields) {
    const { id, defaultValue } = field;
    const answer = ownValue(answers, id);
    if (answer === undefined) continue;
    const kept = held.answers.get(id);
    const isGiven = !isUnanswered(field, ownValue(given, id));
    if (isGiven) {
      setOrigin(provenance, id, by === 'human' ? originOnPage(field, answer, held, at) : own);
    } else if (kept !== undefined) {
      setOrigin(provenance, id, held.provenance.get(id));
    } else if (defaultValue !== undefined) {
      provenance.set(id, filledIn);
    }
  }
  return compact(provenance, Object.keys(answers).length, at);
}

/**
 * The origin of an answer that a page posted: its own if it is what the page began with, undefined if that is not
 * known, else the person.
 */
export function originOnPage(field: Field, answer: Json, held: Held, at: string): Origin | undefined {
  const { id, defaultValue } = field;
  const kept = held.answers.get(id);
  if (kept !== undefined && sameAnswer(field, kept, answer)) return held.provenance.get(id);
  const beganWithDefault = kept === undefined && defaultValue !== undefined && !held.cleared.has(id);
  return { by: beganWithDefault && sameAnswer(field, defaultValue, answer) ? 'default' : 'human', at };
}

/** The same origin, of a person whose address is known for certain if it is one. */
export function verified(origin: StoredOrigin): StoredOrigin {
  return origin.by === 'human' ? { ...origin, verified: true } : origin;
}

/** All answers came together, but for the defaults that filled in. */
function originsOfCall({ definition, answers, given, by, keyId }: Submitted): StoredOrigin[] {
  const own: StoredOrigin = { by, ...(keyId !== undefined && { key: keyId }) };
  const filledIn = definition.fields
    .filter(({ id, defaultValue }) => defaultValue !== undefined && Object.hasOwn(answers, id))
    .flatMap((field) => (isUnanswered(field, ownValue(given, field.id)) ? [field.id] : []));
  return filledIn.length === 0 ? [own] : [{ by: 'default', fields: filledIn }, own];
}

/** What a session holds, by field id, and where each of it comes from as far as that is known. */
export function currentAnswersOf({ prefill, partialAnswers, provenance, createdAt }: SessionAnswers): Held {
  const answers = new Map<string, Json>();
  const origins: Provenance = new Map();
  const at = createdAt.toISOString();
  const layers = [
    { layer: prefill, stored: provenance?.prefill ?? [{ by: 'prefill' as const }] },
    { layer: partialAnswers ?? {}, stored: provenance?.partial ?? [] },
  ];
  for (const { layer, stored } of layers) {
    const known = expand(stored, Object.keys(layer), at);
    for (const [id, answer] of Object.entries(layer)) {
      if (isEmpty(answer)) answers.delete(id);
      else answers.set(id, answer);
      origins.delete(id);
      if (!isEmpty(answer)) setOrigin(origins, id, known.get(id));
    }
  }
  const cleared = Object.entries({ ...prefill, ...partialAnswers }).flatMap(([id, value]) =>
    isEmpty(value) ? id : [],
  );
  return { answers, provenance: origins, cleared: new Set(cleared) };
}

/** The origins of a layer of a session's answers after a change of it, as they are stored. */
export function changedOrigins(change: OriginChange): StoredOrigin[] {
  const { stored, before, change: given, after, createdAt, originOf } = change;
  const at = createdAt.toISOString();
  const provenance = expand(stored ?? [], Object.keys(before), at);
  for (const [id, answer] of Object.entries(given)) {
    provenance.delete(id);
    if (!isEmpty(answer)) setOrigin(provenance, id, originOf(id, answer));
  }
  return compact(provenance, Object.keys(after).length, at);
}

/** Whether a page that shows an answer posts the other one if the person leaves it as it is. */
function sameAnswer({ type }: Pick<Field, 'type'>, left: Json, right: Json): boolean {
  if (isScalar(left) && isScalar(right)) {
    const shown = typeof left === 'string' ? left.replace(/\r\n?/g, '\n') : left;
    return evaluate({ field: 'answer', op: 'eq', value: right }, { answer: shown });
  }
  const texts = [left, right].map((answer) => [answer].flat().map((part) => canonicalJson(bare(part))));
  // The page posts choices in the order of the options.
  if (fieldRules[type].choosesOptions === true) for (const choices of texts) choices.sort();
  return texts[0]?.join() === texts[1]?.join();
}

/**
 * The origin of each answer by field id, in their order, of those that are known. `at` is when the submission or the
 * session was made. Fields with the same origin share one object.
 */
export function expand(stored: readonly StoredOrigin[], ids: readonly string[], at: string): Provenance {
  const named = new Map<string, Origin>();
  let rest: Origin | undefined;
  for (const each of stored) {
    const origin = originFrom(each, at);
    if (each.fields === undefined) rest = origin;
    else for (const id of each.fields) named.set(id, origin);
  }
  const provenance: Provenance = new Map();
  for (const id of ids) setOrigin(provenance, id, named.get(id) ?? rest);
  return provenance;
}

/** The answers' origins as webhook bodies have them: JSON by field id. */
export function provenanceJson(stored: readonly StoredOrigin[], answers: Answers, at: string): string {
  const texts = new Map<Origin, string>();
  let json = '';
  for (const [id, origin] of expand(stored, Object.keys(answers), at)) {
    let text = texts.get(origin);
    if (text === undefined) {
      text = JSON.stringify(origin);
      texts.set(origin, text);
    }
    // Ids of fields have no characters to escape.
    json += `${json === '' ? '' : ','}"${id}":${text}`;
  }
  return `{${json}}`;
}

function originFrom({ by, at: time, key, verified: isVerified }: StoredOrigin, at: string): Origin {
  const origin = key === undefined ? { by, at: time ?? at } : { by, at: time ?? at, keyId: key };
  return isVerified === true ? { ...origin, verified: true } : origin;
}

/** Joins fields of the same origin. The largest group names no fields, if the origin of every answer is known. */
function compact(provenance: Provenance, answers: number, at: string): StoredOrigin[] {
  const groups = new Map<string, { origin: Origin; fields: string[] }>();
  for (const [id, origin] of provenance) {
    const key = `${origin.by} ${origin.at} ${origin.keyId}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { origin, fields: [id] });
    else group.fields.push(id);
  }
  const bySize = [...groups.values()].sort((left, right) => left.fields.length - right.fields.length);
  const rest = provenance.size === answers ? bySize.at(-1) : undefined;
  return bySize.map((group) => {
    const { by, at: time, keyId } = group.origin;
    return {
      by,
      ...(time !== at && { at: time }),
      ...(keyId !== undefined && { key: keyId }),
      ...(group !== rest && { fields: group.fields }),
    };
  });
}

function setOrigin(provenance: Provenance, id: string, origin: Origin | undefined): void {
  if (origin !== undefined) provenance.set(id, origin);
}

/** A file without what else is known of it than its id. */
function bare(answer: Json): Json {
  return isObject(answer) && typeof answer.upload_id === 'string' ? answer.upload_id : answer;
}

export type AnswerChannel = (typeof answerChannels)[number];

/**
 * Where an answer comes from. `at` is ISO 8601; `keyId` is of the key that brought it, if it is one of the project;
 * `verified` of a person whose address is known for certain.
 */
export type Origin = { by: AnswerChannel; at: string; keyId?: string; verified?: true };

/** By field id. */
export type Provenance = Map<string, Origin>;

/**
 * The origin of some answers as it is stored; without `fields` of all that others in the list do not name, and without
 * `at` of the time the submission or the session was made.
 */
export type StoredOrigin = {
  by: AnswerChannel;
  at?: string;
  key?: string;
  fields?: string[];
  verified?: true;
};

/** The origins of what a session holds. */
export type SessionOrigins = { prefill: StoredOrigin[]; partial: StoredOrigin[] };

/** What a session holds. `cleared` names the fields that were emptied. */
export type Held = {
  answers: ReadonlyMap<string, Json>;
  provenance: Provenance;
  cleared: ReadonlySet<string>;
};

/** `answers` are checked; `given` are those that came now. */
type Submitted = {
  definition: FormDefinition;
  answers: Answers;
  given: Answers;
  by: 'human' | 'api' | 'mcp_user';
  keyId?: string | undefined;
  at: string;
};

type SessionAnswers = {
  prefill: Answers;
  partialAnswers: Answers | null;
  /** Null if the session is older than the record of origins. */
  provenance: SessionOrigins | null;
  createdAt: Date;
};

type OriginChange = {
  stored: readonly StoredOrigin[] | undefined;
  before: Answers;
  change: Answers;
  after: Answers;
  createdAt: Date;
  originOf: (id: string, answer: Json) => Origin | undefined;
};
