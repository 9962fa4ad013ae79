import { ConnectError } from '@connectrpc/connect';
import { RevokeKeyRequest_Children as Children } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { ConfigError } from '../../config.ts';
import { StartError } from '../../domain/errors/system-errors.ts';
import type { Admin } from '../../services/admin/admin.ts';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import { type Commands, RefusedError, readCommand, type Terminal, UsageError } from '../terminal.ts';
import { backUp } from './backup.ts';
import {
  createKey,
  erase,
  printFailingWebhooks,
  printKeys,
  printProjects,
  revokeKeyOfId,
  signOutOwner,
  vacuum,
} from './commands.ts';
import { examine } from './doctor/doctor.ts';
import { exportProject } from './export.ts';
import { migrate } from './migrate.ts';
import { openAdmin } from './open.ts';
import { checkArchive, restore } from './restore.ts';
import { rotateSecrets } from './rotate-secrets.ts';

/**
 * Runs a command of a person with shell access; `args` is what was typed after `admin`.
 *
 * Throws a `UsageError` for what makes no sense, and a `RefusedError` for what can't be done.
 */
export async function runAdminCommand(args: string[], terminal: Terminal): Promise<void> {
  const command = readCommand(args, { commands: commandsOn(terminal), options, prefix: 'admin ' });
  try {
    await command();
  } catch (error) {
    if (error instanceof ConnectError) throw new RefusedError(error.rawMessage, { cause: error });
    if (error instanceof ConfigError) throw new RefusedError(error.problems, { cause: error });
    if (explained.some((kind) => error instanceof kind) || isOfFile(error)) {
      throw new RefusedError(error instanceof Error ? error.message : '', { cause: error });
    }
    throw error;
  }
}

/** Errors whose message is for the person who typed. */
const explained = [StartError, DatabaseUnavailable];

/** Such as a file that is not there, or a full disk: the message names it. */
function isOfFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'path' in error;
}

const options = {
  name: { type: 'string' },
  scopes: { type: 'string' },
  project: { type: 'string' },
  'expires-in': { type: 'string' },
  value: { type: 'string' },
  yes: { type: 'boolean' },
  check: { type: 'boolean' },
  'allow-missing-files': { type: 'boolean' },
  'include-mentions': { type: 'boolean' },
  'revoke-children': { type: 'boolean' },
  'keep-children': { type: 'boolean' },
  full: { type: 'boolean' },
  'without-secrets': { type: 'boolean' },
} as const;

function commandsOn(terminal: Terminal): Commands<typeof options> {
  const withAdmin = async (work: (admin: Admin) => Promise<void>) => {
    await using opened = await openAdmin(terminal);
    await work(opened.admin);
  };
  return {
    'keys create': {
      takes: ['name', 'scopes', 'project', 'expires-in'],
      async run({ name = 'admin', scopes = '*', project = 'default', 'expires-in': seconds }) {
        const expiresIn = durationIn(seconds);
        const request = { name, scopes: scopes.split(',').map((scope) => scope.trim()), project, expiresIn };
        await withAdmin((admin) => createKey(admin, request, terminal));
      },
    },
    'keys list': {
      takes: ['project'],
      run: ({ project = '' }) => withAdmin((admin) => printKeys(admin, project, terminal)),
    },
    'keys revoke': {
      needs: 1,
      missing: 'Which key? Its id is in: admin keys list',
      takes: ['revoke-children', 'keep-children'],
      async run({ 'revoke-children': revoke = false, 'keep-children': keep = false }, keyId = '') {
        if (revoke && keep) throw new UsageError('Give either --revoke-children or --keep-children');
        const others = keep ? Children.KEEP : Children.UNSPECIFIED;
        const children = revoke ? Children.REVOKE : others;
        await withAdmin((admin) => revokeKeyOfId(admin, { keyId, children }, terminal));
      },
    },
    vacuum: {
      takes: ['full'],
      run: ({ full = false }) => withAdmin((admin) => vacuum(admin, { full }, terminal)),
    },
    'owners sign-out': {
      needs: 1,
      missing: 'Which owner? Such as: admin owners sign-out ada@example.com',
      run: (_, address = '') => withAdmin((admin) => signOutOwner(admin, address, terminal)),
    },
    'rotate-secrets': {
      takes: ['yes'],
      run: ({ yes: isConfirmed = false }) => rotateSecrets(isConfirmed, terminal),
    },
    'webhooks failing': { run: () => withAdmin((admin) => printFailingWebhooks(admin, terminal)) },
    projects: { run: () => withAdmin((admin) => printProjects(admin, terminal)) },
    erase: {
      needs: 1,
      missing: 'Which project? Its name is in: admin projects',
      takes: ['yes', 'value', 'include-mentions'],
      run: ({ yes: isConfirmed = false, value, 'include-mentions': includeMentions = false }, project = '') =>
        withAdmin((admin) => erase(admin, { project, value, includeMentions, isConfirmed }, terminal)),
    },
    export: {
      needs: 2,
      missing: 'Which project, and where to? Such as: admin export default /srv/export',
      run: (_, project = '', folder = '') =>
        withAdmin((admin) => exportProject(admin, { project, folder }, terminal)),
    },
    migrate: { run: () => migrate(terminal) },
    backup: {
      needs: 1,
      missing: 'Which file? Such as: admin backup forms.tar.gz',
      takes: ['without-secrets'],
      run: ({ 'without-secrets': isWithoutSecrets = false }, file = '') =>
        backUp(file, { isWithoutSecrets }, terminal),
    },
    doctor: { run: () => examine(terminal) },
    restore: {
      most: 1,
      takes: ['check', 'allow-missing-files'],
      async run({ check = false, 'allow-missing-files': mayLackFiles = false }, file) {
        if (!check) await restore(file, { mayLackFiles }, terminal);
        else if (file !== undefined) await checkArchive(file, { mayLackFiles }, terminal);
        else throw new UsageError('Which file? Such as: admin restore --check forms.tar.gz');
      },
    },
  };
}

function durationIn(text: string | undefined) {
  if (text === undefined) return undefined;
  if (!/^\d{1,12}$/.test(text)) throw new UsageError(`--expires-in: Expected whole seconds, not ${text}`);
  return { seconds: BigInt(text) };
}
