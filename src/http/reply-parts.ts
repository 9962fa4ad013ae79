import { z } from 'zod';
import { DefinitionChangeSchema } from '../../gen/headlessforms/v1/changes_pb.js';
import {
  AnswerChannel,
  type AnswerOrigin,
  AnswerOriginSchema,
  type Submission,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { answerChannels } from '../domain/answers/provenance.ts';
import { changeKinds, consumers } from '../domain/contracts/field-changes.ts';
import { enumValue } from '../domain/enums.ts';
import { optional } from '../domain/json/optional.ts';
import { from, shape, timeReply } from './shape.ts';

const channels = new Map(answerChannels.map((name) => [enumValue(AnswerChannel, name), name]));

const origin = shape(AnswerOriginSchema, 'AnswerOrigin', {
  by: from(
    ({ by }) => channels.get(by) ?? 'api',
    z
      .enum(answerChannels)
      .describe(
        '`human`: from the hosted page, where anyone with the link can answer. `api`: by a call or an HTML form. ' +
          '`prefill`: left as it was. `default`: the field’s. `mcp_user`: as an MCP client says, by its user.',
      ),
  ),
  at: from('answer_time', timeReply),
  verified: optional(
    z.literal(true),
    'By a person who gave a code emailed to their address: the submission’s `respondent`.',
  ),
  key_id: optional(z.string(), 'The key that brought it, if one of the project did.'),
});

/** Where answers come from, as replies have it, by field id. */
export const provenance = z.record(z.string(), origin.schema);

/** Where the answers of a message come from; undefined if nothing is known of it. */
export function readProvenance({ provenance: origins }: Pick<Submission, 'provenance'>) {
  let last: AnswerOrigin | undefined;
  let reply: z.input<typeof origin.schema> | undefined;
  const replies: z.input<typeof provenance> = {};
  for (const id in origins) {
    const each = origins[id];
    if (each === undefined) continue;
    // Answers that came together share an origin.
    if (reply === undefined || each !== last) reply = origin.of(each);
    last = each;
    replies[id] = reply;
  }
  return reply && replies;
}

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
