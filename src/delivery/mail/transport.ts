import { mkdir, rename, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createTransport, type SendMailOptions } from 'nodemailer';
import { ehloName } from '../../domain/delivery/mails.ts';
import type { Log } from '../../telemetry/log.ts';
import { lookUp, raceAddresses } from '../address-race.ts';
import type { DeliveryOptions, DeliverySettings } from '../options.ts';

/** Opens the transport of emails: to the SMTP server, or without one into files. */
export function openMailTransport(options: TransportOptions): MailTransport {
  const { smtpUrl, mailDir } = options.settings;
  return smtpUrl === undefined
    ? fileTransport(mailDir, options.log)
    : smtpTransport(new URL(smtpUrl), options);
}

function smtpTransport(url: URL, options: TransportOptions): MailTransport {
  const lines = new Set<Line>();
  const free: Line[] = [];
  return {
    connections: Number(url.searchParams.get('maxConnections') ?? MAIL_CONNECTIONS),
    send(mail) {
      // The line that was used last: its connection is the most likely to be open.
      const line = free.pop() ?? openLine(url, options);
      lines.add(line);
      return line.send(mail).finally(() => free.push(line));
    },
    close() {
      for (const line of lines) line.close();
    },
  };
}

/**
 * Makes what sends emails one after the other by one connection, which is opened when it is needed. One that was used
 * before and dies before the end of the message was written is opened anew, once for each email.
 */
function openLine(
  url: URL,
  {
    settings,
    smtpTimes = standardTimes,
    openMailSocket = openSocket(smtpTimes.connecting),
  }: TransportOptions,
): Line {
  const times: Record<string, number> = { ...smtpTimes };
  times.network = Number(url.searchParams.get('greetingTimeout') ?? smtpTimes.network);
  let onStep: (step: string) => void = () => undefined;
  const rest = new URL(url);
  // What this service sets by itself, or nodemailer must not be told by a URL.
  for (const own of ['debug', 'logger', 'maxConnections', 'maxRequeues', 'greetingTimeout'])
    rest.searchParams.delete(own);
  // nodemailer's own limits are set longer than all of ours: it can't tell most steps of the dialogue apart.
  const beyond = 2 * Math.max(...Object.values(times));
  const getSocket: NonNullable<DeliveryOptions['openMailSocket']> = (given, done) => {
    onStep('connecting');
    openMailSocket(given, done);
  };
  const transport = createTransport({
    name: ehloName(settings),
    url: rest.href,
    pool: true,
    maxConnections: 1,
    maxRequeues: 0,
    connectionTimeout: beyond,
    greetingTimeout: beyond,
    dnsTimeout: beyond,
    socketTimeout: beyond,
    getSocket,
    transactionLog: true,
    logger: { info: ({ tnx = '' }: { tnx?: string }) => onStep(tnx) },
    ...noOutsideContent,
  });

  return {
    async send(mail) {
      for (let isLast = false; ; isLast = true) {
        const limit = new AbortController();
        const signal = AbortSignal.any([mail.signal, limit.signal]);
        const steps = new Set<string>();
        let timer: NodeJS.Timeout | undefined;
        onStep = (step) => {
          const ms = times[step];
          if (ms === undefined) return;
          steps.add(step);
          clearTimeout(timer);
          timer = setTimeout(() => limit.abort(new MailServerLate(step, ms)), ms);
        };
        onStep('server');
        try {
          return (await transport.sendMail({ ...mail, signal })).response;
        } catch (error) {
          // 421 is no answer to this email: the server closes the connection.
          const isAnswer = error instanceof Error && 'responseCode' in error && error.responseCode !== 421;
          const isRepeatable = !steps.has('connecting') && !steps.has('message') && !isAnswer;
          if (isLast || mail.signal.aborted || !isRepeatable) throw limit.signal.reason ?? error;
        } finally {
          clearTimeout(timer);
          onStep = () => undefined;
        }
      }
    },
    close: () => transport.close(),
  };
}

/** Makes what connects to the addresses of the mail server, of which each has this time. */
function openSocket(timeoutMs: number): NonNullable<DeliveryOptions['openMailSocket']> {
  return ({ host = 'localhost', port, secure, localAddress }, done) => {
    const to = { port: Number(port ?? (secure ? 465 : 587)), ...(localAddress && { localAddress }) };
    const open = (address: string, isOver: AbortSignal) =>
      new Promise<Socket>((resolve, reject) => {
        const socket = connect({ ...to, host: address, timeout: timeoutMs }, () => {
          isOver.removeEventListener('abort', giveUp);
          socket.removeAllListeners('timeout').setTimeout(0);
          resolve(socket);
        });
        const giveUp = () => socket.destroy();
        isOver.addEventListener('abort', giveUp);
        socket
          .once('error', reject)
          .once('timeout', () => socket.destroy(new MailServerLate('connecting', timeoutMs)));
      });
    lookUp(host)
      .then((addresses) => raceAddresses(addresses, open))
      .then((connection) => done(null, { connection }), done);
  };
}

/** Writes each email to a file of its own and says so in the log, for development and small installations. */
function fileTransport(mailDir: string, log: Log): MailTransport {
  const transport = createTransport({ streamTransport: true, buffer: true, ...noOutsideContent });
  return {
    connections: MAIL_CONNECTIONS,
    async send(mail, name) {
      const { message } = await transport.sendMail(mail);
      const file = join(mailDir, `${name}.eml`);
      // Emails hold what people answered: only the service's own user may read the files.
      await mkdir(mailDir, { recursive: true, mode: 0o700 });
      await writeFile(`${file}.part`, message, { mode: 0o600 });
      await rename(`${file}.part`, file);
      log.info({ file }, 'Saved an email to a file; set SMTP_URL to send emails.');
      return 'written to a file';
    },
    close: () => transport.close(),
  };
}

/** What mail servers commonly allow from one address. */
export const MAIL_CONNECTIONS = 5;

/**
 * Those of RFC 5321, 4.5.3.2, shorter where no message is scanned: for the connection, for the greeting, for the next
 * answer, and for the answer after the final dot of the message. But for the first, the steps before have the names of
 * nodemailer's log.
 */
export const standardTimes = { connecting: 30_000, network: 60_000, server: 60_000, message: 600_000 };

/** What comes after a step took too long. */
export class MailServerLate extends Error {
  readonly code = 'ETIMEDOUT';

  constructor(step: string, ms: number) {
    const missing = step === 'message' ? 'confirm the email' : 'answer';
    super(`The mail server did not ${missing} within ${ms / 1_000} s.`);
  }
}

/** nodemailer must not load files or URLs that a text names. */
const noOutsideContent = { disableFileAccess: true, disableUrlAccess: true };

export type MailTransport = {
  /** How many emails may be sent at once. */
  connections: number;
  /**
   * Hands over one email and returns what the server said. Throws what nodemailer does, or `MailServerLate`; an email
   * whose `signal` is aborted is cut off. `name` is a file's.
   */
  send(mail: CancellableMail, name: string): Promise<string>;
  close(): void;
};

type CancellableMail = SendMailOptions & { signal: AbortSignal };

type Line = Pick<MailTransport, 'close'> & { send(mail: CancellableMail): Promise<string> };

type TransportOptions = Pick<DeliveryOptions, 'log' | 'openMailSocket' | 'smtpTimes'> & {
  settings: Pick<DeliverySettings, 'smtpUrl' | 'mailDir' | 'mailFrom' | 'baseUrl'>;
};
