import { z } from 'zod';
import {
  AnswerChannel,
  type AnswerOrigin,
  type Submission,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { answerChannels } from '../domain/answers/provenance.ts';
import { enumValue, timeOf, timeReply } from './shape.ts';

const origin = z
  .object({
    by: z
      .enum(answerChannels)
      .describe(
        '`human`: from the hosted page, where whoever holds the link can answer. `api`: by a call or an HTML form. ' +
          '`prefill`: left as it was. `default`: the field’s. `mcp_user`: as an MCP client says, by its user.',
      ),
    at: timeReply,
    key_id: z.string().exactOptional().describe('The key that brought it, if one of the project did.'),
  })
  .meta({ id: 'AnswerOrigin' });

/** Where answers come from, as replies have it, by field id. */
export const provenance = z.record(z.string(), origin);

/** Where the answers of a message come from; undefined if nothing is known of it. */
export function readProvenance({ provenance: origins }: Pick<Submission, 'provenance'>) {
  let last: AnswerOrigin | undefined;
  let reply: z.input<typeof origin> | undefined;
  const entries = Object.entries(origins).map(([id, each]) => {
    // Answers that came together share an origin.
    if (reply === undefined || each !== last) reply = originOf(each);
    last = each;
    return [id, reply] as const;
  });
  return reply && Object.fromEntries(entries);
}

function originOf({ by, answerTime, keyId }: AnswerOrigin): z.input<typeof origin> {
  return {
    by: channels.get(by) ?? 'api',
    at: timeOf(answerTime),
    ...(keyId !== '' && { key_id: keyId }),
  };
}

const channels = new Map(answerChannels.map((name) => [enumValue(AnswerChannel, name), name]));
