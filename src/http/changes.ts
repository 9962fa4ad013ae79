import { z } from 'zod';
import { DefinitionChangeSchema } from '../../gen/headlessforms/v1/changes_pb.js';
import { changeKinds, consumers } from '../domain/contracts/change-kinds.ts';
import { from, shape } from './shape.ts';

/** A change of a form's definition, in replies and errors. */
export const change = shape(DefinitionChangeSchema, 'DefinitionChange', {
  path: z
    .string()
    .describe('Where it is in the definition, fields by their ids: `fields.email`, `settings.publicPage`.'),
  kind: z.enum(Object.keys(changeKinds) as [keyof typeof changeKinds]),
  breaks: from(
    ({ breaks }) => breaks.flatMap((number) => consumers[number - 1] ?? []),
    z.array(z.enum(consumers)).describe('Who may fail because of it.'),
  ),
  backward_compatible: z.boolean().describe('Whether every answer that was valid stays valid.'),
  forward_compatible: z.boolean().describe('Whether readers of the former version can read the new answers.'),
  open_sessions: z
    .int()
    .describe('How many open sessions ask the field. They keep the version they began with.'),
  webhooks: z.int().describe('How many webhooks name the field in their template.'),
  webhook_ids: z.array(z.string()).describe('Their ids, at most 20, for keys with `webhooks:read`.'),
});
