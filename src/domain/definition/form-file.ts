import { z } from 'zod';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import { type Violation, violationsOf } from '../errors/violations.ts';
import { isObject } from '../json/json.ts';
import { optional } from '../json/optional.ts';
import { formKeyPattern, formLimits } from '../limits/limits.ts';
import { type FormDefinition as CheckedDefinition, checkDefinition, definitionSchema } from './definition.ts';
import { definitionToMessage } from './definition-proto.ts';
import { emailAddress, takingPrivateReceivers } from './delivery.ts';
import { warningsOf } from './share.ts';

/** What stands beside a definition: outside its JSON, versions and checksum. */
export const formNames = {
  key: optional(
    z.string().regex(formKeyPattern),
    'What names the form in files, unique in the project. Needs an API key.',
  ),
  managed_by: optional(
    z.string().min(1).max(formLimits.managedBy),
    'Who keeps the definition, such as a folder of files. Needs an API key.',
  ),
};

const besideDefinition = {
  $schema: optional(z.string(), 'For editors; ignored.'),
  key: formNames.key.describe('What names the form. Default: the name of the file.'),
  owner: optional(emailAddress, 'Who owns the form once the address confirms. Absent: as it is.'),
  managed_by: optional(
    z.string().max(formLimits.managedBy),
    'Who keeps the form. Default: the folder; empty: as it is.',
  ),
};

const besideSchema = z.strictObject(besideDefinition);

/**
 * Checks what a file says of a form, as far as that can be known without the service. Returns all problems at once.
 *
 * The secret of a webhook is the name of an environment variable, which is returned beside the definition.
 */
export function readFormFile(input: unknown): FormFileResult {
  const entries = isObject(input) ? Object.entries(input) : [];
  const isBeside = ([name]: [string, unknown]) => Object.hasOwn(besideDefinition, name);
  const given = Object.fromEntries(entries.filter(isBeside));
  const rest = Object.fromEntries(entries.filter((entry) => !isBeside(entry)));
  const beside = besideSchema.safeParse(given);
  const { secret, ...delivery } = isObject(rest.delivery) ? rest.delivery : {};
  const [, secretVariable] = (typeof secret === 'string' && variablePattern.exec(secret)) || [];
  if (secretVariable !== undefined) rest.delivery = delivery;
  const isLiteral = secret !== undefined && secretVariable === undefined;
  const checked = checkDefinition(isObject(input) ? rest : input, {
    keyless: false,
    allowPrivateUrls: true,
    keptUrl: '',
  });
  if (beside.success && checked.definition !== undefined && !isLiteral) {
    const { key, owner = '', managed_by: managedBy } = beside.data;
    return {
      ok: true,
      key,
      owner,
      managedBy,
      secretVariable,
      definition: definitionToMessage(checked.definition),
      checked: checked.definition,
      warnings: warningsOf(checked.definition),
      outdated: checked.ok ? [] : checked.violations,
    };
  }
  const literal: Violation = { path: 'delivery.secret', code: 'custom', message: NO_LITERAL };
  const violations = [
    ...(beside.success ? [] : violationsOf(beside.error, given)),
    ...(checked.ok ? [] : checked.violations.filter(({ path }) => !isLiteral || path !== literal.path)),
    ...(isLiteral ? [literal] : []),
  ];
  return { ok: false, violations };
}

/** A JSON Schema of files, for editors. `allowPrivateUrls`: of an instance that sends events to private addresses. */
export function formFileJsonSchema({ allowPrivateUrls }: { allowPrivateUrls: boolean }): object {
  return z.toJSONSchema(definitionSchema.extend(besideDefinition), {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      if (allowPrivateUrls) takingPrivateReceivers(jsonSchema);
      const { properties } = jsonSchema;
      if (properties?.secret === undefined) return;
      properties.secret = { type: 'string', pattern: variablePattern.source, description: NO_LITERAL };
    },
  });
}

const variablePattern = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;
const NO_LITERAL = `Name the environment variable that holds the secret: "\${WEBHOOK_SECRET}"`;

export type FormFileResult = (FormFileContent & { ok: true }) | { ok: false; violations: Violation[] };

export type FormFileContent = {
  key: string | undefined;
  /** Empty: as it is. */
  owner: string;
  managedBy: string | undefined;
  secretVariable: string | undefined;
  definition: FormDefinition;
  /** The same, as answers are checked by it. */
  checked: CheckedDefinition;
  /** What is allowed, and likely a mistake. */
  warnings: string[];
  /** What is refused unless it is published already. */
  outdated: Violation[];
};
