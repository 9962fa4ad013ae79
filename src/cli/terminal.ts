import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ConnectError } from '@connectrpc/connect';
import { errorMessage } from '../domain/errors/system-errors.ts';

/** Where commands run, and what they write to. */
export type Terminal = {
  env: NodeJS.ProcessEnv;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Writes a line of the result. */
  print: (line: string) => void;
  /** Writes a line beside it. */
  note: (line: string) => void;
};

/** What was typed makes no sense. */
export class UsageError extends Error {
  override name = 'UsageError';
  readonly lines: readonly string[];
  constructor(message: string) {
    const lines = [message, 'Try: npm run cli -- --help'];
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The service would not have it, now or later. */
export class RefusedError extends Error {
  override name = 'RefusedError';
  readonly lines: readonly string[];
  constructor(message: string | readonly string[], options?: ErrorOptions) {
    const lines = [message].flat();
    super(lines.join('\n'), options);
    this.lines = lines;
  }
}

/**
 * Makes what says how far something has come: nothing in the first second, then at most one line a second.
 * `describe` is called when a line is due.
 */
export function createProgress(note: (line: string) => void, now: () => number) {
  const begin = now();
  let last = begin;
  return (describe: () => string) => {
    if (now() - last < EVERY_MS) return;
    last = now();
    note(`${describe()} (${Math.round((last - begin) / 1000)} s)`);
  };
}

/** A number of bytes for people, such as `12 MiB`. */
export function inMib(bytes: number): string {
  const mib = bytes / 1024 ** 2;
  return mib < 10 ? `${mib.toFixed(1)} MiB` : `${Math.round(mib)} MiB`;
}

const EVERY_MS = 1_000;

export type Progress = ReturnType<typeof createProgress>;

/** What a check has found. `text` says what to do if it is not `ok`. */
export type Finding = { level: 'ok' | 'warning' | 'FAIL'; about: string; text: string };

/** What says what was found about one thing. */
export function findingsAbout(about: string) {
  return {
    ok: (text: string): Finding => ({ level: 'ok', about, text }),
    warning: (text: string): Finding => ({ level: 'warning', about, text }),
    fail: (text: string): Finding => ({ level: 'FAIL', about, text }),
  };
}

/** The reason of an error, without its stack. */
export function reasonInWords(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonInWords(error.errors[0]);
  if (error instanceof ConnectError) return error.rawMessage;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.message === 'fetch failed'
    ? reasonInWords(error.cause)
    : error.message;
}

/**
 * The command of a table that was typed, with all that it is given; `prefix` is what stands before the name of each.
 *
 * Throws a `UsageError` for what makes no sense.
 */
export function readCommand<O extends Options>(
  args: string[],
  { commands, options, prefix = '' }: { commands: Commands<O>; options: O; prefix?: string },
): () => Promise<void> {
  const { values, positionals } = parse(args, options);
  const named = [2, 1].map((words) => positionals.slice(0, words).join(' '));
  const name = named.find((words) => Object.hasOwn(commands, words));
  const command = name === undefined ? undefined : commands[name];
  if (name === undefined || command === undefined) {
    throw new UsageError(`Unknown command: ${prefix}${positionals.join(' ')}`.trim());
  }
  const { needs = 0, most = needs, missing = '', run } = command;
  const operands = positionals.slice(name.split(' ').length);
  if (operands.length > most) throw new UsageError(`Unknown argument: ${operands[most]}`);
  const takes: readonly string[] = command.takes ?? [];
  const foreign = Object.keys(values).find((option) => !takes.includes(option));
  if (foreign !== undefined) throw new UsageError(`${prefix}${name} takes no --${foreign}`);
  if (operands.length < needs) throw new UsageError(missing);
  return async () => run(values, ...operands);
}

function parse<O extends Options>(args: string[], options: O) {
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    // Node's second sentence is about arguments that begin with "-", which no command takes.
    throw new UsageError(errorMessage(error).split('. ')[0] ?? '');
  }
}

type Options = NonNullable<ParseArgsConfig['options']>;

/** By their names, of one word or two. */
export type Commands<O extends Options> = Record<string, Command<O>>;

type Command<O extends Options> = {
  /** The options it takes. */
  takes?: readonly (keyof O & string)[];
  /** How many words have to follow its name; `missing` is said if there are fewer. */
  needs?: number;
  missing?: string;
  /** How many words may follow it. */
  most?: number;
  run: (values: ReturnType<typeof parse<O>>['values'], ...operands: string[]) => Promise<void>;
};
