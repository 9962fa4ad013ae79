import { once } from 'node:events';
import { createServer } from 'node:net';
import { createTransport } from 'nodemailer';
import { request } from 'undici';
import type { Config } from '../../../config.ts';
import { type Finding, findingsAbout, reasonOf } from '../../terminal.ts';

const mail = findingsAbout('mail');
const ports = findingsAbout('ports');
const addresses = findingsAbout('addresses');

/** Whether the mail server answers and takes the user and password. */
export async function checkMail({ smtpUrl, dataDir, mailFrom }: Config): Promise<Finding[]> {
  if (smtpUrl === undefined) {
    return [mail.warning(`nothing is sent: mails are written to ${dataDir}/mail. Set SMTP_URL.`)];
  }
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
  });
  const { host } = new URL(smtpUrl);
  try {
    await transport.verify();
    return [mail.ok(`${host} takes mails from ${mailFrom}`)];
  } catch (error) {
    return [mail.fail(`SMTP_URL: ${host}: ${reasonOf(error)}. Check host, port, user and password.`)];
  } finally {
    transport.close();
  }
}

/** Whether the ports are free, or the service has them. */
export async function checkPorts({ host, port, grpcPort, tlsCert }: Config): Promise<Finding[]> {
  const [http, grpc] = await Promise.all([isFree(host, port), isFree(host, grpcPort)]);
  if (http && grpc) return [ports.ok(`${port} and ${grpcPort} are free: no service runs`)];
  const scheme = tlsCert === undefined ? 'http' : 'https';
  if (!http && !grpc && (await answersAsService(`${scheme}://${hostOf(host)}:${port}`).catch(() => false))) {
    return [ports.ok(`the service listens on ${port} and ${grpcPort}`)];
  }
  const taken = [...(http ? [] : [`PORT ${port}`]), ...(grpc ? [] : [`GRPC_PORT ${grpcPort}`])];
  return [ports.fail(`${taken.join(' and ')}: another program uses it. Stop that, or set another port.`)];
}

/** Whether users reach the service at the addresses that links name. */
export async function checkAddresses({ host, port, baseUrl, hostedUrl }: Config): Promise<Finding[]> {
  const named = [...new Set([baseUrl, hostedUrl])];
  if (await isFree(host, port)) {
    return [
      addresses.warning(`${named.join(' and ')} not tried: no service runs here. Start it and ask again.`),
    ];
  }
  return Promise.all(
    named.map(async (url) => {
      const setting = url === baseUrl ? 'BASE_URL' : 'HOSTED_URL';
      try {
        if (await answersAsService(url)) return addresses.ok(`${setting} ${url} leads to the service`);
        return addresses.fail(`${setting} ${url} leads elsewhere. Correct it, or the proxy in front.`);
      } catch (error) {
        return addresses.fail(
          `${setting} ${url}: ${reasonOf(error)}. Correct it, the name, or the proxy in front.`,
        );
      }
    }),
  );
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
    return true;
  } catch {
    return false;
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
