import { X509Certificate } from 'node:crypto';
import { access, constants, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import {
  type Config,
  ConfigError,
  misspeltSettings,
  readConfig,
  UNCONFIRMED_OWNERS,
} from '../../../config.ts';
import { DAY_MS } from '../../../domain/limits/limits.ts';
import { type DiskFacts, measureDisk } from '../../../services/limits/disk-space.ts';
import { type Finding, findingsAbout, inMib, RefusedError, reasonOf, type Terminal } from '../../terminal.ts';
import { checkDatabase } from './database.ts';
import { checkAddresses, checkMail, checkPorts } from './network.ts';

/**
 * Checks what the service needs and prints a line for each: `ok`, `warning`, or `FAIL` with what to do. It changes
 * nothing, and may be run beside the service and before its first start.
 *
 * @throws RefusedError if something fails, so that the exit code is 1.
 */
export async function examine({ env, now, print }: Terminal): Promise<void> {
  let failures = 0;
  const report = ({ level, about, text }: Finding) => {
    if (level === 'FAIL') failures += 1;
    print(`${level.padEnd(8)} ${about.padEnd(10)} ${text}`);
  };
  for (const text of misspeltSettings(env)) report({ level: 'warning', about: 'settings', text });
  let config: Config | undefined;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const text of error.problems) report({ level: 'FAIL', about: 'settings', text });
  }
  if (config !== undefined) {
    for (const check of checks) for (const finding of await check(config, now)) report(finding);
  }
  if (failures > 0) throw new RefusedError(failures === 1 ? '1 check failed.' : `${failures} checks failed.`);
}

const checks: ((config: Config, now: () => number) => Promise<Finding[]>)[] = [
  checkSettings,
  checkDisk,
  checkDatabase,
  checkMail,
  checkPorts,
  checkAddresses,
];

const settings = findingsAbout('settings');
const disk = findingsAbout('disk');

/** What settings mean together, and whether the certificate can be used. */
async function checkSettings(config: Config, now: () => number): Promise<Finding[]> {
  const { databaseUrl, secretKey, requireApiKey, ownerConfirmation, host, tlsCert, tlsKey } = config;
  const findings: Finding[] = [];
  if (databaseUrl !== undefined && secretKey === undefined) {
    findings.push(settings.fail('SECRET_KEY: needed with DATABASE_URL. Make one with: openssl rand -hex 32'));
  }
  if (!requireApiKey && !loopback.has(host)) {
    findings.push(
      settings.warning(
        `REQUIRE_API_KEY=false and HOST=${host}: whoever reaches it may manage forms. Set HOST=127.0.0.1 or require keys.`,
      ),
    );
  }
  if (!ownerConfirmation) {
    findings.push(
      settings.warning(
        `OWNER_CONFIRMATION=off: ${UNCONFIRMED_OWNERS}. Unset it unless everybody who can reach the service is trusted.`,
      ),
    );
  }
  if (tlsCert !== undefined && tlsKey !== undefined)
    findings.push(await checkCertificate(tlsCert, tlsKey, now));
  return findings.length > 0 ? findings : [settings.ok('all can be read and go together')];
}

const loopback = new Set(['127.0.0.1', '::1', 'localhost']);

async function checkCertificate(certFile: string, keyFile: string, now: () => number): Promise<Finding> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    createSecureContext({ cert, key });
    const days = Math.floor((new X509Certificate(cert).validToDate.getTime() - now()) / DAY_MS);
    if (days < 0) return settings.fail(`TLS_CERT: ${certFile} has expired. Renew it.`);
    if (days < 14) return settings.warning(`TLS_CERT: ${certFile} expires in ${days} days. Renew it.`);
    return settings.ok(`the certificate is good for ${days} days`);
  } catch (error) {
    return settings.fail(`TLS_CERT, TLS_KEY: ${reasonOf(error)}. Name files in PEM that belong together.`);
  }
}

/** Whether DATA_DIR can be written, and its disk has space. */
async function checkDisk({ dataDir }: Config): Promise<Finding[]> {
  const folder = await nearestFolder(dataDir);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
  } catch {
    return [disk.fail(`${folder} can't be written by this user. Change its owner, or set DATA_DIR.`)];
  }
  return [judgeDisk(folder, await measureDisk(folder))];
}

/** Whether so much is free on the disk of a folder that new data is stored. */
export function judgeDisk(folder: string, { freeBytes, floorBytes }: DiskFacts): Finding {
  const text = `${inMib(freeBytes)} are free at ${folder}`;
  const floor = inMib(floorBytes);
  if (freeBytes < floorBytes)
    return disk.fail(`${text}, less than ${floor}: nothing new is stored. Make room.`);
  return freeBytes < 2 * floorBytes
    ? disk.warning(`${text}: below ${floor} nothing is stored`)
    : disk.ok(text);
}

/** The folder, or the one that it will be made in. */
async function nearestFolder(folder: string): Promise<string> {
  try {
    await access(folder);
    return folder;
  } catch {
    return folder === dirname(folder) ? folder : nearestFolder(dirname(folder));
  }
}
