/**
 * The other side of `startProgram`: starts a program with the input it was given, says that it is ready,
 * and answers questions. Begins when the module that calls it is complete.
 */
export function serve<Input, Question = unknown>(start: Start<Input, Question>): void {
  setImmediate(() => void run(start));
}

async function run<Input, Question>(start: Start<Input, Question>): Promise<void> {
  const { ready, answer } = await start(JSON.parse(process.argv[2] ?? '{}'));
  process.on('message', (question: Question) => {
    void answer?.(question).then((value) => process.send?.(value));
  });
  // The parent may have been killed, and can't end this process any more.
  process.on('disconnect', () => process.exit(0));
  process.send?.(ready);
}

type Start<Input, Question> = (input: Input) => Promise<{
  /** The first message to the parent. */
  ready: object;
  answer?: (question: Question) => Promise<object>;
}>;
