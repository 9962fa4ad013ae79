import { firstContract, nextContract } from '../../domain/contracts/contract.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import type { TableChange } from './table-change.ts';

/**
 * Gives the fields of published versions their numbers, those of each form in the order of its versions. A version that
 * an older release publishes beside this one has none until they are asked for: they follow from its predecessor.
 *
 * Unlike other migrations it uses the code of the domain, and no copy of it. Nobody knows a number or a name before it
 * has run, so it may give others after a change of that code. The code reads definitions of all ages in any case, since
 * published ones never change. What is stored has the shape that it has here, which the compiler compares.
 */
export const fieldNumbers: TableChange = {
  name: '2026-11-24-field-numbers',
  async run(execute) {
    await execute('alter table "form_versions" add "contract" json null');
    let before: Numbered | undefined;
    for (let place = `('', 0)`; ; ) {
      const rows = await execute(
        `select "form_id", "number", "definition" from "form_versions" where ("form_id", "number") > ${place}
         order by "form_id", "number" limit ${DEFINITIONS_AT_ONCE}`,
      );
      for (const row of rows) {
        const { form_id: formId, number, definition } = row as PublishedRow;
        const { name = '', fields = [] } = definition;
        const asked = { name, fields };
        const contract: StoredContract =
          before?.formId === formId ? nextContract(before, asked) : firstContract(formId, asked);
        before = { formId, definition: asked, contract };
        // Ids and names of fields have letters, digits, "_" and "-" alone.
        await execute(
          `update "form_versions" set "contract" = '${JSON.stringify(contract)}'
           where "form_id" = '${formId}' and "number" = ${number}`,
        );
        place = `('${formId}', ${number})`;
      }
      if (rows.length < DEFINITIONS_AT_ONCE) return;
    }
  },
};

/** Each can have 256 KiB. */
const DEFINITIONS_AT_ONCE = 100;

type PublishedRow = { form_id: string; number: number; definition: Partial<FormDefinition> };

type Numbered = {
  formId: string;
  definition: Pick<FormDefinition, 'name' | 'fields'>;
  contract: StoredContract;
};

type StoredContract = {
  package: string;
  message: string;
  nextNumber: number;
  fields: { [fieldId: string]: { number: number; name: string } };
};
