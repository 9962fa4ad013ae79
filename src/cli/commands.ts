import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from './terminal.ts';

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
    throw new UsageError(error instanceof Error ? error.message : String(error));
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
