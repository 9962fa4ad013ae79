import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Request } from 'express';
import {
  HostedGoal,
  HostedService,
  type HostedSession,
  HostedState,
  type PostHostedRequestSchema,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormDefinitionSchema } from '../../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { UploadFileRequest } from '../../../gen/headlessforms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { type FailureReason, failed } from '../../domain/errors/failure.ts';
import { newToken } from '../../domain/secrets/new-secrets.ts';
import type { FormInputs } from '../../http/multipart.ts';
import { readSecretCookie, readVisitorCookie, setSecretCookie, setVisitorCookie } from '../cookies.ts';
import type { PageExchange } from '../handler.ts';
import { isOwnPost } from '../owner/session.ts';

const { method: rpcs } = HostedService;

/**
 * What an address that shows a form stands for: a session, a submission that is corrected, or a form's own page, whose
 * address fills in fields.
 *
 * A form's own page stores nothing while it is looked at: a session is opened when answers are first saved or a file is
 * put. From then on the page carries the session's id, so that every page goes on with its own.
 *
 * What another site has posted is refused, though it may frame the page: it could have people go on in a session that
 * it has begun. Where nothing says whose page was posted, no session is begun or gone on with, and no cookie set.
 */
export function sourceOf(exchange: PageExchange) {
  const { call, request, response, hostedUrl } = exchange;
  // Without a referrer browsers send no origin with a post.
  response.set('referrer-policy', 'same-origin');
  const id = String(request.params.sessionId);
  const formId = id.startsWith('form_') ? id : '';
  const filledIn = Object.entries(formId === '' ? {} : request.query);
  const prefill = filledIn.map(([name, values]) => ({ name, values: textsIn(values) }));
  const posted = request.method === 'POST';
  const poster = posted ? posterOf(exchange) : 'own';
  const unproven = poster === 'unknown';
  const visitor = visitorOf(exchange, formId);
  const isCorrection = id.startsWith('sub_');
  const browser = readSecretCookie(request, { hostedUrl, name: isCorrection ? 'correction' : 'respondent' });

  function target() {
    const begun = visitor.begun();
    if (poster === 'other' || (unproven && [visitor.id(), browser, ...begun].some((known) => known !== '')))
      throw failed(Reason.ORIGIN_NOT_ALLOWED, 'This page accepts no posts from other sites');
    return { formId, sessionId: formId === '' ? id : visitor.id(), begun, prefill, browser };
  }

  return {
    /**
     * Reads what the page shows, and keeps it for the looks of error pages. A page that is posted names its session in
     * `inputs`. With `anyOrigin` it is the looks alone, which what another site has posted is refused with.
     */
    async read({ inputs, anyOrigin = false }: { inputs?: FormInputs; anyOrigin?: boolean } = {}) {
      if (inputs !== undefined) visitor.follow(inputs);
      const looks = { formId, sessionId: formId === '' ? id : '', prefill, ...(isCorrection && { browser }) };
      const asked = { ...(anyOrigin ? looks : target()), preview: anyOrigin || isPreview(request), posted };
      return visitor.see((await call(rpcs.getHosted, asked)).session);
    },
    /** Passes on what was posted, and keeps in the browser which session the answers are in. */
    async post(inputs: FormInputs, step: PostedStep) {
      visitor.follow(inputs);
      const reply = await call(rpcs.postHosted, { ...target(), unproven, ...step });
      const session = visitor.see(reply.session);
      const isOver = step.goal === HostedGoal.RESTART || reply.ending !== undefined;
      if (isOver) visitor.forget();
      else if (formId !== '') visitor.keep(reply.begun);
      if (reply.correction !== '')
        setSecretCookie(response, reply.correction, { ...visitor.framed(), name: 'correction' });
      return { ...reply, session };
    },
    /** What files are put for. */
    async uploadTarget(issueToken: string): Promise<UploadFileRequest['target']> {
      if (formId === '') return { case: 'sessionId', value: id };
      if (visitor.id() === '') {
        const opening = { ...target(), issueToken: unproven ? '' : issueToken };
        const opened = await call(rpcs.openHostedSession, opening);
        if (unproven) return { case: 'sessionId', value: opened.sessionId };
        visitor.begin(opened);
      }
      return { case: 'sessionId', value: visitor.id() };
    },
    /** Emails a code to the respondent, or to the address that a visitor has entered. */
    async sendCode(email: string): Promise<object> {
      const made = browser === '' ? newToken() : browser;
      const sent = await call(rpcs.sendRespondentCode, { ...target(), email, browser: made });
      visitor.see((await call(rpcs.getHosted, { ...target(), browser: made, preview: true })).session);
      setSecretCookie(response, made, { ...visitor.framed(), name: 'respondent' });
      return sent;
    },
    /** Gives the code that was emailed. */
    giveCode: async (code: string): Promise<object> => call(rpcs.giveRespondentCode, { ...target(), code }),
    /** What only the browser has in which the respondent gives codes; empty if it has nothing yet. */
    browser: () => browser,
    /** The session of a visitor of the form's own page, by now; empty: none. */
    sessionId: visitor.id,
    /** Whether the answers that are kept are found again by the page's address alone. */
    isKeptByAddress: () => formId === '' || visitor.isInCookie(),
    /** Whether a visitor has asked that this device remembers the answers. */
    remembers: visitor.remembers,
  };
}

