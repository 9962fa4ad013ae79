import { X509Certificate } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConnectError } from '@connectrpc/connect';
import {
  type Config,
  ConfigError,
  misspeltSettings,
  readConfig,
  UNCONFIRMED_OWNERS,
} from '../../../config.ts';
import { StartError } from '../../../domain/errors/system-errors.ts';
import { DAY_MS } from '../../../domain/limits/limits.ts';
import { readCertificate } from '../../../listeners/certificate.ts';
import { type DiskFacts, measureDisk } from '../../../services/limits/disk-space.ts';
import { DatabaseUnavailable } from '../../../store/database/faults.ts';
import {
  type Finding,
  findingsAbout,
  inMib,
  RefusedError,
  reasonInWords,
  type Terminal,
} from '../../terminal.ts';
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
    for (const [about, check] of Object.entries(checks)) {
      try {
        for await (const finding of check(config, now)) report(finding);
      } catch (error) {
        if (!explained.some((kind) => error instanceof kind)) throw error;
        report({ level: 'FAIL', about, text: reasonInWords(error) });
      }
    }
  }
  if (failures > 0) throw new RefusedError(failures === 1 ? '1 check failed.' : `${failures} checks failed.`);
}

/** By what they are about. Where a part of the start refuses, what it says is what they find. */
const checks: Record<string, (config: Config, now: () => number) => AsyncIterable<Finding>> = {
  settings: checkSettings,
  disk: checkDisk,
  database: checkDatabase,
  mail: checkMail,
  ports: checkPorts,
  addresses: checkAddresses,
};

/** Errors that say what to do. */
const explained = [StartError, ConnectError, RefusedError, DatabaseUnavailable];

const settings = findingsAbout('settings');
const disk = findingsAbout('disk');

/** What settings mean together, and whether the certificate can be used. */
async function* checkSettings(config: Config, now: () => number): AsyncGenerator<Finding> {
  const { tlsCert: certFile, tlsKey: keyFile } = config;
  const problems = problemsOf(config);
  yield* problems;
  if (certFile !== undefined && keyFile !== undefined) {
    const { cert } = readCertificate({ certFile, keyFile });
    const days = Math.floor((new X509Certificate(cert).validToDate.getTime() - now()) / DAY_MS);
    if (days < 0) yield settings.fail(`TLS_CERT: ${certFile} has expired. Renew it.`);
    else if (days < 14) yield settings.warning(`TLS_CERT: ${certFile} expires in ${days} days. Renew it.`);
    else yield settings.ok(`the certificate is good for ${days} days`);
  } else if (problems.length === 0) yield settings.ok('all can be read and go together');
}

function problemsOf({ databaseUrl, secretKey, requireApiKey, ownerConfirmation, host }: Config): Finding[] {
  const problems: Finding[] = [];
  if (databaseUrl !== undefined && secretKey === undefined) {
    problems.push(settings.fail('SECRET_KEY: needed with DATABASE_URL. Make one with: openssl rand -hex 32'));
  }
  if (!requireApiKey && !loopback.has(host)) {
    problems.push(
      settings.warning(
        `REQUIRE_API_KEY=false and HOST=${host}: anyone who can reach it can manage forms. Set HOST=127.0.0.1 or require keys.`,
      ),
    );
  }
  if (!ownerConfirmation) {
    problems.push(
      settings.warning(
        `OWNER_CONFIRMATION=off: ${UNCONFIRMED_OWNERS}. Unset it unless everybody who can reach the service is trusted.`,
      ),
    );
  }
  return problems;
}

const loopback = new Set(['127.0.0.1', '::1', 'localhost']);

/** Whether DATA_DIR can be written, and its disk has space. */
async function* checkDisk({ dataDir }: Config): AsyncGenerator<Finding> {
  const folder = await nearestFolder(dataDir);
  const isWritable = await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (isWritable) yield judgeDisk(folder, await measureDisk(folder));
  else yield disk.fail(`${folder} can't be written by this user. Change its owner, or set DATA_DIR.`);
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
