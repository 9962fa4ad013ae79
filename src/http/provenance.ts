import { AnswerChannel, type AnswerOrigin, type Submission } from '../../gen/forms/v1/submissions_pb.js';
import { answerChannels } from '../domain/answers/provenance.ts';
import { timeOf } from './values.ts';

/** Where answers come from, as the property of a reply; none if nothing is known of it. */
export function provenanceOf(message: Pick<Submission, 'provenance'>): {
  provenance?: Record<string, Origin>;
} {
  const entries = Object.entries(message.provenance);
  if (entries.length === 0) return {};
  const known = new Map<AnswerOrigin, Origin>();
  for (const [, origin] of entries) if (!known.has(origin)) known.set(origin, originOf(origin));
  return {
    provenance: Object.fromEntries(
      entries.map(([id, origin]) => [id, known.get(origin) ?? originOf(origin)]),
    ),
  };
}

function originOf({ by, answerTime, keyId }: AnswerOrigin): Origin {
  return {
    by: answerChannels.find((name) => channels[name] === by) ?? 'api',
    at: timeOf(answerTime),
    ...(keyId !== '' && { key_id: keyId }),
  };
}

const channels = {
  human: AnswerChannel.HUMAN,
  api: AnswerChannel.API,
  prefill: AnswerChannel.PREFILL,
  default: AnswerChannel.DEFAULT,
} satisfies Record<(typeof answerChannels)[number], AnswerChannel>;

/** `at` is ISO 8601 in UTC; `key_id` is that of the project's key that brought the answer, if one did. */
type Origin = { by: (typeof answerChannels)[number]; at: string; key_id?: string };
