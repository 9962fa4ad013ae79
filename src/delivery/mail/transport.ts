import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type { Log } from '../../telemetry/log.ts';
import type { DeliveryOptions, DeliverySettings } from '../options.ts';

/** Opens the transport of emails: to the SMTP server, or without one into files. */
export function openMailTransport({ settings, log, openMailSocket }: TransportOptions): MailTransport {
  return settings.smtpUrl === undefined
    ? fileTransport(settings.mailDir, log)
    : smtpTransport(settings.smtpUrl, openMailSocket);
}

function smtpTransport(smtpUrl: string, getSocket: DeliveryOptions['openMailSocket']): MailTransport {
  const transport = createTransport({
    url: smtpUrl,
    pool: true,
    maxConnections: MAIL_CONNECTIONS,
    connectionTimeout: STEP_TIMEOUT_MS,
    greetingTimeout: STEP_TIMEOUT_MS,
    dnsTimeout: STEP_TIMEOUT_MS,
    socketTimeout: STEP_TIMEOUT_MS,
    ...(getSocket && { getSocket }),
    ...noOutsideContent,
  });
  return {
    send: async (mail) => (await transport.sendMail(mail)).response,
    close: () => transport.close(),
  };
}

/** Writes each email to a file of its own and says so in the log, for development and small installations. */
function fileTransport(mailDir: string, log: Log): MailTransport {
  const transport = createTransport({ streamTransport: true, buffer: true, ...noOutsideContent });
  return {
    async send(mail, name) {
      const { message } = await transport.sendMail(mail);
      const file = join(mailDir, `${name}.eml`);
      // Emails hold answers: they are their owner's alone.
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

/** For each step of the SMTP dialogue. */
const STEP_TIMEOUT_MS = 10_000;

/** nodemailer must not load files or URLs that a text names. */
const noOutsideContent = { disableFileAccess: true, disableUrlAccess: true };

export type MailTransport = {
  /**
   * Hands over one email and returns what the server said. Throws what nodemailer does; an email whose `signal`
   * is aborted is cut off. `name` is a file's.
   */
  send(mail: SendMailOptions, name: string): Promise<string>;
  close(): void;
};

type TransportOptions = Pick<DeliveryOptions, 'log' | 'openMailSocket'> & {
  settings: Pick<DeliverySettings, 'smtpUrl' | 'mailDir'>;
};
