import {
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequiredResult,
  inputRequired,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type Session, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { AnswerChannel } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { restErrorOf } from '../../http/errors.ts';
import { briefSession } from '../../http/sessions.ts';
import { present } from '../../http/shape.ts';
import { elicitationModes } from '../elicitation-modes.ts';
import {
  type ElicitationModes,
  jsonObject,
  type RequestContext,
  type ToolContext,
  type ToolOutcome,
} from '../tool.ts';
import { outcomeOf, waitFor } from './sessions.ts';

const { method: rpcs } = SessionsService;

/**
 * Hands a session over to the person in front of the client: as a form that the client shows itself, else as a link
 * that it opens, else as text with the link for the model to show.
 *
 * Clients of 2026-07-28 call again with the response. Those before send it as a message of its own
 * (`takeResponse`) while the call waits for the session, for less than a minute.
 */
export async function handOver(
  opened: Session,
  message: string,
  tool: ToolContext,
  { mcpReq: { envelope } }: ServerContext,
): Promise<ToolOutcome | InputRequiredResult> {
  const { data } = declared.safeParse(envelope);
  const modes = data ? elicitationModes(data[CLIENT_CAPABILITIES_META_KEY]) : tool.olderClient;
  const elicited = await elicitationFor(opened, message, tool, modes);
  if (elicited === undefined) return linkToShow(opened);
  const { mode, params } = elicited;
  const pending = { purpose: PURPOSE, session_id: opened.id, key_id: tool.keyId, mode } as const;
  const state = tool.sealer.seal(JSON.stringify(pending));
  if (data !== undefined) {
    const request = mode === 'form' ? inputRequired.elicit(params) : inputRequired.elicitUrl(params);
    return inputRequired({ inputRequests: { [REQUEST]: request }, requestState: state });
  }
  const also = mode === 'url' && { elicitationId: state };
  const reacted = new AbortController();
  const onText = (text: string) => {
    if (text.startsWith(`${state} `)) reacted.abort(text.slice(state.length + 1));
  };
  using _following = await tool.reactions.follow({ onText });
  await tool.sendToClient({ id: state, method: 'elicitation/create', params: { mode, ...params, ...also } });
  const wait = { ...tool, until: reacted.signal };
  return await waitFor(opened.id, WAIT_SECONDS, wait).catch((error: unknown) => {
    if (!reacted.signal.aborted) throw error;
    return outcomeAfter(String(reacted.signal.reason), opened.id, tool);
  });
}

/**
 * Reads what the client sends back with the person's response. Throws unless this service has made it for the same
 * key.
 */
export function openPending(sealed: string, { sealer, keyId }: RequestContext): Pending {
  const state = pending.parse(JSON.parse(sealer.open(sealed)));
  if (state.key_id !== keyId) throw new Error('The state is that of another key');
  return state;
}

/** What came of a session whose request the client has answered, in a call again. */
export async function resume(
  { session_id: id, mode }: Pending,
  responses: Record<string, unknown> | undefined,
  tool: ToolContext,
): Promise<ToolOutcome> {
  const reaction = await settle({ id, mode }, responses?.[REQUEST], tool);
  return reaction === undefined ? waitFor(id, WAIT_SECONDS, tool) : outcomeAfter(reaction, id, tool);
}

/** What came of a session, with what the person did in the client where that did not end it. */
async function outcomeAfter(reaction: string, id: string, tool: ToolContext): Promise<ToolOutcome> {
  const outcome = outcomeOf(await tool.call(rpcs.getSession, { sessionId: id }), tool);
  if (outcome.facts.status !== 'open') return outcome;
  return {
    facts: outcome.facts,
    next: [
      reaction,
      'The session is still open: show the url, and call wait_for_session; cancel_session ends it.',
    ],
  };
}

/**
 * Does what a response of a client before 2026-07-28 says: it is no part of a call. The call that waits for the session
 * is told of it. Throws for what is no response to a request of this service to this caller.
 */
export async function takeResponse({ id, result }: ClientResponse, tool: RequestContext): Promise<void> {
  const { session_id, mode } = pendingOf(id, tool);
  const report = (reaction: string) => tool.reactions.sendText(`${id} ${reaction}`);
  const reaction = await settle({ id: session_id, mode }, result, tool).catch((error: unknown) => {
    report(unfit(`could not be taken: ${restErrorOf(error).body.error.message}`));
    throw error;
  });
  if (reaction !== undefined) report(reaction);
}

function pendingOf(id: string, tool: RequestContext): Pending {
  try {
    return openPending(id, tool);
  } catch (cause) {
    throw failed(Reason.BAD_REQUEST, 'This service has not asked the caller for this response', { cause });
  }
}

/**
 * Submits or declines the session as the person did, and says what that was, or what is wrong with the answers.
 * Undefined if the person opened a link, which says nothing of the answers.
 */
async function settle(
  { id, mode }: { id: string; mode: Mode },
  given: unknown,
  { call }: RequestContext,
): Promise<string | undefined> {
  const { data: response } = elicitResult.safeParse(given);
  const reaction = wordsFor[response?.action ?? 'none'];
  if (response?.action === 'decline') {
    const { session: read } = await call(rpcs.getSession, { sessionId: id });
    if (present(read).allowDecline && briefSession.of(read).status === 'open') {
      await call(rpcs.declineSession, { sessionId: id });
    }
  }
  if (response?.action !== 'accept') return reaction;
  if (mode === 'url') return undefined;
  const answers = response.content ?? {};
  try {
    await call(rpcs.submitSession, { sessionId: id, answers, answeredBy: AnswerChannel.MCP_USER });
    return reaction;
  } catch (error) {
    const { reason, body } = restErrorOf(error);
    // Else it has ended meanwhile, and its status says how.
    if (reason === 'invalid') return unfit(`do not fit: ${body.error.message}`);
    if (['conflict', 'expired', 'cancelled', 'declined', 'closed', 'archived'].includes(reason))
      return reaction;
    throw error;
  }
}

/** Short, since it may be told to another process. */
function unfit(why: string): string {
  return `The person's answers ${why.slice(0, 1_000)}. They were not submitted: do not assume consent.`;
}

/** How the client can ask, if it can. */
async function elicitationFor(
  { id, url }: Session,
  message: string,
  { call, mayCall }: ToolContext,
  modes: ElicitationModes | undefined,
): Promise<Elicitation | undefined> {
  if (modes?.form && mayCall(rpcs.getSessionAgentSchema)) {
    const { schema } = await call(rpcs.getSessionAgentSchema, { sessionId: id });
    const { data: requestedSchema } = formSchema.safeParse(schema?.elicitation);
    if (requestedSchema !== undefined) return { mode: 'form', params: { message, requestedSchema } };
  }
  return modes?.url ? { mode: 'url', params: { message, url } } : undefined;
}

function linkToShow(opened: Session): ToolOutcome {
  return {
    facts: briefSession.of(opened),
    next: ['Show the url to the person, then call wait_for_session with this session_id for the answers.'],
  };
}

/** By what the person did. */
const wordsFor = {
  accept: 'The person agreed.',
  decline: 'The person declined in the client: do not assume consent.',
  cancel: 'The person closed the question without an answer: do not assume consent.',
  none: 'The client did not say what the person did, or could not ask: do not assume consent.',
};

/** Names the one request to the client. */
const REQUEST = 'answers';

/** Sealed text of other uses is worth nothing here. */
const PURPOSE = 'ask_person';

/** Less than the minute that clients wait for a tool. */
const WAIT_SECONDS = 45;

const declared = z.looseObject({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown() });

const elicitResult = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: jsonObject.nullish(),
});

const pending = z.object({
  purpose: z.literal(PURPOSE),
  session_id: z.string(),
  key_id: z.string(),
  mode: z.enum(['form', 'url']),
});

const formSchema = z.custom<FormSchema>((value) => value !== undefined);

/** What the client keeps while the person answers. */
export type Pending = z.output<typeof pending>;

type Mode = Pending['mode'];

type FormSchema = Parameters<typeof inputRequired.elicit>[0]['requestedSchema'];

type Elicitation =
  | { mode: 'form'; params: { message: string; requestedSchema: FormSchema } }
  | { mode: 'url'; params: { message: string; url: string } };

/** A message of a client that answers a request of this service. */
type ClientResponse = { id: string; result?: unknown };
