import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { until } from './until.ts';

/**
 * Starts a real SMTP server on a free port of 127.0.0.1, or of another `host`, and parses what it is sent. `refuse` may
 * answer a recipient with an error status, such as 450 or 550, or with a status and words, and the server waits for what it
 * promises. `refuseSender` does the same for the sender, `greet` for a connection before its greeting, and `scan` for a
 * message after its final dot.
 */
export async function startMailServer(
  refuse: Refusal = () => undefined,
  refuseSender: Refusal = () => undefined,
  { greet, scan, host = '127.0.0.1' }: Delays = {},
) {
  const mails: ReceivedMail[] = [];
  const names: string[] = [];
  const sockets: Socket[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    async onConnect(_session, done) {
      done(errorOf(await greet?.()));
    },
    async onMailFrom({ address }, { hostNameAppearsAs }, done) {
      names.push(hostNameAppearsAs);
      done(errorOf(await refuseSender(address)));
    },
    async onRcptTo({ address }, _session, done) {
      done(errorOf(await refuse(address)));
    },
    async onData(stream, session, done) {
      // A client that gives up in the middle has sent no mail.
      const source = await buffer(stream).catch(() => undefined);
      if (source === undefined) return done();
      const recipients = session.envelope.rcptTo.map(({ address }) => address);
      mails.push({ recipients, source: source.toString('utf8'), ...(await PostalMime.parse(source)) });
      done(errorOf(await scan?.()));
    },
  });
  const listener = server.listen(0, host);
  listener.on('connection', (socket) => sockets.push(socket));
  // Clients that give up, and connections that a test cuts.
  server.on('error', () => undefined);
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;

  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    /** What clients named themselves, once for each mail. */
    names,
    /** All that were opened, in this order. */
    sockets,
    /** Waits until so many mails have arrived, and returns them. */
    async expectMails(count: number, withinMs = 30_000): Promise<ReceivedMail[]> {
      await until(
        () => mails.length >= count,
        withinMs,
        () => `${mails.length} of ${count} mails`,
      );
      return mails;
    },
    [Symbol.asyncDispose]: () => new Promise<void>((done) => server.close(done)),
  } satisfies MailServer;
}

function errorOf(answer: Answer | undefined): Error | undefined {
  if (answer === undefined) return undefined;
  const [status, words = 'Refused by the test'] = String(answer).split(/ (.*)/s);
  return Object.assign(new Error(words), { responseCode: Number(status) });
}

/** A mail as it arrived, taken apart. */
export type ReceivedMail = Email & { recipients: string[]; source: string };

type Refusal = (address: string) => Answer | undefined | Promise<Answer | undefined>;

type Delays = { host?: string } & Partial<Record<'greet' | 'scan', () => Promise<Answer | undefined>>>;

/** Such as `450`, or `550 5.1.1 No such user`. */
type Answer = number | string;

type MailServer = AsyncDisposable & {
  url: string;
  mails: ReceivedMail[];
  names: string[];
  sockets: Socket[];
  expectMails(count: number, withinMs?: number): Promise<ReceivedMail[]>;
};
