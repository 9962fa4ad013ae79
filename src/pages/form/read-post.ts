import { HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { type UploadFileRequest, UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import type { Violation } from '../../domain/errors/violations.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { uploadLimits } from '../../domain/fields/index.ts';
import { readText } from '../../domain/fields/text.ts';
import { MAX_REASON_LENGTH } from '../../domain/limits/limits.ts';
import { readDecodedParts } from '../../http/body.ts';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, fileParts, lastOf, type ReceivedFile } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import type { KnownFile, KnownFiles } from './controls/control-view.ts';
import type { Move } from './controls/ranking.ts';
import { type PageSource, readOpen, shownFieldsOf, sourceOf } from './page-source.ts';

/**
 * Reads what a page has posted, whatever its fields are. One that the person saw but left without a value, such as a
 * box without a tick, counts as emptied, so that it clears what prefill or a default would fill in.
 */
export function readPosted(inputs: FormInputs, files: PostedFiles): Posted {
  const shown = lastOf(inputs, '_shown').split(' ');
  const removed = new Set(inputs.get('_remove'));
  const texts = new Map<string, readonly string[]>(shown.map((id) => [id, ['']]));
  for (const [name, values] of inputs) {
    if (!name.startsWith('_'))
      texts.set(name, removed.size === 0 ? values : values.filter((id) => !removed.has(id)));
  }
  const step = Math.max(1, Math.trunc(Number(lastOf(inputs, '_page'))) || 1);
  const [, cleared] = /^clear:([^:]+)$/.exec(lastOf(inputs, '_go')) ?? [];
  if (cleared !== undefined && shown.includes(cleared)) {
    texts.set(cleared, ['']);
    texts.delete(`${cleared}.other`);
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
    step,
    goal: cleared === undefined ? goalOf(lastOf(inputs, '_go')) : { kind: 'page', page: step },
    issueToken: lastOf(inputs, '_issued'),
    honeypot: lastOf(inputs, '_website'),
    fetched: inputs.has('_fetched'),
    keptSince: timeIn(lastOf(inputs, '_kept')),
    reason: readText(inputs.get('_reason') ?? [])
      .slice(0, MAX_REASON_LENGTH)
      .toWellFormed(),
  };
}

/** The posted texts as an RPC takes them. */
export function inputsOf(texts: ReadonlyMap<string, readonly string[]>) {
  return [...texts].map(([name, values]) => ({ name, values: values.length === 0 ? [''] : [...values] }));
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

function goalOf(text: string): PostGoal {
  const [, fieldId, index, by] = /^move:([^:]+):(\d{1,3}):(-1|1)$/.exec(text) ?? [];
  if (fieldId !== undefined) return { kind: 'move', fieldId, index: Number(index), by: by === '1' ? 1 : -1 };
  const page = /^page:(\d{1,3})$/.exec(text)?.[1];
  if (page !== undefined) return { kind: 'page', page: Number(page) };
  return text === 'back' || text === 'save' || text === 'restart' || text === 'decline'
    ? { kind: text }
    : { kind: 'forward' };
}

/**
 * Where a post leads: to the next step, a step back, nowhere (saving, moving an option), to a certain page, to a
 * form without answers, or to the end of a session whose person declines.
 */
export type PostGoal =
  | { kind: 'forward' | 'back' | 'save' | 'restart' | 'decline' }
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
  goal: PostGoal;
  issueToken: string;
  honeypot: string;
  /** Whether the page's script posted it. */
  fetched: boolean;
  /** Since when the script has kept the answers in the browser's tab, if they come from there. */
  keptSince: Date | undefined;
  /** Why the person declines. */
  reason: string;
};

/** What became of the files of a post. */
export class PostedFiles {
  /** `isOnly`: its field takes one file. */
  readonly stored: { fieldId: string; uploadId: string; filename: string; size: number; isOnly: boolean }[] =
    [];
  readonly problems: Violation[] = [];

  /**
   * Stores a file as soon as it has come, `before` being the inputs that came before it. What the field does not take
   * becomes a problem of the field, and what the page does not take any more is dropped.
   */
  async take(
    exchange: PageExchange,
    source: PageSource,
    file: ReceivedFile,
    before: FormInputs,
  ): Promise<undefined> {
    const session = exchange.session ?? (await source.read({ inputs: before }));
    const field = shownFieldsOf(session).find(({ id }) => id === file.name);
    if (session.state !== HostedState.OPEN || field === undefined || uploadLimits(field) === undefined)
      return;
    try {
      const target = await source.uploadTarget(lastOf(before, '_issued'));
      const upload = await uploadFile(exchange, target, file, source.browser());
      if (upload === undefined) return;
      const { id: uploadId, filename, size } = upload;
      this.stored.push({ fieldId: field.id, uploadId, filename, size, isOnly: (field.maxFiles ?? 1) === 1 });
    } catch (error) {
      const { reason, details } = restErrorOf(error);
      if (reason !== 'invalid' && reason !== 'too_large') throw error;
      const [first] = details;
      const { code, message } = first ?? { code: 'too_big', message: 'The file is too large' };
      this.problems.push({ path: `answers.${field.id}.file`, code, message, received: file.filename });
    }
  }
}

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query, and on a form's own page what tells the page apart in headers. Answers 201 with what the
 * answer is to name.
 */
export async function postUpload(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const source = sourceOf(exchange);
  const issueToken = textOf(request.headers['x-form-issued']);
  await readOpen(source, new Map([['_session', [textOf(request.headers['x-form-session'])]]]));
  const target = await source.uploadTarget(issueToken);
  const { field, filename } = request.query;
  const file = {
    name: textOf(field),
    filename: textOf(filename),
    content: readDecodedParts(request, MAX_FILE_BYTES),
  };
  const upload = await uploadFile(exchange, target, file, source.browser());
  sendJson(response, 201, {
    upload: {
      upload_id: upload?.id,
      filename: upload?.filename,
      content_type: upload?.contentType,
      size: upload?.size,
    },
    ...(source.sessionId() !== '' && { session_id: source.sessionId() }),
  });
}

/** Passes a file on as it arrives. */
async function uploadFile(
  { stream }: PageExchange,
  target: UploadFileRequest['target'],
  { name, filename, content }: ReceivedFile,
  browser: string,
) {
  const parts = fileParts({ target, fieldId: name, filename, browser }, content);
  return (await stream(UploadsService.method.uploadFile, parts)).upload;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
