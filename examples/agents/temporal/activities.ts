import { ask } from '../forms.ts';

/** The callback's URL names the workflow, so that `callback.ts` knows whom to signal. A retry asks nothing twice. */
export function askPerson(workflowId: string, label: string) {
  return ask(`temporal ${workflowId}`, label, { url: `${process.env.CALLBACKS}/${workflowId}` });
}
