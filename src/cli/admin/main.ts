import { parseArgs } from 'node:util';
import { ConfigError } from '../../config.ts';
import { StartError } from '../../domain/errors/start-error.ts';
import type { Admin } from '../../services/admin/admin.ts';
import { AdminError } from '../../services/admin/context.ts';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import { RefusedError, UsageError } from '../errors.ts';
import { verifyAudit } from './audit.ts';
import { backUp } from './backup.ts';
import { examine } from './doctor/doctor.ts';
import { erase } from './erase.ts';
import { exportProject } from './export.ts';
import { createKey, listKeys, listProjects } from './keys.ts';
import { migrate } from './migrate.ts';
import { openAdmin } from './open.ts';
import { restore } from './restore.ts';
import type { Terminal } from './terminal.ts';

/**
 * Runs a command of whoever holds the machine; `args` is what was typed after `admin`.
 *
 * Throws a `UsageError` for what makes no sense, and a `RefusedError` for what can't be done.
 */
export async function runAdminCommand(args: string[], terminal: Terminal): Promise<void> {
  const command = readCommand(args, terminal);
  try {
    await command();
  } catch (error) {
    if (explained.some((kind) => error instanceof kind) || isOfFile(error)) {
      throw new RefusedError(error instanceof Error ? error.message : '', { cause: error });
    }
    throw error;
  }
}

/** Errors whose message is for the person who typed. */
const explained = [AdminError, ConfigError, StartError, DatabaseUnavailable];

/** Such as a file that is not there, or a full disk: the message names it. */
function isOfFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'path' in error;
}

/** Everything that was typed is checked before a database is opened. */
function readCommand(args: string[], terminal: Terminal): () => Promise<void> {
  const { values, positionals } = parse(args);
  const words = positionals[0] === 'keys' || positionals[0] === 'audit' ? 2 : 1;
  const name = positionals.slice(0, words).join(' ');
  const [operand, ...rest] = positionals.slice(words);
  const expect = (operands: 0 | 1 | 2, ...allowed: (keyof typeof values)[]) => {
    const unknown = positionals[words + operands];
    if (unknown !== undefined) throw new UsageError(`Unknown argument: ${unknown}`);
    for (const option of optionNames) {
      if (values[option] !== undefined && !allowed.includes(option)) {
        throw new UsageError(`admin ${name} takes no --${option}`);
      }
    }
  };
  const withAdmin = (work: (admin: Admin) => Promise<void>) => async () => {
    await using opened = await openAdmin(terminal);
    await work(opened.admin);
  };
  switch (name) {
    case 'keys create': {
      expect(0, 'name', 'scopes', 'project', 'expires-in');
      const request = {
        name: values.name ?? 'admin',
        scopes: (values.scopes ?? '*').split(',').map((scope) => scope.trim()),
        project: values.project ?? 'default',
        expiresIn: secondsIn(values['expires-in']),
      };
      return withAdmin((admin) => createKey(admin, request, terminal));
    }
    case 'keys list':
      expect(0, 'project');
      return withAdmin((admin) => listKeys(admin, values.project, terminal));
    case 'keys revoke':
      expect(1);
      if (operand === undefined) throw new UsageError('Which key? Its id is in: admin keys list');
      return withAdmin(async (admin) => {
        const key = await admin.revokeKey({ id: operand });
        terminal.note(`Revoked ${key.id} (${key.name}) of the project ${key.project}.`);
      });
    case 'projects':
      expect(0);
      return withAdmin((admin) => listProjects(admin, terminal));
    case 'erase':
      expect(1, 'yes', 'value');
      if (operand === undefined) throw new UsageError('Which project? Its name is in: admin projects');
      return withAdmin((admin) =>
        erase(admin, { project: operand, value: values.value, isConfirmed: values.yes === true }, terminal),
      );
    case 'export': {
      expect(2);
      const [folder] = rest;
      if (operand === undefined || folder === undefined)
        throw new UsageError('Which project, and where to? Such as: admin export default /srv/export');
      return withAdmin((admin) => exportProject(admin, { project: operand, folder }, terminal));
    }
    case 'audit verify':
      expect(0);
      return withAdmin((admin) => verifyAudit(admin, terminal));
    case 'migrate':
      expect(0);
      return () => migrate(terminal);
    case 'backup':
      expect(1);
      if (operand === undefined) throw new UsageError('Which file? Such as: admin backup forms.tar.gz');
      return () => backUp(operand, terminal);
    case 'doctor':
      expect(0);
      return () => examine(terminal);
    case 'restore':
      expect(1);
      return () => restore(operand, terminal);
    default:
      throw new UsageError(`Unknown command: admin ${positionals.join(' ')}`.trim());
  }
}

const optionNames = ['name', 'scopes', 'project', 'expires-in', 'value', 'yes'] as const;

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        scopes: { type: 'string' },
        project: { type: 'string' },
        'expires-in': { type: 'string' },
        value: { type: 'string' },
        yes: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function secondsIn(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (!/^\d{1,12}$/.test(text)) throw new UsageError(`--expires-in: Expected whole seconds, not ${text}`);
  return Number(text);
}
