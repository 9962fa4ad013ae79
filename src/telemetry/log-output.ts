import { fstatSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { promisify } from 'node:util';

/**
 * Where the lines of the log go: standard error. Nothing waits for them: of a file on a full disk, or a pipe that nobody
 * reads, lines are dropped and counted until it takes them again. `report` logs how many were, which is tried each second.
 *
 * The lines that wait when the process exits are written then.
 */
export class LogOutput {
  readonly #report: (dropped: number) => void;
  readonly #isStream: boolean;
  #waiting: string[] = [];
  #waitingLength = 0;
  #isWriting = false;
  #isCut = false;
  #dropped = 0;
  #unreported = 0;

  constructor(report: (dropped: number) => void) {
    this.#report = report;
    const stat = fstatSync(STDERR);
    // A write by number to a full pipe blocks a thread, and with it the exit of the process. Streams do not block.
    this.#isStream = stat.isFIFO() || stat.isSocket() || isatty(STDERR);
    // The callbacks of our writes get their errors. Of Node's own warnings that can't be written nobody can be told.
    process.stderr.on('error', () => undefined);
    process.on('exit', () => this.#flush());
  }

  /** How many lines this process has dropped. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether it drops lines now. */
  get isDropping(): boolean {
    return this.#unreported > 0;
  }

  write(line: string): void {
    if (this.#waitingLength + line.length > MAX_WAITING) this.#drop(1);
    else {
      this.#waiting.push(line);
      this.#waitingLength += line.length;
      if (!this.#isWriting) void this.#writeWaiting();
    }
  }

  async #writeWaiting(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0 || this.isDropping) {
      const lines = this.#takeWaiting();
      const unreported = this.#unreported;
      if (unreported > 0) this.#report(unreported);
      // Empty where the level of the log leaves such reports out.
      const report = this.#takeWaiting();
      try {
        await this.#send([this.#isCut ? '\n' : '', ...report, ...lines].join(''));
        this.#unreported -= unreported;
      } catch {
        this.#drop(lines.length);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
    this.#isWriting = false;
  }

  async #send(text: string): Promise<void> {
    if (this.#isStream) return writeToStream(text);
    let rest = Buffer.from(text);
    while (rest.length > 0) {
      const { bytesWritten } = await writeToFile(STDERR, rest);
      rest = rest.subarray(bytesWritten);
      this.#isCut = rest.length > 0;
    }
  }

  #flush(): void {
    try {
      for (const line of this.#takeWaiting()) writeSync(STDERR, line);
    } catch {
      // The output takes nothing any more, and the process is about to end.
    }
  }

  #takeWaiting(): string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#waitingLength = 0;
    return lines;
  }

  #drop(lines: number): void {
    this.#dropped += lines;
    this.#unreported += lines;
  }
}

const STDERR = 2;
const writeToFile = promisify(write);

function writeToStream(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stderr.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** In UTF-16 units: more than a thousand lines. */
const MAX_WAITING = 256 * 1024;
const RETRY_MS = 1_000;
