import { create } from '@bufbuild/protobuf';
import { type Input, InputSchema } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import type { Violation } from '../../domain/errors/violations.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import type { KnownFile, KnownFiles } from './controls/control-view.ts';
import type { Move } from './controls/ranking.ts';
import type { PostedFiles } from './uploads.ts';

/**
 * Reads what a page has posted, whatever its fields are. One that the person saw but left without a value, such as a box
 * without a tick, counts as emptied, so that it clears what prefill or a default would fill in.
 */
export function readPosted(inputs: FormInputs, files: PostedFiles): Posted {
  const shown = lastOf(inputs, '_shown').split(' ');
  const removed = new Set(inputs.get('_remove'));
  const texts = new Map<string, readonly string[]>(shown.map((id) => [id, ['']]));
  for (const [name, values] of inputs) {
    if (!name.startsWith('_'))
      texts.set(name, removed.size === 0 ? values : values.filter((id) => !removed.has(id)));
  }
  for (const { fieldId, uploadId, isOnly } of files.stored) {
    const others = isOnly ? [] : (texts.get(fieldId) ?? []).filter((id) => id !== '');
    texts.set(fieldId, [...others, uploadId]);
  }
  return {
    texts,
    shown: new Set(shown),
    files: knownFiles(inputs, files),
    problems: files.problems,
    step: Math.max(1, Math.trunc(Number(lastOf(inputs, '_page'))) || 1),
    goal: goalOf(lastOf(inputs, '_go')),
    issueToken: lastOf(inputs, '_issued'),
    honeypot: lastOf(inputs, '_website'),
    fetched: inputs.has('_fetched'),
    keptSince: timeIn(lastOf(inputs, '_kept')),
  };
}

/** The posted texts as an RPC takes them. */
export function inputsOf(texts: ReadonlyMap<string, readonly string[]>): Input[] {
  return [...texts].map(([name, values]) =>
    create(InputSchema, { name, values: values.length === 0 ? [''] : [...values] }),
  );
}

/** The names and sizes of files. They are shown to their sender only, so the page may carry them. */
function knownFiles(inputs: FormInputs, { stored }: PostedFiles): KnownFiles {
  const known = new Map<string, KnownFile>(
    stored.map(({ uploadId, filename: name, size }) => [uploadId, { name, size }]),
  );
  for (const [input, values] of inputs) {
    const id = input.startsWith('_name.') ? input.slice('_name.'.length) : '';
    if (id === '' || known.has(id)) continue;
    const size = Number.parseInt(lastOf(inputs, `_size.${id}`), 10);
    known.set(id, { name: values.at(-1) ?? '', ...(size >= 0 && { size }) });
  }
  return known;
}

function timeIn(text: string): Date | undefined {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function goalOf(text: string): Goal {
  const [, fieldId, index, by] = /^move:([^:]+):(\d{1,3}):(-1|1)$/.exec(text) ?? [];
  if (fieldId !== undefined) return { kind: 'move', fieldId, index: Number(index), by: by === '1' ? 1 : -1 };
  const page = /^page:(\d{1,3})$/.exec(text)?.[1];
  if (page !== undefined) return { kind: 'page', page: Number(page) };
  return text === 'back' || text === 'save' || text === 'restart' ? { kind: text } : { kind: 'forward' };
}

/**
 * Where a post leads: to the next step, a step back, nowhere (saving, moving an option), to a certain page, or to a
 * form without answers.
 */
export type Goal =
  | { kind: 'forward' | 'back' | 'save' | 'restart' }
  | { kind: 'page'; page: number }
  | ({ kind: 'move' } & Move);

/** A post of the form's page. */
export type Posted = {
  /** The inputs that were posted, by name, but for the page's own. */
  texts: Map<string, readonly string[]>;
  /** The fields that the person saw. */
  shown: ReadonlySet<string>;
  files: KnownFiles;
  /** What is wrong with the files that came along. */
  problems: readonly Violation[];
  /** The page it was posted from. */
  step: number;
  goal: Goal;
  issueToken: string;
  honeypot: string;
  /** Whether the page's script posted it. */
  fetched: boolean;
  /** Since when the script has kept the answers in the browser's tab, if they come from there. */
  keptSince: Date | undefined;
};
