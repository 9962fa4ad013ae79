import { ChangeKind, Consumer } from '../../../gen/headlessforms/v1/changes_pb.js';
import type { Step } from './plan.ts';

/** A plan for people, as a diff: what is new, changed and gone, and whom that breaks. */
export function describePlan(steps: readonly Step[]): string[] {
  const changing = steps.filter(({ action }) => action !== 'none');
  const counted = `${changing.length} of ${steps.length} forms change`;
  const breaking = changing.filter(isBreaking).length;
  const summary = breaking > 0 ? `${counted}, ${breaking} of them break something.` : `${counted}.`;
  return [...changing.flatMap(describeStep), summary];
}

/** Whether somebody who relies on the form may fail. */
export function isBreaking({ action, changes }: Step): boolean {
  return action === 'archive' || changes.some(({ breaks }) => breaks.length > 0);
}

/** A step for machines, in the words of the REST interface. */
export function stepToJson({ action, key, file, form, changes, beside, isRefused, ...step }: Step): object {
  return {
    key,
    file: file?.path ?? null,
    form_id: form?.id ?? null,
    action,
    breaking: isBreaking({ action, key, changes, beside, isRefused, ...step }),
    refused: isRefused,
    changes: changes.map((change) => ({
      path: change.path,
      kind: kindOf(change.kind),
      breaks: change.breaks.map(consumerOf),
      open_sessions: change.openSessions,
      webhooks: change.webhooks,
    })),
    beside,
  };
}

function describeStep({ action, key, file, form, changes, beside, isRefused }: Step): string[] {
  return [
    `${signs[action]} ${key}: ${action}${file === undefined ? ` ${form?.id ?? ''}` : ` (${file.path})`}`,
    ...changes.map(({ path, kind, breaks, openSessions, webhooks }) => {
      const name = kindOf(kind);
      const sign = name.endsWith('_added') ? '+' : name.endsWith('_removed') ? '-' : '~';
      const broken = breaks.length > 0 ? `, breaks ${breaks.map(consumerOf).join(', ')}` : '';
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

function kindOf(kind: ChangeKind): string {
  return ChangeKind[kind].toLowerCase();
}

function consumerOf(consumer: Consumer): string {
  return Consumer[consumer].toLowerCase();
}
