import manifest from '../package.json' with { type: 'json' };
import { describedSettings } from './config.ts';
import { nearestName } from './domain/text/nearest-name.ts';

/**
 * Answers what was typed after `npm start --`; undefined without arguments, when the service is to start.
 * There are no arguments but questions, since settings are environment variables.
 */
export function answerArguments(args: string[]): Outcome | undefined {
  const [first, ...rest] = args;
  if (first === undefined) return undefined;
  if (rest.length === 0 && (first === '--help' || first === '-h')) return { exitCode: 0, text: help() };
  if (rest.length === 0 && first === '--version') return { exitCode: 0, text: `${manifest.version}\n` };
  const [name = ''] = first.split('=');
  const variables = describedSettings.map(({ variable }) => variable);
  const meant = nearestName(name, variables);
  const hint = meant === undefined ? '' : ` Settings are environment variables: did you mean ${meant}?`;
  const text = `Unknown argument: ${args.join(' ')}.${hint}\nTry: npm start -- --help\n`;
  return { exitCode: 2, text };
}

function help(): string {
  const settings = describedSettings.map(({ variable, standard, about }) => {
    const value = standard === '' ? '' : `=${plain(standard)}`;
    return `  ${variable}${value}\n      ${plain(about)}\n`;
  });
  return `Usage: npm start [-- --help | --version]

Starts the service. Settings are environment variables, here with what holds if they are unset:

${settings.join('')}`;
}

/** Text without the marks of Markdown. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}

/** `text` goes to standard output if `exitCode` is 0, to standard error otherwise. */
type Outcome = { exitCode: 0 | 2; text: string };
