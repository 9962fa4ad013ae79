import { type Config, ConfigError, misspeltSettings, readConfig } from '../../../config.ts';
import { type Finding, RefusedError, type Terminal } from '../../terminal.ts';
import { checkDatabase } from './database.ts';
import { checkAddresses, checkMail, checkPorts } from './network.ts';
import { checkDisk, checkSettings } from './settings.ts';

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
