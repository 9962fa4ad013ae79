import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { withOneLoopback } from '../../domain/addresses/ip-address.ts';
import type { Answers } from '../../domain/answers/answers.ts';
import { failed, invalid } from '../../domain/errors/failure.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { MAX_REFERRER_LENGTH, MAX_SOURCE_LENGTH } from '../../domain/limits/limits.ts';
import { callerIfAny } from '../../rpc/context.ts';
import { findRepeatedSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { type Idempotency, readIdempotency, replayAfterRefusal, withinContent } from '../idempotency.ts';
import { textProblems } from '../request-values.ts';
import { acceptAnswers, checkSize, type Entry } from './accept-answers.ts';

/**
 * Reads what a request says.
 *
 * Throws `INVALID_ARGUMENT` for what could not be stored, and `RESOURCE_EXHAUSTED` for more than a
 * form made without a key takes. Whether the answers fit the form is checked later.
 */
export function readRequest(
  request: SubmittedContent,
  form: PublishedForm,
  call: HandlerContext,
): ReadRequest {
  const { answers, honeypot = '', idempotencyKey = '' } = request;
  const source = readSource(request.source);
  checkSize(form, { source: request.source, answers });

  const read = { answers, source, spam: honeypot !== '' };
  const content = { source: read.source, answers: answers ?? null };
  const given = readIdempotency(idempotencyKey, content);
  const isKeyless = callerIfAny(call)?.keyId === undefined;
  return { ...read, idempotency: given && isKeyless ? withinContent(given) : given };
}

/** Where answers come from in their sender's words; `api` if they are none. Throws INVALID for what can't be stored. */
export function readSource(source = ''): string {
  const violations = textProblems(source, 'source', { max: MAX_SOURCE_LENGTH, code: 'invalid_string' });
  if (violations.length > 0) throw invalid(violations);
  return source === '' ? DEFAULT_SOURCE : source;
}

/** Checks and stores a submission; a repeated one gets its first answer. */
export async function acceptRequest(
  context: ServiceContext,
  form: PublishedForm,
  request: ReadRequest,
  call: Entry['call'],
): Promise<AcceptedRequest> {
  return replayAfterRefusal(
    request.idempotency,
    async () => {
      const accepted = await acceptAnswers(context, { form, version: form.version, call, ...request });
      return { submissionId: accepted.submissionId, answers: accepted.submission.answers };
    },
    async (key) => {
      const first = await findRepeatedSubmission(context.database, form.id, key);
      if (first === null) return null;
      const { id: submissionId, requestFingerprint } = first;
      return { fingerprint: requestFingerprint, submissionId, made: () => ({ submissionId, answers: {} }) };
    },
  );
}

const DEFAULT_SOURCE = 'api';

/** What the requests that submit answers to a form have in common, and what some of them have. */
type SubmittedContent = {
  answers?: JsonObject | undefined;
  source?: string;
  honeypot?: string;
  idempotencyKey?: string;
};

/** A request as it is to be checked: the answers are as they came. */
export type ReadRequest = {
  answers: JsonObject | undefined;
  source: string;
  spam: boolean;
  idempotency: Idempotency | undefined;
};

/** The answers are empty if the submission is an earlier call's. */
export type AcceptedRequest = { submissionId: string; answers: Answers };

/**
 * Refuses a browser whose page may not post to a form. Callers other than browsers send no `origin` and
 * pass; `null`, which sandboxed pages and files send, is refused. The service's own pages always pass.
 */
export function checkOrigin(header: Headers, allowedOrigins: readonly string[], own: OwnAddresses): void {
  const origin = header.get('origin');
  if (origin === null || allowedOrigins.length === 0 || allowedOrigins.includes(origin)) return;
  if (origin === originOf(own.baseUrl) || origin === originOf(own.hostedUrl)) return;
  throw failed(Reason.ORIGIN_NOT_ALLOWED, refusalOf(origin, allowedOrigins));
}

/** What the maker of a site has to change. */
function refusalOf(origin: string, allowedOrigins: readonly string[]): string {
  if (origin === 'null') {
    return 'This page has no origin (Origin: null): it was opened as a file, is in a sandboxed frame, or has the referrer policy no-referrer. Serve it from one of the form’s allowedOrigins';
  }
  const meant = allowedOrigins.find((allowed) => withOneLoopback(allowed) === withOneLoopback(origin));
  if (meant === undefined) return 'Pages of this origin may not post to this form';
  return `Browsers count ${origin} and ${meant} as two origins, and this form allows only the second. Open the page at ${meant}, or add ${origin} to allowedOrigins`;
}

/**
 * The address to send the user of an HTML form to, or an empty text if it may not be followed: it
 * must be http(s), and of the page's own origin or one that the form allows. Else anybody could use
 * a form as a link that leads elsewhere. A relative address is the page's own. `pageUrl` takes the place of what the
 * headers say of the page.
 */
export function allowedRedirect(
  next: string,
  header: Headers,
  allowedOrigins: readonly string[],
  pageUrl = '',
): string {
  const page = pageUrl === '' ? pageOrigin(header) : originOf(pageUrl);
  if (next === '' || next.length > MAX_REFERRER_LENGTH || !URL.canParse(next, page)) return '';
  const url = new URL(next, page);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return '';
  return url.origin === page || allowedOrigins.includes(url.origin) ? url.href : '';
}

function pageOrigin(header: Headers): string | undefined {
  const origin = header.get('origin');
  return originOf(origin === null || origin === 'null' ? (header.get('referer') ?? '') : origin);
}

/** Undefined for a text that is no address, and for an address whose origin is opaque. */
function originOf(address: string): string | undefined {
  const origin = address.length > MAX_REFERRER_LENGTH ? undefined : URL.parse(address)?.origin;
  return origin === 'null' ? undefined : origin;
}

export type OwnAddresses = { baseUrl: string; hostedUrl: string };
