import { type Timestamp, timestampDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Admin } from '../../services/admin/admin.ts';
import { printable } from '../../telemetry/printable.ts';
import { createProgress, RefusedError, type Terminal } from '../terminal.ts';

/** Makes a key. Only the key is written to standard output, so that a script can take it. */
export async function createKey(
  admin: Admin,
  request: Parameters<Admin['createKey']>[0],
  { print, note }: Terminal,
): Promise<void> {
  const { key, secret } = await admin.createKey(request);
  const { id, project, scopes = [], expireTime } = key ?? {};
  const end = expireTime === undefined ? '' : `, until ${timestampDate(expireTime).toISOString()}`;
  note(`Made ${id} in the project ${project}, with the scopes ${scopes.join()}${end}.`);
  note('Keep it: it is shown only now.');
  print(secret);
}

/** Lists the keys of a project, or of all if it has no name, without their texts. */
export async function printKeys(admin: Admin, project: string, { print, now }: Terminal): Promise<void> {
  const rows: string[][] = [];
  for await (const { keys } of admin.listKeys({ project })) {
    for (const key of keys) {
      const { id, last4, scopes, createTime, expireTime, lastUseTime, createdBy, name } = key;
      const isOver = expireTime !== undefined && timestampMs(expireTime) <= now();
      const end = `${day(expireTime)}${isOver ? ' (expired)' : ''}`;
      const times = [day(createTime), end, day(lastUseTime)];
      rows.push([id, key.project, `…${last4}`, scopes.join(), ...times, createdBy, name]);
    }
  }
  printTable(
    [['ID', 'PROJECT', 'KEY', 'SCOPES', 'CREATED', 'ENDS', 'LAST USED', 'MADE BY', 'NAME'], ...rows],
    print,
  );
}

/** Revokes a key of any project. */
export async function revokeKeyOfId(
  admin: Admin,
  request: Parameters<Admin['revokeKey']>[0],
  { note }: Terminal,
): Promise<void> {
  const { keys } = await admin.revokeKey(request);
  for (const { id, name, project } of keys) note(`Revoked ${id} (${name}) in the project ${project}.`);
}

/** Ends all sessions of an owner. */
export async function signOutOwner(admin: Admin, address: string, { note }: Terminal): Promise<void> {
  const { sessions } = await admin.signOutOwner({ address });
  note(
    `Ended ${sessions} ${sessions === 1 ? 'session' : 'sessions'} of ${address}, and voided links to sign in.`,
  );
}

/** Vacuums the embedded database. */
export async function vacuum(
  admin: Admin,
  request: Parameters<Admin['vacuum']>[0],
  { note }: Terminal,
): Promise<void> {
  const { tables } = await admin.vacuum(request);
  const written = tables.length === 0 ? '' : ` Rewritten: ${tables.join(', ')}.`;
  note(`Vacuumed the database.${written}`);
}

/** Lists the projects with the numbers of their keys and forms. */
export async function printProjects(admin: Admin, { print }: Terminal): Promise<void> {
  const rows: string[][] = [];
  for await (const { projects } of admin.listProjects({})) {
    for (const { id, name, createTime, keyCount, formCount } of projects) {
      rows.push([id, day(createTime), String(keyCount), String(formCount), name]);
    }
  }
  printTable([['ID', 'CREATED', 'KEYS', 'FORMS', 'NAME'], ...rows], print);
}

/** Lists the webhooks that fail, or were turned off since they failed. */
export async function printFailingWebhooks(admin: Admin, { print }: Terminal): Promise<void> {
  const rows: string[][] = [];
  for await (const { webhooks } of admin.listFailingWebhooks({})) {
    for (const { id, project, host, failingSince, openUntil, disabledReason, error } of webhooks) {
      const next = disabledReason === '' ? minute(openUntil) : 'off';
      rows.push([id, project, host, minute(failingSince), next, [disabledReason, error].join(' ').trim()]);
    }
  }
  printTable([['ID', 'PROJECT', 'HOST', 'FAILING SINCE', 'TRIED AGAIN', 'LAST ERROR'], ...rows], print);
}

function minute(time: Timestamp | undefined): string {
  return time === undefined
    ? '-'
    : timestampDate(time)
        .toISOString()
        .replace(/:\d\d\.\d+Z$/, 'Z');
}

/** The widths are those of what is printed. */
export function printTable(cells: string[][], print: (line: string) => void): void {
  const rows = cells.map((row) => row.map(printable));
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) {
    print(
      row
        .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

function day(time: Timestamp | undefined): string {
  return time === undefined ? 'never' : timestampDate(time).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

/**
 * Erases a project: revokes its keys, and deletes its forms with everything of them; the name alone stays. With a
 * value, it erases what names somebody by it: submissions and sessions in which it is an answer, or another text, as
 * a whole.
 *
 * @throws RefusedError without `isConfirmed`: nothing brings back what is erased.
 */
export async function erase(
  admin: Admin,
  { project, value, includeMentions, isConfirmed }: Erasure,
  terminal: Terminal,
): Promise<void> {
  if (!isConfirmed) {
    const what =
      value === undefined
        ? `Everything in the project ${project} will be permanently deleted, and its keys revoked.`
        : `Every submission and session in the project ${project} that contains ${value} will be permanently deleted.`;
    throw new RefusedError(`${what} If that is meant, add --yes.`);
  }
  if (value === undefined) await eraseProject(admin, project, terminal);
  else await eraseValue(admin, { project, value, includeMentions }, terminal);
}

type Erasure = { project: string; value: string | undefined; includeMentions: boolean; isConfirmed: boolean };

async function eraseProject(admin: Admin, project: string, { note, now }: Terminal): Promise<void> {
  const progress = createProgress(note, now);
  let submissions = 0;
  for await (const { removed } of admin.eraseProject({ project })) {
    submissions += removed;
    progress(() => `Erasing ${project}: ${submissions} submissions deleted`);
  }
  note(`Erased ${project}: ${submissions} submissions, with its forms, webhooks, files and keys.`);
}

async function eraseValue(
  admin: Admin,
  { project, value, includeMentions }: { project: string; value: string; includeMentions: boolean },
  { note, now }: Terminal,
): Promise<void> {
  const progress = createProgress(note, now);
  let submissions = 0;
  let sessions = 0;
  let searched = 0;
  let mentions = 0;
  for await (const step of admin.eraseValue({ project, value, includeMentions })) {
    submissions += step.submissions;
    sessions += step.sessions;
    searched += step.searched;
    for (const one of step.mentions?.first ?? [])
      note(`${one.submissionId} of ${one.formId} mentions it in ${one.fieldId}`);
    mentions += step.mentions?.count ?? 0;
    progress(() => `Searching ${project}: ${submissions} submissions and ${sessions} sessions deleted`);
  }
  note(
    `Searched ${searched} rows of ${project}. Deleted ${submissions} submissions and ${sessions} sessions, with their files and deliveries.`,
  );
  if (mentions > 0)
    note(`${mentions} answers mention it and were left. Read them, or add --include-mentions.`);
}
