import {
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequiredResult,
  inputRequired,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Session, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { sessionSeconds } from '../../domain/limits/limits.ts';
import { durationOf, present } from '../../http/shape.ts';
import { defineTool, jsonObject, type Outcome, type ToolContext } from '../tool.ts';
import { formId, idempotencyKey, session } from './schemas.ts';
import { outcomeOf, sessionOutput, waitFor } from './sessions.ts';

const { method: rpcs } = SessionsService;

/** The tool that hands questions over to a person. */
export const askPerson = defineTool({
  name: 'ask_person',
  title: 'Ask a person',
  description:
    'Opens a session of a published form for a person, with what you know as prefill, and returns its link and, once ' +
    'the person has submitted, the answers. Clients that can show the link do; else show the url to the person ' +
    'yourself and call wait_for_session. Use it for fields that only a person may answer, and for consent.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  rpcs: [[rpcs.createSession, rpcs.awaitSession]],
  input: z.strictObject({
    form_id: formId,
    prefill: jsonObject
      .exactOptional()
      .describe('Answers that you know, by field id; the person sees and can change them.'),
    message: z
      .string()
      .min(1)
      .max(500)
      .default('Please answer the questions on this page.')
      .describe('What to tell the person beside the link.'),
    expires_in: z
      .int()
      .min(sessionSeconds.min)
      .max(sessionSeconds.max)
      .default(sessionSeconds.default)
      .describe('Seconds until the link stops working.'),
    metadata: jsonObject
      .exactOptional()
      .describe('Data of yours, up to 16 KiB; it comes with the submission.'),
    return_url: z.string().min(1).exactOptional().describe('HTTPS. Where the person goes after submitting.'),
    idempotency_key: idempotencyKey,
  }),
  output: sessionOutput,
  async run(input, exchange, { mcpReq }) {
    const asked = mcpReq.requestState<PendingLink>();
    if (asked !== undefined) return answerOf(asked, mcpReq.inputResponses?.[LINK], exchange);
    const { session } = await exchange.call(rpcs.createSession, {
      subject: { case: 'formId', value: input.form_id },
      ...(input.prefill && { prefill: input.prefill }),
      ...(input.metadata && { metadata: input.metadata }),
      expiresIn: durationOf(input.expires_in),
      returnUrl: input.return_url ?? '',
      idempotencyKey: input.idempotency_key ?? '',
    });
    const opened = present(session);
    return showsLinks(mcpReq) ? linkFor(opened, input.message, exchange) : linkToShow(opened);
  },
});

/**
 * Reads what the client sends back with the person's response. Throws unless this service has made it for the same
 * key.
 */
export function openPendingLink(sealed: string, { sealer, keyId }: ToolContext): PendingLink {
  const state = pendingLink.parse(JSON.parse(sealer.open(sealed)));
  if (state.key_id !== keyId) throw new Error('The state is that of another key');
  return state;
}

function linkFor({ id, url }: Session, message: string, { sealer, keyId }: ToolContext): InputRequiredResult {
  const state: PendingLink = { purpose: PURPOSE, session_id: id, key_id: keyId };
  return inputRequired({
    inputRequests: { [LINK]: inputRequired.elicitUrl({ message, url }) },
    requestState: sealer.seal(JSON.stringify(state)),
  });
}

function linkToShow(opened: Session): Outcome {
  return {
    facts: session.of(opened),
    next: ['Show the url to the person, then call wait_for_session with this session_id for the answers.'],
  };
}

/**
 * What came of a link that the client has shown. That the person agreed to open it says nothing of the answers, so
 * these are waited for.
 */
async function answerOf(
  { session_id: id }: PendingLink,
  response: unknown,
  exchange: ToolContext,
): Promise<Outcome> {
  const { data: { action } = { action: undefined } } = elicited.safeParse(response);
  if (action === 'accept') return waitFor(id, WAIT_SECONDS, exchange);
  const outcome = await outcomeOf(await exchange.call(rpcs.getSession, { sessionId: id }), exchange);
  if (outcome.facts.status !== 'open') return outcome;
  const words =
    action === undefined
      ? 'The client did not say whether the person opened the link.'
      : 'The person did not open the link.';
  return {
    facts: outcome.facts,
    next: [words, 'The session still waits: wait_for_session waits on, cancel_session ends it.'],
  };
}

/** Whether the client shows links to its user. */
function showsLinks({ envelope }: ServerContext['mcpReq']): boolean {
  return linkCapability.safeParse(envelope).success;
}

/** Names the link among the requests to the client. */
const LINK = 'answers';

/** Sealed text of other uses is worth nothing here. */
const PURPOSE = 'ask_person';

/** Less than the minute that clients wait for a tool. */
const WAIT_SECONDS = 45;

const linkCapability = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({ elicitation: z.looseObject({ url: z.looseObject({}) }) }),
});

const elicited = z.object({ action: z.enum(['accept', 'decline', 'cancel']) });

const pendingLink = z.object({ purpose: z.literal(PURPOSE), session_id: z.string(), key_id: z.string() });

/** What the client keeps while the person answers. */
type PendingLink = z.output<typeof pendingLink>;
