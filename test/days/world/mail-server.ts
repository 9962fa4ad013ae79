import { buffer } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import type { Outside } from '../../../src/compose.ts';
import type { PeerOptions } from './receivers.ts';
import { runAs } from './scheduler.ts';
import { connectPair, type MemorySocket, ownEnd } from './socket.ts';
import type { MailObserved } from './types.ts';

/** The mail server that the service sends by. */
export class MailServer {
  readonly #options: MailServerOptions;
  readonly #taken: { to: string[]; raw: string }[] = [];

  constructor(options: MailServerOptions) {
    this.#options = options;
  }

  /** Mails that were taken for an address, oldest first. */
  of(address: string): string[] {
    return this.#taken.filter(({ to }) => to.includes(address)).map(({ raw }) => raw);
  }

  linkIn(address: string, pattern: RegExp): string | undefined {
    for (const raw of this.of(address).reverse()) {
      const links = decoded(raw).match(/https?:\/\/[^\s"'<>)]+/g) ?? [];
      const found = links.find((link) => pattern.test(link));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** How the service opens connections to it. */
  openMailSocket: NonNullable<Outside['openMailSocket']> = (_options, callback) => {
    const { random, faults, onPass, pause, track } = this.#options;
    const fault = faults.of(['mail-refused', 'mail-reset', 'mail-silent', 'mail-slow']);
    const [near, far] = connectPair({
      near: ownEnd('5.9.1.1'),
      far: runAs(undefined, () => ownEnd('10.0.0.1')),
      latency: () => (fault === 'mail-slow' ? random.whole(500, 4_000) : random.whole(1, 40)),
      onPass: (direction) => onPass(near.owner, `mail ${direction}`),
    });
    track(near);
    void pause(1, 100).then(() => {
      callback(null, { connection: near as never });
      if (fault === 'mail-refused') {
        setImmediate(() => {
          near.destroy(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
        });
      } else if (fault !== 'mail-silent') {
        runAs(undefined, () => this.#serve(far).connect(far as never, { id: random.text(8) } as never));
        if (fault === 'mail-reset') void runAs(undefined, () => pause(1, 300)).then(() => far.reset());
      }
    });
  };

  /** A server for one connection. */
  #serve(connection: MemorySocket): SMTPServer {
    const { faults, now, onMail, pause } = this.#options;
    const refuse = (observed: Pick<MailObserved, 'from' | 'to' | 'step'>, status: number | undefined) => {
      if (status === undefined) return undefined;
      onMail({ kind: 'mail', at: now(), raw: '', ...observed, answered: status });
      return Object.assign(new Error('Refused'), { responseCode: status });
    };
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS', 'AUTH'],
      disableReverseLookup: true,
      logger: false,
      onMailFrom({ address }, _session, done) {
        const fault = faults.of(['mail-4xx-sender', 'mail-5xx-sender'], address);
        const status = fault === undefined ? undefined : fault === 'mail-4xx-sender' ? 451 : 550;
        done(refuse({ from: address, to: [], step: 'from' }, status));
      },
      onRcptTo({ address }, { envelope }, done) {
        const fault = faults.of(['mail-4xx-recipient', 'mail-5xx-recipient'], address);
        const status = fault === undefined ? undefined : fault === 'mail-4xx-recipient' ? 450 : 550;
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        done(refuse({ from, to: [address], step: 'to' }, status));
      },
      onData: (stream, { envelope }, done) => {
        void buffer(stream).then(
          async (bytes) => {
            const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
            const to = envelope.rcptTo.map(({ address }) => address);
            const raw = bytes.toString('utf8');
            const fault = faults.of(['mail-4xx-data', 'mail-lost', 'mail-scan'], ...to);
            if (fault === 'mail-4xx-data') return done(refuse({ from, to, step: 'data' }, 452));
            this.#taken.push({ to, raw });
            const isLost = fault === 'mail-lost';
            onMail({ kind: 'mail', at: now(), from, to, raw, step: 'data', answered: isLost ? 'lost' : 250 });
            if (fault === 'mail-scan') await runAs(undefined, () => pause(11_000, 20_000));
            if (isLost) connection.reset();
            else done();
          },
          () => done(),
        );
      },
    });
    // Connections that break are as they were meant.
    return server.on('error', () => undefined);
  }
}

/** A mail's text with quoted-printable and encoded parts made readable. */
function decoded(raw: string): string {
  const base64 = raw.replace(/base64\r\n\r\n([A-Za-z0-9+/=\r\n]+)/g, (_, text: string) =>
    Buffer.from(text, 'base64').toString('utf8'),
  );
  return base64
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll('&amp;', '&');
}

type MailServerOptions = PeerOptions & { onMail: (observed: MailObserved) => void };
