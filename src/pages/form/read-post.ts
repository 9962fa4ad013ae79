import { create } from '@bufbuild/protobuf';
import { type Input, InputSchema } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { inputNames } from '../../domain/answers/form-inputs.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { uploadLimits } from '../../domain/fields/upload-limits.ts';
import type { ErrorDetail } from '../../http/errors.ts';
import type { FormInputs } from '../../http/multipart.ts';
import type { KnownFile, KnownFiles } from './controls/control-view.ts';
import type { Move } from './controls/ranking.ts';
import type { PostedFiles } from './uploads.ts';

/**
 * Reads what a page has posted. A field that the person saw but left without a value, such as a box
 * without a tick, counts as emptied, so that it clears what prefill or a default would fill in.
 */
export function readPosted(fields: readonly Field[], inputs: FormInputs, files: PostedFiles): Posted {
  const shown = new Set(lastOf(inputs, '_shown').split(' '));
  const removed = new Set(inputs.get('_remove'));
  const texts = new Map<string, readonly string[]>();
  for (const field of fields) {
    const given = inputs.get(field.id);
    const values = uploadLimits(field) !== undefined ? filesOf(field, given ?? [], files, removed) : given;
    if (values !== undefined && (values.length > 0 || shown.has(field.id))) texts.set(field.id, values);
    else if (shown.has(field.id)) texts.set(field.id, ['']);
    for (const name of inputNames(field).slice(1)) {
      const part = inputs.get(name);
      if (part !== undefined) texts.set(name, part);
    }
  }
  return {
    texts,
    shown,
    files: knownFiles(inputs, files),
    problems: files.problems,
    step: Math.max(1, Math.trunc(Number(lastOf(inputs, '_page'))) || 1),
    goal: goalOf(lastOf(inputs, '_go')),
    ...controlsOf(inputs),
  };
}

/**
 * Reads a post whose fields are not known any more; undefined if it does not mean to submit. Files
 * that were not uploaded before are left out.
 */
export function readPostedAgain(
  inputs: FormInputs,
): Pick<Posted, 'texts' | 'honeypot' | 'issueToken' | 'fetched'> | undefined {
  if (goalOf(lastOf(inputs, '_go')).kind !== 'forward') return undefined;
  const emptied = lastOf(inputs, '_shown')
    .split(' ')
    .map((id): [string, string[]] => [id, ['']]);
  const given = [...inputs].filter(([name]) => !name.startsWith('_'));
  return { texts: new Map([...emptied, ...given]), ...controlsOf(inputs) };
}

/** The posted texts as an RPC takes them. */
export function inputsOf(texts: ReadonlyMap<string, readonly string[]>): Input[] {
  return [...texts].map(([name, values]) =>
    create(InputSchema, { name, values: values.length === 0 ? [''] : [...values] }),
  );
}

/** The earlier files that were not removed, and then the new ones; a field for one file keeps the last. */
function filesOf(
  field: Field,
  given: readonly string[],
  files: PostedFiles,
  removed: ReadonlySet<string>,
): string[] {
  const added = files.stored.filter(({ fieldId }) => fieldId === field.id).map(({ uploadId }) => uploadId);
  const all = [...given.filter((id) => id !== '' && !removed.has(id)), ...added];
  return (field.maxFiles ?? 1) === 1 ? all.slice(-1) : all;
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

function controlsOf(inputs: FormInputs) {
  return {
    issueToken: lastOf(inputs, '_issued'),
    honeypot: lastOf(inputs, '_website'),
    fetched: inputs.has('_fetched'),
  };
}

function lastOf(inputs: FormInputs, name: string): string {
  return inputs.get(name)?.at(-1) ?? '';
}

function goalOf(text: string): Goal {
  const [, fieldId, index, by] = /^move:([^:]+):(\d{1,3}):(-1|1)$/.exec(text) ?? [];
  if (fieldId !== undefined) return { kind: 'move', fieldId, index: Number(index), by: by === '1' ? 1 : -1 };
  const page = /^page:(\d{1,3})$/.exec(text)?.[1];
  if (page !== undefined) return { kind: 'page', page: Number(page) };
  return text === 'back' || text === 'save' ? { kind: text } : { kind: 'forward' };
}

/** Where a post leads: to the next step, a step back, nowhere (saving, moving an option), or to a certain page. */
export type Goal =
  | { kind: 'forward' | 'back' | 'save' }
  | { kind: 'page'; page: number }
  | ({ kind: 'move' } & Move);

/** A post of the form's page. */
export type Posted = {
  /** The inputs of all fields that were posted, by name. */
  texts: Map<string, readonly string[]>;
  /** The fields that the person saw. */
  shown: ReadonlySet<string>;
  files: KnownFiles;
  /** What is wrong with the files that came along. */
  problems: readonly ErrorDetail[];
  /** The page it was posted from. */
  step: number;
  goal: Goal;
  issueToken: string;
  honeypot: string;
  /** Whether the page's script posted it. */
  fetched: boolean;
};
