/**
 * A queue in which projects take turns, and within a project its forms: nobody waits longer because another has
 * much to do.
 */
export function createFairQueue<T>(): FairQueue<T> {
  const projects = new Map<string, Map<string, T[]>>();

  return {
    push({ project, form }, item) {
      const forms = projects.get(project) ?? new Map<string, T[]>();
      const items = forms.get(form) ?? [];
      if (items.length >= MAX_OF_FORM || count(forms) >= MAX_OF_PROJECT) return false;
      items.push(item);
      forms.set(form, items);
      projects.set(project, forms);
      return true;
    },
    shift() {
      const [turn] = projects;
      if (turn === undefined) return undefined;
      const [project, forms] = turn;
      projects.delete(project);
      const item = takeTurn(forms);
      if (forms.size > 0) projects.set(project, forms);
      return item;
    },
    size: () => [...projects.values()].reduce((total, forms) => total + count(forms), 0),
  };
}

/** The form that was served goes to the end. */
function takeTurn<T>(forms: Map<string, T[]>): T | undefined {
  const [turn] = forms;
  if (turn === undefined) return undefined;
  const [form, items] = turn;
  forms.delete(form);
  const item = items.shift();
  if (items.length > 0) forms.set(form, items);
  return item;
}

function count(forms: Map<string, unknown[]>): number {
  return [...forms.values()].reduce((total, items) => total + items.length, 0);
}

/** What one form and one project may have waiting: an item can take seconds, so that more would wait in vain. */
const MAX_OF_FORM = 4;
const MAX_OF_PROJECT = 32;

export type FairQueue<T> = {
  /** False if too many of this form or project wait. */
  push: (owner: Owner, item: T) => boolean;
  shift: () => T | undefined;
  size: () => number;
};

/** Who takes turns. */
export type Owner = { project: string; form: string };
