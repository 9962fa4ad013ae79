import { Migration } from '@mikro-orm/migrations';
import { type Contract, firstContract, nextContract } from '../../domain/contracts/contract.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';

/**
 * Gives the fields of published versions their numbers, those of each form in the order of its versions. A version that
 * an older release publishes beside this one has none until they are asked for: they follow from its predecessor.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class FieldNumbers extends Migration {
  override async up(): Promise<void> {
    await this.execute('alter table "form_versions" add "contract" json null');
    let before: Numbered | undefined;
    for (let place = `('', 0)`; ; ) {
      const rows = await this.execute(
        `select "form_id", "number", "definition" from "form_versions" where ("form_id", "number") > ${place}
         order by "form_id", "number" limit ${DEFINITIONS_AT_ONCE}`,
      );
      for (const row of rows) {
        const { form_id: formId, number, definition } = row as PublishedRow;
        const { name = '', fields = [] } = definition;
        const asked = { name, fields };
        const contract: Contract =
          before?.formId === formId ? nextContract(before, asked) : firstContract(formId, asked);
        before = { formId, definition: asked, contract };
        // Ids and names of fields have letters, digits, "_" and "-" alone.
        await this.execute(
          `update "form_versions" set "contract" = '${JSON.stringify(contract)}'
           where "form_id" = '${formId}' and "number" = ${number}`,
        );
        place = `('${formId}', ${number})`;
      }
      if (rows.length < DEFINITIONS_AT_ONCE) return;
    }
  }
}

/** Each can have 256 KiB. */
const DEFINITIONS_AT_ONCE = 100;

type PublishedRow = { form_id: string; number: number; definition: Partial<FormDefinition> };

type Numbered = { formId: string; definition: Pick<FormDefinition, 'name' | 'fields'>; contract: Contract };