/** Which session of a form's own page a visitor goes on with, by the cookie and what is posted and answered. */
function visitorOf(exchange: PageExchange, formId: string) {
  const { request, response, hostedUrl } = exchange;
  const posted = request.method === 'POST';
  const cookie = readVisitorCookie(request, hostedUrl, formId);
  let begun = cookie.sessionIds;
  // A page that is posted goes on with the session that it names, or none: another tab's is not its own.
  let id = posted ? '' : (begun[0] ?? '');
  let remembers = cookie.remembers;

  const framed = () => ({ hostedUrl, formId, isFramed: (exchange.session?.embedOrigins.length ?? 0) > 0 });
  const setCookie = (sessionIds: string[]) => setVisitorCookie(response, { sessionIds, remembers }, framed());

  /** Keeps in the browser which session is gone on with, if it has begun it. */
  function keep(isBegun: boolean): void {
    const isKept = id === cookie.sessionIds[0] && remembers === cookie.remembers;
    if (isKept || !(isBegun || begun.includes(id))) return;
    begun = [id, ...begun.filter((each) => each !== id)];
    setCookie(begun);
  }

  return {
    id: () => id,
    /** The sessions that this browser has begun, the last one first. */
    begun: () => begun,
    remembers: () => remembers,
    isInCookie: () => id !== '' && id === cookie.sessionIds[0],
    framed,
    keep,
    follow(inputs: FormInputs): void {
      id ||= inputs.get('_session')?.at(-1) ?? '';
      remembers = inputs.has('_remember');
    },
    see(session: HostedSession | undefined): HostedSession {
      if (session === undefined) throw failed(Reason.NOT_FOUND, 'There is no such page');
      exchange.session = session;
      id = session.sessionId;
      if (!posted && id === '') remembers = false;
      return session;
    },
    begin(opened: { sessionId: string; begun: boolean }): void {
      id = opened.sessionId;
      keep(opened.begun);
    },
    forget(): void {
      if (id + begun.join('') !== '') setCookie([]);
    },
  };
}

/** Whose page has made a browser post, as far as its headers say: every newer browser sends both. */
function posterOf(exchange: PageExchange): 'own' | 'other' | 'unknown' {
  const { origin = 'null', 'sec-fetch-site': site } = exchange.request.headers;
  if (origin !== 'null' && !isOwnPost(exchange)) return 'other';
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'other';
  return origin === 'null' && site === undefined ? 'unknown' : 'own';
}

