import { z } from 'zod';
import { valueAt } from '../../domain/errors/violations.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { isByOthers, partsOf } from '../../domain/events/template.ts';
import type { Json, JsonObject } from '../../domain/json/json.ts';
import { withoutMarkup } from '../../text/untrusted.ts';

/**
 * What is sent of a stored event, by a template if there is one. Of `session.notified` every word of an asker is
 * defused, since a channel shows it to people who have not asked for it.
 *
 * @throws BodyTooLarge
 */
export function webhookBody(
  stored: string,
  { kind, template }: { kind: string; template: JsonObject | null },
): string {
  const sent = sentBody(stored);
  const body = kind === 'session.notified' ? defused(sent) : sent;
  return template === null ? body : renderTemplate(template, body);
}

function defused(body: string): string {
  const { data, ...head } = objectSchema.parse(JSON.parse(body));
  const words = Object.entries(objectSchema.parse(data)).map(([key, value]) => [
    key,
    isByOthers(`data.${key}`) ? defusedJson(value) : value,
  ]);
  return JSON.stringify({ ...head, data: Object.fromEntries(words) });
}

function defusedJson(value: unknown): unknown {
  if (typeof value === 'string') return withoutMarkup(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(defusedJson);
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [withoutMarkup(key), defusedJson(child)]),
  );
}

const objectSchema = z.record(z.string(), z.unknown());

/**
 * The body that a template makes of an event's JSON. A string that is one name becomes the value of that name; within a
 * longer text values are words, in which nothing is a link, a mention or markup. What the event lacks is null, or no
 * words.
 *
 * @throws BodyTooLarge
 */
export function renderTemplate(template: JsonObject, body: string): string {
  const event: unknown = JSON.parse(body);
  const values = new Map<string, string>();
  const words = new Map<string, string>();
  let length = 0;

  const counted = (json: string) => {
    length += json.length;
    if (length > MAX_BODY_CHARS) throw new BodyTooLarge();
    return json;
  };
  const remembered = (known: Map<string, string>, name: string, make: (value: unknown) => string) => {
    const made = known.get(name) ?? make(valueAt(event, name.split('.')));
    known.set(name, made);
    return made;
  };
  const textOf = (text: string): string => {
    const parts = partsOf(text);
    const [only] = parts;
    if (parts.length === 1 && only !== undefined && 'name' in only) {
      return remembered(values, only.name, (value) => JSON.stringify(value ?? null));
    }
    let rendered = '';
    for (const part of parts) {
      rendered +=
        'text' in part ? part.text : remembered(words, part.name, (value) => wordsOf(part.name, value));
      if (rendered.length > MAX_BODY_CHARS) throw new BodyTooLarge();
    }
    return JSON.stringify(rendered);
  };
  const jsonOf = (value: Json): string => {
    if (typeof value === 'string') return counted(textOf(value));
    if (typeof value !== 'object' || value === null) return counted(JSON.stringify(value));
    if (Array.isArray(value)) return `[${value.map(jsonOf).join()}]`;
    return `{${Object.entries(value)
      .map(([key, child]) => `${counted(JSON.stringify(key))}:${jsonOf(child)}`)
      .join()}}`;
  };
  return jsonOf(template);
}

/** A template can name what is large more than once. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

function wordsOf(name: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return isByOthers(name) ? withoutMarkup(shortened(text)) : text;
}

function shortened(text: string): string {
  return text.length <= MAX_WORDS ? text : `${text.slice(0, MAX_WORDS - 1).toWellFormed()}…`;
}

/** Four times the largest event. */
const MAX_BODY_CHARS = 1024 * 1024;

/** Of one value within a text: chats take some thousands in all. */
const MAX_WORDS = 1000;
