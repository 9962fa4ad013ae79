import cluster from 'node:cluster';
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { type DestinationStream, pino } from 'pino';
import type { App } from './app.ts';
import { type Config, ConfigError, misspeltSettings, readConfig, UNCONFIRMED_OWNERS } from './config.ts';
import { StartError } from './domain/errors/system-errors.ts';
import { ADDRESS_ATTEMPT_MS } from './domain/limits/limits.ts';
import { findFreePort } from './listeners/ports.ts';
import { firstCommand } from './pages/home.ts';
import { isFurtherWorker, superviseWorkers, workerNumber } from './processes.ts';
import { machineClock } from './store/database/clock.ts';
import { LogOutput } from './telemetry/log-output.ts';

setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_ATTEMPT_MS);
const config = await withPort(settings());
const output = new LogOutput((dropped) =>
  log.error({ dropped }, 'Lines of the log were dropped: it could not be written.'),
);
const log = pino({ level: config.logLevel, base: null }, await logDestination(config, output));
if (cluster.isPrimary) for (const line of misspeltSettings(process.env)) log.warn(line);
if (config.workers > 1 && cluster.isPrimary) process.exit(await superviseWorkers(config.workers, log));
const app = await start();
// On a full disk nobody can read it.
process.stdout.on('error', (error) =>
  log.warn({ err: error }, 'The addresses of the service could not be written.'),
);
if (!isFurtherWorker()) process.stdout.write(welcome(app, config));
// Ctrl-C signals every process of the group; workers wait for the SIGTERM of the process that started them.
if (cluster.isWorker) process.on('SIGINT', () => undefined);
for (const signal of stopSignals()) process.once(signal, () => void stop(signal));

function settings(): Config {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return fail([...error.problems, ...misspeltSettings(process.env)].join('\n'));
  }
}

/** Without BASE_URL, links begin with the port, so a free one is chosen before anything needs it; workers share it. */
async function withPort(given: Config): Promise<Config> {
  if (given.port !== 0) return given;
  process.env.PORT = String(await findFreePort(given.host).catch(failToStart));
  return settings();
}

/** Lines of the log, as JSON or for people, go to `output`. */
async function logDestination({ logFormat }: Config, output: LogOutput): Promise<DestinationStream> {
  const isTerminal = process.stderr.isTTY === true;
  if (logFormat === 'json' || (logFormat === 'auto' && !isTerminal)) return output;
  const { readableLog } = await import('./telemetry/readable-log.ts');
  return readableLog((text) => output.write(text), isTerminal);
}

async function start(): Promise<App> {
  // Loading it takes a second on a slow machine: a bad setting is refused before, and a supervisor needs none of it.
  const { startApp } = await import('./app.ts');
  try {
    return await startApp(
      { ...config, metricsPort: ownMetricsPort(config) },
      {
        log,
        logOutput: output,
        now: machineClock(),
        random: Math.random,
        isFurtherWorker: isFurtherWorker(),
      },
    );
  } catch (error) {
    return failToStart(error);
  }
}

function failToStart(error: unknown): never {
  if (error instanceof StartError) return fail(error.message);
  throw error;
}

/** Workers have a port each, the first that of METRICS_PORT, so that each is asked for its own. */
function ownMetricsPort({ metricsPort }: Config): number | undefined {
  return metricsPort === undefined || metricsPort === 0 ? metricsPort : metricsPort + workerNumber() - 1;
}

/** Finishes what is under way and exits with 0. A second signal exits at once with 1. */
async function stop(signal: string): Promise<void> {
  for (const again of stopSignals()) process.once(again, () => process.exit(1));
  log.info({ signal }, 'Stopping; calls and deliveries under way are finished first.');
  try {
    await app.close();
    process.exit(0);
  } catch (error) {
    log.error({ err: error }, 'A part of the service failed to stop; exiting without it.');
    process.exit(1);
  }
}

function stopSignals(): NodeJS.Signals[] {
  return cluster.isWorker ? ['SIGTERM'] : ['SIGTERM', 'SIGINT'];
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** What the person who starts the service needs to know, in one block. */
function welcome(running: App, options: Config): string {
  const { dataDir, databaseUrl, smtpUrl, requireApiKey, allowPublicCreate, ownerConfirmation } = options;
  const rows: [name: string, value: string | false | undefined][] = [
    ['Start here', running.url],
    ['Guides', options.docs && `${running.url}/docs`],
    ['REST, pages, Connect', running.url],
    ['gRPC', running.grpcUrl],
    ['Database', databaseUrl === undefined ? `embedded, in ${dataDir}` : hostOf(databaseUrl)],
    [
      'Email',
      smtpUrl === undefined
        ? `saved to ${dataDir}/mail (set SMTP_URL to send it)`
        : `sent by ${hostOf(smtpUrl)}`,
    ],
    ['Metrics', running.metricsUrl],
    ['API key', running.firstKey && `${running.firstKey}   (shown only now: keep it)`],
    [
      'WARNING',
      running.isBootstrapKeyRevoked &&
        'BOOTSTRAP_API_KEY was revoked and stays so. For another key: npm run cli -- admin keys create',
    ],
    ['WARNING', !requireApiKey && 'REQUIRE_API_KEY=false: management routes answer without a key'],
    ['WARNING', !ownerConfirmation && `OWNER_CONFIRMATION=off: ${UNCONFIRMED_OWNERS}`],
  ];
  const shown = rows.filter(([, value]) => value !== undefined && value !== false);
  const lines = shown.map(([name, value]) => `  ${name.padEnd(22)}${value}\n`);
  // A shell fills in $KEY where the key is needed but was shown by an earlier start.
  const key = running.firstKey ?? (allowPublicCreate ? undefined : `'"$KEY"'`);
  const next = `URL=${running.url}
ACTIVATE=$(${firstCommand('$URL', key).replace('curl', 'curl -s')} | grep -o '/api/forms/[^"]*/activate[^"]*')
echo "$URL$ACTIVATE"`;
  return `\nHeadless form service\n\n${lines.join('')}\nMake a form. Paste this, and open the link that it prints:\n\n${next}\n\n`;
}

/** A URL without its password and query. */
function hostOf(text: string): string {
  const { protocol, host, pathname } = new URL(text);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
