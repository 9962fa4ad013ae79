import { createHash } from 'node:crypto';
import type { Observed } from './types.ts';

/** What happened, a line for each event. Two runs of a seed have the same lines. */
export class Trace {
  readonly #begin: number;
  readonly #lines: string[] = [];
  #judgedAt = Number.POSITIVE_INFINITY;

  constructor(begin: number) {
    this.#begin = begin;
  }

  add(event: Observed): void {
    this.addLine(event.at, describe(event));
  }

  addStatement(at: number, process: number, fingerprint: string): void {
    this.addLine(at, `statement ${process} ${fingerprint}`);
  }

  addLine(at: number, text: string): void {
    this.#lines.push(`${((at - this.#begin) / 1000).toFixed(3)} ${text.replaceAll('\n', ' ')}`);
  }

  text(): string {
    return `${this.#lines.join('\n')}\n`;
  }

  /** The last ones of those seen outside, without statements, until an instant or until the end is judged. */
  lastEvents(count: number, until = this.#judgedAt): string[] {
    const seconds = (until - this.#begin) / 1000;
    return this.#lines
      .filter((line) => !/^\S+ statement /.test(line) && Number(line.split(' ', 1)[0]) <= seconds)
      .slice(-count);
  }

  /** What comes from now on is read by the ledger. */
  judged(at: number): void {
    this.#judgedAt = at;
  }
}

function describe(event: Observed): string {
  switch (event.kind) {
    case 'call': {
      const { id, actor, operation, process, method, path, body } = event.request;
      return `call #${id} ${actor}: ${operation} to ${process}: ${method} ${path} ${brief(body)}`;
    }
    case 'reply':
      return `reply #${event.request.id} ${event.reply.status} ${brief(event.reply.text)}`;
    case 'unanswered':
      return `unanswered #${event.request.id} ${event.why}`;
    case 'webhook':
      return `webhook ${event.receiver} ${event.headers['webhook-id']} answered ${event.answered} ${brief(event.body)}`;
    case 'mail':
      return `mail ${event.to.join()} ${event.step} answered ${event.answered} ${brief(event.raw)}`;
    case 'file':
      return `file ${event.method} ${event.id} ${event.answered}`;
    case 'fault':
      return `fault ${event.fault} of ${event.about} for ${event.ms} ms`;
    case 'crash':
      return `crash of ${event.process} at: ${event.place}`;
    case 'start':
    case 'stopped':
    case 'rotated':
      return `${event.kind} of ${event.process}`;
    case 'jump':
      return `jump from ${event.from}`;
  }
}

/** The beginning, and a digest of the whole. */
function brief(content: unknown): string {
  if (content === undefined || content === '') return '';
  const text =
    typeof content === 'string'
      ? content
      : content instanceof Uint8Array
        ? Buffer.from(content).toString('latin1')
        : JSON.stringify(content);
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 8);
  return `${digest} ${JSON.stringify(text.slice(0, 160))}`;
}
