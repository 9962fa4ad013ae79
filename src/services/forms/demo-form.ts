import { checkDefinition, type FormDefinition } from '../../domain/definition/definition.ts';
import { demoFormId } from '../../domain/ids.ts';
import { findAnyForm, insertForm } from '../../store/forms/forms.ts';
import { publishFirstVersion } from '../../store/forms/versions.ts';
import { lockProject } from '../../store/projects/projects.ts';
import type { ServiceContext } from '../context.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { newForm, newVersion } from './form-rows.ts';

/**
 * Makes sure that there is the form behind `POST /api/demo`, published, in a project of its own.
 * It has no owner's address: its email goes to the operator.
 */
export async function ensureDemoForm({
  database,
  now,
}: Pick<ServiceContext, 'database' | 'now'>): Promise<void> {
  if ((await findAnyForm(database, demoFormId)) !== null) return;
  const { id: projectId } = await projectNamed(database, DEMO_PROJECT, now());
  const definition = demoDefinition();
  const at = new Date(now());

  await database.transaction(async (tx) => {
    // Instances that start at once take turns here; the second one finds the form made.
    await lockProject(tx, projectId);
    if ((await findAnyForm(tx, demoFormId)) !== null) return;
    await insertForm(tx, newForm(definition, { id: demoFormId, projectId, createdBy: 'system' }, at));
    const version = newVersion(definition, at);
    await publishFirstVersion(tx, { formId: demoFormId, key: null, ownerEmail: '', version });
  });
}

function demoDefinition(): FormDefinition {
  const checked = checkDefinition(
    {
      name: 'Demo',
      slug: 'demo',
      fields: [
        { id: 'name', type: 'text', maxLength: 200 },
        { id: 'email', type: 'email', required: true },
        { id: 'message', type: 'textarea', required: true },
      ],
      delivery: { type: 'email', replyTo: 'email' },
    },
    { keyless: true, allowPrivateUrls: false },
  );
  if (!checked.ok) throw new TypeError(`The demo form is not valid: ${JSON.stringify(checked.violations)}`);
  return checked.definition;
}

/** A key of this project, which a `*` key of the default project can make, reads what was sent. */
const DEMO_PROJECT = 'demo';
