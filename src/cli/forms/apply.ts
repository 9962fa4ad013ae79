import { ChangeKind, Consumer } from '../../../gen/headlessforms/v1/changes_pb.js';
import { ApplyOutcome } from '../../../gen/headlessforms/v1/forms_pb.js';
import { enumName } from '../../domain/enums.ts';
import { RefusedError, reasonInWords } from '../terminal.ts';
import { type FormFile, readFormFiles, refuseAll } from './files.ts';
import { type Forms, planForms, type Step } from './plan.ts';

/** Prints what would change. Returns the exit code: 0 for nothing, 2 for changes, 3 if they break something. */
export async function plan(options: PlanOptions): Promise<number> {
  const steps = await stepsOf(options);
  if (options.json) options.print(JSON.stringify({ forms: steps.map(stepToJson) }));
  else for (const line of describePlan(steps)) options.print(line);
  if (steps.some(isBreaking)) return 3;
  return steps.some(isChange) ? 2 : 0;
}

/**
 * Shows what changes, asks, and does it form by form. What one form can't become stops no other; the report says which
 * were applied, and another run does the rest. Returns the exit code: 1 if a form failed.
 */
export async function apply({ allowBreaking, confirm, ...options }: ApplyOptions): Promise<number> {
  const { client, json, print } = options;
  const steps = await stepsOf(options);
  if (!json) for (const line of describePlan(steps)) print(line);
  const refused = allowBreaking ? [] : steps.filter(({ isRefused }) => isRefused);
  refuseAll(refused.map(({ key }) => `${key}: breaks what the form promises: give --allow-breaking`));
  if (steps.some(isChange) && !(await confirm())) throw new RefusedError('Nothing was applied.');

  const applied: object[] = [];
  let failures = 0;
  for (const step of steps) {
    const result = isChange(step) ? await applyStep(client, step, allowBreaking) : { outcome: 'unchanged' };
    const { outcome, error } = result;
    if (error !== undefined) failures += 1;
    applied.push({ ...stepToJson(step), ...result });
    if (!json && isChange(step)) print(`${step.key}: ${error === undefined ? outcome : `failed: ${error}`}`);
  }
  if (json) print(JSON.stringify({ forms: applied }));
  else if (failures > 0) print(`${failures} forms failed. Apply again for the rest.`);
  return failures > 0 ? 1 : 0;
}

async function stepsOf({ client, folder, managedBy, prune, env }: PlanOptions): Promise<Step[]> {
  const files = await readFormFiles(folder, managedBy);
  return planForms(client, files, { managedBy, prune, env });
}

function isChange({ action }: Step): boolean {
  return action !== 'none';
}

async function applyStep(client: Forms, step: Step, allowBreaking: boolean): Promise<Result> {
  const { file, form } = step;
  try {
    if (file === undefined) {
      await client.archiveForm({ formId: form?.id ?? '' });
      return { outcome: 'archived' };
    }
    const { outcome, form: now } = await client.applyForm(requestOf(step, file, allowBreaking));
    return { outcome: ApplyOutcome[outcome].toLowerCase(), form_id: now?.id ?? '' };
  } catch (error) {
    return { outcome: 'failed', error: reasonInWords(error) };
  }
}

/** Publishes only over the version that the plan was made from. */
function requestOf(
  { definition, form, changes }: Step,
  { key, owner, managedBy }: FormFile,
  allowBreaking: boolean,
) {
  const expectedVersionId = changes.length > 0 ? (form?.currentVersionId ?? '') : '';
  return { key, owner, managedBy, allowBreaking, expectedVersionId, ...(definition && { definition }) };
}

/** A plan for people, as a diff: what is new, changed and gone, and whom that breaks. */
function describePlan(steps: readonly Step[]): string[] {
  const changing = steps.filter(({ action }) => action !== 'none');
  const counted = `${changing.length} of ${steps.length} forms change`;
  const breaking = changing.filter(isBreaking).length;
  const summary = breaking > 0 ? `${counted}, ${breaking} of them break something.` : `${counted}.`;
  const warnings = steps.flatMap(({ key, file }) =>
    (file?.warnings ?? []).map((warning) => `! ${key}: ${warning}`),
  );
  return [...changing.flatMap(describeStep), ...warnings, summary];
}

/** Whether somebody who relies on the form may fail. */
function isBreaking({ action, changes }: Step): boolean {
  return action === 'archive' || changes.some(({ breaks }) => breaks.length > 0);
}

/** A step for machines, in the words of the REST interface. */
function stepToJson({ action, key, file, form, changes, beside, isRefused, ...step }: Step): object {
  return {
    key,
    file: file?.path ?? null,
    form_id: form?.id ?? null,
    action,
    breaking: isBreaking({ action, key, changes, beside, isRefused, ...step }),
    refused: isRefused,
    changes: changes.map((change) => ({
      path: change.path,
      kind: enumName(ChangeKind, change.kind),
      breaks: change.breaks.map((consumer) => enumName(Consumer, consumer)),
      open_sessions: change.openSessions,
      webhooks: change.webhooks,
    })),
    beside,
    warnings: file?.warnings ?? [],
  };
}

function describeStep({ action, key, file, form, changes, beside, isRefused }: Step): string[] {
  return [
    `${signs[action]} ${key}: ${action}${file === undefined ? ` ${form?.id ?? ''}` : ` (${file.path})`}`,
    ...changes.map(({ path, kind, breaks, openSessions, webhooks }) => {
      const name = enumName(ChangeKind, kind) ?? '';
      const sign = name.endsWith('_added') ? '+' : name.endsWith('_removed') ? '-' : '~';
      const broken =
        breaks.length > 0
          ? `, breaks ${breaks.map((consumer) => enumName(Consumer, consumer)).join(', ')}`
          : '';
      const open = openSessions > 0 ? `, open sessions with it: ${openSessions}` : '';
      const named = webhooks > 0 ? `, webhook templates with it: ${webhooks}` : '';
      return `    ${sign} ${path}: ${name.replaceAll('_', ' ')}${broken}${open}${named}`;
    }),
    ...beside.map(({ name, from, to }) => `    ~ ${name}: ${from || 'nobody'} -> ${to}`),
    ...(isRefused ? ['    ! The form promises to stay compatible: apply it with --allow-breaking'] : []),
  ];
}

const signs: Record<Step['action'], string> = {
  create: '+',
  publish: '+',
  update: '~',
  archive: '-',
  none: ' ',
};

type Result = { outcome: string; form_id?: string; error?: string };

export type PlanOptions = {
  client: Forms;
  folder: string;
  /** Who keeps the forms of the folder. */
  managedBy: string;
  /** Whether forms of the folder that are gone are archived. */
  prune: boolean;
  /** Whether the result is JSON. */
  json: boolean;
  env: NodeJS.ProcessEnv;
  print: (line: string) => void;
};

export type ApplyOptions = PlanOptions & {
  /** Whether also what a form's `compatibility` refuses is published. */
  allowBreaking: boolean;
  /** Whether the plan, which was printed, is wanted. */
  confirm: () => Promise<boolean>;
};
