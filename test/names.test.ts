import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Identifiers that are out, with what stands for each. Comments and texts may have them: "turns it off" is English. */
const outOfUse: Record<string, string> = {
  HandOff: 'PendingLink',
  LeasePlaces: 'Capacity',
  TURN_MS: 'TIME_SLICE_MS',
  claimInTurn: 'claimByReceiver',
  heldBy: 'currentAnswersOf',
  inTurn: 'yieldToEventLoop, or what begins apart',
  makeOnce: 'replayFirst',
  nextTurn: 'yieldToEventLoop',
  noMailsBy: 'skipMailsForVersion',
  onceByKey: 'replayAfterRefusal',
  ownForm: 'projectForm',
  ownedForm: 'ownerForm',
  pieces: 'chunks',
  places: 'capacity, or what the places are',
  share: 'tenant; `Share` and `shareOf` are for sharing a form',
  shareTurns: 'yieldBetweenStatements',
  tell: 'a verb and its object',
  told: 'what was said',
  turns: 'admission queue',
  uncalledEntry: 'systemEntry',
};

/** How names of files end that are out, with what stands for each. */
const endingsOutOfUse: Record<string, string> = {
  '-message.ts': '-proto.ts, for what maps between rows or rules and messages',
  'audit-chain.ts': 'the log is plain rows',
  'deps.ts': 'context.ts',
  'exchange.ts': 'route-context.ts, or send-request.ts for what goes out',
  'pieces.ts': 'chunk-budget.ts',
  'turns.ts': 'client-calls.ts',
  'write-outcomes.ts': 'explain-conflicts.ts',
};

/** Where `share` is right: for sharing a form, which the interface calls so, and for the column of the queue. */
const isShareRight =
  /^src\/(gateway|mcp|pages|services\/forms|services\/owners|domain\/definition|store\/deliveries)\//;

/** Types of which there is one; others say whose they are, as `ReceiverAnswer` does. */
const onlyOnce = ['Answer', 'Call'];

const root = join(import.meta.dirname, '..');
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((file) => join('src', file))
  .filter((file) => file.endsWith('.ts'));
const sources = files.map((file) => ({ file, code: codeOf(readFileSync(join(root, file), 'utf8')) }));

describe('names', () => {
  it('are not those that are out', () => {
    const found = sources.flatMap(({ file, code }) => wordsOutOfUse(file, code));

    expect(sources.length).toBeGreaterThan(100);
    expect(found).toEqual([]);
  });

  it('of files do not end as is out', () => {
    const found = files.flatMap((file) =>
      Object.entries(endingsOutOfUse)
        .filter(([ending]) => basename(file).endsWith(ending))
        .map(([, instead]) => `${file}: ${instead}`),
    );

    expect(found).toEqual([]);
  });

  it.each(onlyOnce)('%s is one type', (name) => {
    const declared = sources.filter(({ code }) =>
      new RegExp(`\\b(?:type|interface) ${name}\\b[^.,}]`).test(code),
    );

    expect(declared.map(({ file }) => file)).toHaveLength(1);
  });

  it('are found in code, not in comments and texts', () => {
    expect(wordsOutOfUse('src/a.ts', codeOf("const turns = 'told'; // pieces"))).toEqual([
      'src/a.ts: turns is admission queue',
    ]);
    expect(
      wordsOutOfUse('src/a.ts', codeOf('/** Turns it off in turns. */\nlet returns = `no turns`;')),
    ).toEqual([]);
  });
});

function wordsOutOfUse(file: string, code: string): string[] {
  const words = new Set(code.match(/[A-Za-z_$][\w$]*/g));
  return [...words]
    .filter((word) => Object.hasOwn(outOfUse, word) && !(word === 'share' && isShareRight.test(file)))
    .map((word) => `${file}: ${word} is ${outOfUse[word]}`);
}

/** Code without its comments and texts; what stands between the braces of a template goes with it. */
function codeOf(source: string): string {
  return source.replaceAll(
    /\/\*[\s\S]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g,
    ' ',
  );
}
