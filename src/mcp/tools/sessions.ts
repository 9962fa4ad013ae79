import { z } from 'zod';
import { type Session, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { type Submission, SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { waitSeconds } from '../../domain/limits/limits.ts';
import { briefSession } from '../../http/sessions.ts';
import { present } from '../../http/shape.ts';
import { defineTool, jsonObject, type RequestContext, type Tool, type ToolOutcome } from '../tool.ts';
import { answers, language, sessionId } from './schemas.ts';

const { method: rpcs } = SessionsService;

/** What is known of a session and, once it is submitted, of its answers. */
export const sessionOutput = z.looseObject({ ...briefSession.schema.shape, ...answers.schema.shape });

/** The tools that follow sessions. */
export const sessionTools: Tool[] = [
  defineTool({
    name: 'get_session',
    title: 'Read a session',
    description:
      'Tells where a session stands, with the answers once it is submitted. With include_questions, also what is ' +
      'left to be answered while it is open.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.getSession]],
    input: z.strictObject({ session_id: sessionId, include_questions: z.boolean().default(false), language }),
    output: sessionOutput.extend({
      questions: z.array(z.string()).optional(),
      json_schema: jsonObject.optional(),
    }),
    async run({ session_id: id, include_questions: withQuestions, language: wanted }, exchange) {
      const { call } = exchange;
      const read = await call(rpcs.getSession, { sessionId: id });
      const outcome = outcomeOf(read, exchange);
      if (!withQuestions || outcome.facts.status !== 'open') return outcome;
      const { schema } = await call(rpcs.getSessionAgentSchema, { sessionId: id, language: wanted });
      const { questions, jsonSchema } = present(schema);
      return {
        ...outcome,
        facts: {
          ...outcome.facts,
          questions: questions.map(({ text }) => text),
          json_schema: jsonSchema ?? {},
        },
        untrusted: [...(outcome.untrusted ?? []), 'questions', 'json_schema'],
      };
    },
  }),
  defineTool({
    name: 'wait_for_session',
    title: 'Wait for a person',
    description:
      'Waits until a session is submitted, declined, expires or is cancelled, and returns the answers; still open after ' +
      'timeout seconds: call it again, as often as it takes.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
    rpcs: [[rpcs.awaitSession]],
    input: z.strictObject({
      session_id: sessionId,
      timeout: z
        .int()
        .min(waitSeconds.min)
        .max(waitSeconds.max)
        .default(waitSeconds.default)
        .describe('Seconds; less than your client waits for a tool.'),
    }),
    output: sessionOutput,
    run: ({ session_id: id, timeout }, exchange) => waitFor(id, timeout, exchange),
  }),
  defineTool({
    name: 'cancel_session',
    title: 'Cancel a session',
    description: "Ends an open session: its link takes no answers any more. This can't be undone.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
    rpcs: [[rpcs.cancelSession]],
    input: z.strictObject({ session_id: sessionId }),
    output: sessionOutput,
    async run({ session_id: id }, exchange) {
      return outcomeOf(await exchange.call(rpcs.cancelSession, { sessionId: id }), exchange);
    },
  }),
];

/** Waits for the end of a session, and tells what came of it. */
export async function waitFor(id: string, seconds: number, exchange: Waiting): Promise<ToolOutcome> {
  const wait = { sessionId: id, timeout: { seconds: BigInt(seconds) } };
  const reply = await exchange.call(rpcs.awaitSession, wait, { waits: exchange.until ?? true });
  return outcomeOf(reply, exchange);
}

/** `until` ends the wait with a failure. */
type Waiting = RequestContext & { until?: AbortSignal };

/** Where a session stands, with the answers once it is submitted, and what to do next. */
export function outcomeOf(
  { session: read, submission }: { session?: Session | undefined; submission?: Submission | undefined },
  { mayCall }: Pick<RequestContext, 'mayCall'>,
): ToolOutcome {
  const facts = briefSession.of(read);
  switch (facts.status) {
    case 'open':
      return {
        facts,
        next: ['The person has not submitted yet: wait_for_session with this session_id waits for it.'],
      };
    case 'expired':
      return {
        facts,
        next: ['It expired without an answer: do not assume consent. ask_person opens another.'],
      };
    case 'declined':
      return {
        facts,
        next: ['The person declined to answer: do not assume consent, and do not ask again unless told to.'],
        ...(facts.reason !== undefined && { untrusted: ['reason'] }),
      };
    case 'cancelled':
      return { facts, next: ['It was cancelled without an answer: do not assume consent.'] };
    case 'submitted':
      break;
    default:
      return facts.status satisfies never;
  }
  if (submission !== undefined) {
    return { facts: { ...facts, ...answers.of(submission) }, untrusted: ['answers'] };
  }
  if (mayCall(SubmissionsService.method.getSubmission)) {
    return { facts, next: ['It was submitted, and its answers have been deleted since.'] };
  }
  return {
    facts,
    next: ['It is submitted. This key may not read the answers: that needs the scope submissions:read.'],
  };
}
