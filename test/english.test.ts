import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { languages } from '../src/text/words.ts';
import { documents, readDocument } from './support/documents.ts';

/**
 * Expressions that nobody reads in the product, with what stands for each. Names are exempt, since they are written as
 * code: `MAIL_FROM`, `data/mail`. So are the terms "mail server", "mail program" and "mailbox".
 */
const outOfUse: [expression: RegExp, instead: string][] = [
  [/\be-mails?\b/i, 'email'],
  [/(?<!\/)\bmails?\b(?! (?:server|program)s?\b)/i, 'email'],
  [/\b(?:mailed|mailing)\b/i, 'emailed'],
  [/\bwhoever\b/i, 'anyone who, or who it is'],
  [/\bfor ever\b/i, 'permanently'],
  [/\bforemost\b/i, 'most important first'],
  [/\bof which\b/i, 'two sentences'],
  [/\b(?:is|are) to (?:own|get)\b/i, 'will own, will get'],
  [/\btakes? (?:no )?(?:more )?answers\b/i, 'is live, accepts responses'],
  [/\bonly told\b/i, 'what happens'],
  [/\bputs? right\b/i, 'fix, correct'],
  [/\bwhat waits\b/i, 'pending'],
  [/\blies? in\b/i, 'is in'],
  [/\bcomes? along\b/i, 'is installed, arrives'],
  [/\bis looked for\b|\bwere searched:/i, 'search covers'],
  [/\bnothing to install\b/i, 'no other services to install'],
  [/\bwhere it comes from\b/i, 'submitted via'],
  [/\bdelivered to nobody\b/i, 'not delivered'],
  [/\bleft so\b/i, 'unchanged'],
  [/\blook into your\b/i, 'check your'],
  [/\bit is mine\b/i, 'yes, this is my form'],
  [/\bdo nothing\b|\bdid not expect\b/i, 'you can ignore it'],
  [/\bask to take it over\b/i, 'send transfer request'],
  [/\barrive whole\b/i, 'lost on the way'],
  [/\bwait a little\b/i, 'in a few minutes'],
  [/, tell\b/i, 'quote this reference'],
  [/\bwent wrong inside\b/i, 'went wrong on our side'],
  [/\balone goes\b/i, 'only … is written'],
  [/\bwho exceeds\b/i, 'over a limit'],
  [/\bno such route\b/i, 'route not found'],
  [/\bholds the machine\b/i, 'has shell access'],
  [/\bEnter an answer\./, 'the name of the field'],
  [/\bcan['’]t be taken\b/i, 'the rule'],
];

const root = join(import.meta.dirname, '..');

describe('English', () => {
  it('in the words of pages and emails has nothing that is out of use', () => {
    const texts = Object.values(languages.en).flatMap((group) => Object.values(group));

    expect(texts.length).toBeGreaterThan(300);
    expect(texts.flatMap(found)).toEqual([]);
  });

  it.each(documents())('in %s has nothing that is out of use', (document) => {
    const lines = proseOf(readDocument(document)).split('\n');

    expect(lines.flatMap((line, index) => found(line).map((each) => `${index + 1}: ${each}`))).toEqual([]);
  });

  it('in the comments of the proto files has nothing that is out of use', () => {
    const files = ['proto', 'internal/proto'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.proto'))
        .map((file) => join(root, folder, file)),
    );
    const comments = files.map((file) => ({ file, text: commentsOf(readFileSync(file, 'utf8')) }));

    expect(comments.flatMap(({ text }) => text.split('\n')).length).toBeGreaterThan(1_500);
    expect(
      comments.flatMap(({ file, text }) =>
        text
          .split('\n')
          .flatMap(found)
          .map((each) => `${file}: ${each}`),
      ),
    ).toEqual([]);
  });

  it('in errors, logs, commands and the interface’s descriptions has nothing that is out of use', () => {
    const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.startsWith('store/'))
      .map((file) => ({ file, texts: textsIn(readFileSync(join(root, 'src', file), 'utf8')) }));

    expect(sources.flatMap(({ texts }) => texts).length).toBeGreaterThan(500);
    expect(
      sources.flatMap(({ file, texts }) => texts.flatMap(found).map((each) => `${file}: ${each}`)),
    ).toEqual([]);
  });

  it('is checked in texts, not in names', () => {
    expect(found('Set MAIL_FROM. Mails are in data.')).toEqual([
      '"Mails" in "Set MAIL_FROM. Mails are in data.": email',
    ]);
    expect(proseOf('Look into `data/mail`, [by a mail server](forms.md#mails).')).toBe(
      'Look into , [by a mail server].',
    );
    expect(textsIn(`// for ever\nsend('The mail', \`a mail \${mail}\`, 'mail');`)).toEqual([
      'The mail',
      'a mail ',
    ]);
  });
});

function found(text: string): string[] {
  return outOfUse.flatMap(([expression, instead]) => {
    const [match] = expression.exec(text) ?? [];
    return match === undefined ? [] : [`"${match}" in "${text.trim().slice(0, 120)}": ${instead}`];
  });
}

/** A document without code and the targets of its links. */
function proseOf(markdown: string): string {
  const withoutBlocks = markdown.replace(/^ *```[\s\S]*?^ *```$/gm, (block) => block.replace(/[^\n]/g, ''));
  return withoutBlocks.replace(/`[^`\n]*`|(?<=\])\([^)\s]*\)|<!--.*?-->/g, '');
}

/** The comments of a proto file, without code in them. */
function commentsOf(proto: string): string {
  return [...proto.matchAll(/\/\/(.*)/g)].map(([, text = '']) => text.replace(/`[^`]*`/g, '')).join('\n');
}

/** The texts of a source that are sentences, not names. */
function textsIn(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\/|(?<![:'"])\/\/.*/g, '');
  return [...code.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)]
    .map(([, plain, template]) => plain ?? (template ?? '').replace(/\$\{[^}]*\}/g, ''))
    .filter((text) => text.includes(' '));
}
