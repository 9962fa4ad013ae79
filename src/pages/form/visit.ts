import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type HostedSession,
  HostedState,
  type Input,
  type SaveHostedAnswersResponse,
  type SubmitHostedSessionRequestSchema,
  type SubmitHostedSessionResponse,
} from '../../../gen/forms/internal/v1/hosted_pb.js';
import type { UploadFileRequest } from '../../../gen/forms/v1/uploads_pb.js';
import { type ErrorReason, HttpError } from '../../http/errors.ts';
import type { FormInputs } from '../../http/multipart.ts';
import type { PageExchange } from '../handler.ts';

/** The form that an address shows, if it takes answers; throws why it does not. */
export async function readOpen(visit: Visit): Promise<HostedSession> {
  const session = await visit.read();
  refuseClosed(session);
  return session;
}

/** Throws if the session or the form takes no answers. */
export function refuseClosed({ state }: HostedSession): void {
  const refusal = refusals[state];
  if (refusal !== undefined) throw new HttpError(...refusal);
}

/** Refuses what another site's page has posted, unless it may embed the form anyway. */
export function refuseForeign({ request }: PageExchange, session: HostedSession): void {
  if (request.headers['sec-fetch-site'] !== 'cross-site' || session.embedOrigins.length > 0) return;
  throw new HttpError('origin_not_allowed', 'This page takes no posts from other sites');
}

/** Why a session in each state takes no answers. */
const refusals: Partial<Record<HostedState, [reason: ErrorReason, message: string]>> = {
  [HostedState.SUBMITTED]: ['conflict', 'The session has been submitted'],
  [HostedState.EXPIRED]: ['expired', 'The session has expired'],
  [HostedState.CANCELLED]: ['cancelled', 'The session has been cancelled'],
  [HostedState.CLOSED]: ['closed', 'The form takes no more submissions'],
  [HostedState.ARCHIVED]: ['archived', 'The form is archived'],
};

/** One request to a page that shows a form. */
export type Visit = {
  /** Reads what the page shows, and keeps it for the looks of error pages. */
  read(): Promise<HostedSession>;
  /** Goes on with the session that a posted page of a form names; `session` is what was read before. */
  resume(inputs: FormInputs, session: HostedSession): Promise<HostedSession>;
  /** Checks answers, and keeps them as far as the form does. */
  save(answers: PostedAnswers): Promise<Pick<SaveHostedAnswersResponse, 'answers' | 'violations' | 'saved'>>;
  submit(answers: Submitted): Promise<Pick<SubmitHostedSessionResponse, 'submissionId' | 'ending'>>;
  /** What files are put for. */
  uploadTarget(): Promise<UploadFileRequest['target']>;
  /** The session of a visitor of the form's own page, by now; empty: none. */
  sessionId(): string;
  /** Whether the answers that are kept are found again by the page's address alone. */
  isKeptByAddress(): boolean;
};

type PostedAnswers = { inputs: Input[]; page: number };

type Submitted = Omit<MessageInitShape<typeof SubmitHostedSessionRequestSchema>, 'sessionId' | '$typeName'>;
