import { z } from 'zod';
import * as pb from '../../../gen/headlessforms/v1/session_context_pb.js';
import { jsonOf } from '../definition/definition-proto.ts';
import { type Violation, violationsOf } from '../errors/violations.ts';
import { jsonProblems } from '../json/json-problems.ts';
import { MAX_URL_LENGTH } from '../limits/limits.ts';

const item = z
  .strictObject({
    label: z.string().min(1).max(200),
    value: z.string(),
    kind: z
      .enum(['text', 'code', 'link', 'diff'])
      .default('text')
      .describe('How it is shown. A link is an http or https address; code and diff keep their spaces.'),
  })
  .refine(({ kind, value }) => kind !== 'link' || isLink(value), {
    path: ['value'],
    error: `Expected an http or https URL of at most ${MAX_URL_LENGTH} characters`,
    params: { code: 'invalid_string' },
  });

/** What the maker of a session shows its person above the questions, as people send it: plain text. */
export const contextSchema = z
  .strictObject({
    title: z.string().min(1).max(200).exactOptional(),
    text: z.string().min(1).exactOptional(),
    items: z.array(item).max(50).default([]),
  })
  .meta({
    id: 'SessionContext',
    description: 'What the person is shown above the questions: plain text, up to 64 KiB. Never an answer.',
  });

/** What is wrong with a context at `context`; the paths are those of the message. */
export function contextProblems(message: pb.SessionContext | undefined): Violation[] {
  if (message === undefined) return [];
  const json = jsonOf(pb.SessionContextSchema, message);
  const unsafe = jsonProblems(json, 'context', { maxKib: MAX_CONTEXT_KIB });
  const parsed = contextSchema.safeParse(json);
  const problems =
    unsafe.length > 0 ? unsafe : parsed.error ? violationsOf(parsed.error, json, 'context') : [];
  return problems.map((one) => ({ ...one, path: one.path.replace(/\.(\d+)/g, '[$1]') }));
}

/** The context in a message that has no problems; null if it shows nothing. */
export function contextFromMessage(message: pb.SessionContext | undefined): SessionContext | null {
  if (message === undefined) return null;
  const context = contextSchema.parse(jsonOf(pb.SessionContextSchema, message));
  const isEmpty = context.title === undefined && context.text === undefined && context.items.length === 0;
  return isEmpty ? null : context;
}

function isLink(text: string): boolean {
  if (text.length > MAX_URL_LENGTH || /\s/.test(text) || !URL.canParse(text)) return false;
  return ['http:', 'https:'].includes(new URL(text).protocol);
}

/** The documented limit of a context. */
const MAX_CONTEXT_KIB = 64;

/** What a session shows above its questions. */
export type SessionContext = z.output<typeof contextSchema>;
