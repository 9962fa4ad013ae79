import { createServer } from 'node:net';
import { createTransport } from 'nodemailer';
import { request } from 'undici';
import type { Config } from '../../../config.ts';
import { ehloName } from '../../../domain/delivery/mails.ts';
import { listenOn } from '../../../listeners/ports.ts';
import { type Finding, findingsAbout, reasonInWords } from '../../terminal.ts';

const mail = findingsAbout('mail');
const ports = findingsAbout('ports');
const addresses = findingsAbout('addresses');

/** Whether the mail server answers and takes the user and password. */
export async function* checkMail(config: Config): AsyncGenerator<Finding> {
  const { smtpUrl, dataDir, mailFrom } = config;
  if (smtpUrl === undefined) {
    yield mail.warning(`nothing is sent: emails are saved to ${dataDir}/mail. Set SMTP_URL.`);
    return;
  }
  const transport = createTransport({
    url: smtpUrl,
    name: ehloName(config),
    connectionTimeout: MAIL_TIMEOUT_MS,
    greetingTimeout: MAIL_TIMEOUT_MS,
    dnsTimeout: MAIL_TIMEOUT_MS,
    socketTimeout: MAIL_TIMEOUT_MS,
  });
  const { host } = new URL(smtpUrl);
  try {
    await transport.verify();
    yield mail.ok(`${host} accepts emails from ${mailFrom}`);
  } catch (error) {
    yield mail.fail(`SMTP_URL: ${host}: ${reasonInWords(error)}. Check host, port, user and password.`);
  } finally {
    transport.close();
  }
}

/** Whether the service can listen on the ports, or does already. */
export async function* checkPorts(config: Config): AsyncGenerator<Finding> {
  const { host, port, grpcPort, tlsCert } = config;
  const http = await problemOf(host, port, 'PORT');
  const isOne = grpcPort === port;
  const grpc = isOne ? http : await problemOf(host, grpcPort, 'GRPC_PORT');
  const url = `${tlsCert === undefined ? 'http' : 'https'}://${hostOf(host)}:${port}`;
  if (http === undefined && grpc === undefined) {
    yield ports.ok(`${isOne ? `${port} is` : `${port} and ${grpcPort} are`} free: no service runs`);
  } else if (http && grpc && (await answersAsService(url).catch(() => false))) {
    yield ports.ok(`the service listens on ${isOne ? port : `${port} and ${grpcPort}`}`);
  } else {
    for (const problem of new Set([http, grpc])) {
      if (problem !== undefined) yield ports.fail(`${problem}. Stop that, or set another port.`);
    }
  }
}

/** Whether users reach the service at the addresses that links name. */
export async function* checkAddresses({ host, port, baseUrl, hostedUrl }: Config): AsyncGenerator<Finding> {
  const named = [...new Set([baseUrl, hostedUrl])];
  if ((await problemOf(host, port, 'PORT')) === undefined) {
    yield addresses.warning(
      `${named.join(' and ')} not tried: no service runs here. Start it and ask again.`,
    );
    return;
  }
  for (const url of named) {
    const setting = url === baseUrl ? 'BASE_URL' : 'HOSTED_URL';
    try {
      yield (await answersAsService(url))
        ? addresses.ok(`${setting} ${url} leads to the service`)
        : addresses.fail(`${setting} ${url} leads elsewhere. Correct it, or the proxy in front.`);
    } catch (error) {
      yield addresses.fail(
        `${setting} ${url}: ${reasonInWords(error)}. Correct it, the name, or the proxy in front.`,
      );
    }
  }
}

/** Why the start could not listen on a port; undefined if it could. */
async function problemOf(host: string, port: number, setting: string): Promise<string | undefined> {
  const server = createServer();
  try {
    await listenOn(server, host, port, setting);
    return undefined;
  } catch (error) {
    return reasonInWords(error);
  } finally {
    server.close();
  }
}

async function answersAsService(url: string): Promise<boolean> {
  const { statusCode, body } = await request(`${url}/health`, {
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = await body.text();
  return statusCode === 200 && text.replaceAll(/\s/g, '') === '{"ok":true}';
}

/** An address to call where the service listens on all of them. */
function hostOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

const TIMEOUT_MS = 5_000;

/** Some mail servers greet strangers late on purpose. */
const MAIL_TIMEOUT_MS = 60_000;