/** The form that an address shows, if it accepts answers; throws why it does not. */
export async function readOpen(source: PageSource, inputs?: FormInputs): Promise<HostedSession> {
  const session = await source.read(inputs && { inputs });
  refuseUnlessOpen(session);
  return session;
}

/** Throws why a form accepts no answers. */
export function refuseUnlessOpen({ state }: HostedSession): void {
  const refusal = refusals[state];
  if (refusal !== undefined) throw failed(...refusal);
}

/** The fields that a person may see, in order. */
export function shownFieldsOf({ fields }: Pick<HostedSession, 'fields'>): Field[] {
  const definition = definitionFromMessage(create(FormDefinitionSchema, { fields }));
  // The service has checked them and filled in every default before it stored them.
  return (definition as { fields: Field[] }).fields;
}

/** The query of the page's address with another language or step, or none, and all else that it has. */
export function queryWith(
  { query }: Pick<Request, 'query'>,
  changed: Record<string, string | undefined>,
): string {
  const pairs = Object.entries({ ...query, ...changed }).flatMap(([name, values]) =>
    textsIn(values).map((value): [string, string] => [name, value]),
  );
  return `?${new URLSearchParams(pairs).toString()}`;
}

/** What a parameter says, which may come more than once. */
function textsIn(values: Request['query'][string]): string[] {
  return [values].flat().filter((value) => typeof value === 'string');
}

/**
 * Whether nobody is shown what a request reads: it asks for the headers alone, a browser fetches the page ahead, or a
 * program looks at a link that somebody was sent.
 */
export function isPreview({ method, headers }: Pick<Request, 'method' | 'headers'>): boolean {
  if (method === 'HEAD') return true;
  if (method !== 'GET') return false;
  const purposes = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].map((name) =>
    String(headers[name] ?? ''),
  );
  return (
    purposes.some((purpose) => /prefetch|preview/i.test(purpose)) ||
    previewer.test(headers['user-agent'] ?? '')
  );
}

/**
 * What programs that preview links call themselves: most say "bot", "preview" or the like (Slackbot, Twitterbot,
 * Discordbot, TelegramBot, LinkedInBot, MicrosoftPreview, SkypeUriPreview), the others are named. Signal says
 * WhatsApp; Apple's Messages says facebookexternalhit. Cubot makes telephones.
 */
const previewer =
  /(?<!\bcu)bot\b|crawler|spider|preview|facebookexternalhit|facebookcatalog|meta-external|whatsapp\/|slack-imgproxy|embedly|iframely|vkshare|kakaotalk-scrap|line-poker|mastodon\/|synapse|outbrain|flipboardproxy|google-inspectiontool/i;

/** Why a session in each state accepts no answers. */
const refusals: Partial<Record<HostedState, [reason: FailureReason, message: string]>> = {
  [HostedState.CODE_NEEDED]: [
    Reason.CODE_NEEDED,
    'Only the page accepts answers, after a code that it emails',
  ],
  [HostedState.SUBMITTED]: [Reason.CONFLICT, 'The session has been submitted'],
  [HostedState.EXPIRED]: [Reason.EXPIRED, 'The session has expired'],
  [HostedState.CANCELLED]: [Reason.CANCELLED, 'The session has been cancelled'],
  [HostedState.DECLINED]: [Reason.DECLINED, 'The person has declined to answer'],
  [HostedState.CLOSED]: [Reason.CLOSED, 'The form no longer accepts responses'],
  [HostedState.ARCHIVED]: [Reason.ARCHIVED, 'The form is archived'],
};

/** One request to a page that shows a form. */
export type PageSource = ReturnType<typeof sourceOf>;

type PostedStep = { goal: HostedGoal } & Omit<
  MessageInitShape<typeof PostHostedRequestSchema>,
  'formId' | 'sessionId' | 'begun' | 'prefill' | 'unproven' | 'goal' | '$typeName'
>;
