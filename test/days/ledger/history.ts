import type {
  CallRequest,
  FaultObserved,
  MailObserved,
  Observed,
  Reply,
  WebhookObserved,
} from '../world/types.ts';
import { decodeMail, linkClaim } from './mail-text.ts';

/**
 * What the outside knows of the days, put in order: which forms, submissions, webhooks and mails there were, and when
 * each began and ended for sure. A change without a reply may have happened: it has a `from` and no `sure`.
 */
export function readHistory(observed: readonly Observed[]): History {
  const calls = readCalls(observed);
  const hits = observed.filter((each) => each.kind === 'webhook');
  const mails = observed.filter((each) => each.kind === 'mail').map(readMail);
  const { forms, hooks } = readForms(calls);
  readWebhooks(calls, hooks);
  for (const hit of hits) {
    if (hit.answered === 410) hookAt(hooks, hit.url)?.gone.push(hit.at);
  }
  const submissions = readSubmissions(calls, forms);
  return {
    calls,
    hits,
    mails,
    forms,
    hooks,
    submissions,
    uploads: readUploads(calls),
    erasures: readErasures(calls),
    stops: readStops(calls),
    faults: observed.filter((each) => each.kind === 'fault'),
    rotations: observed.filter((each) => each.kind === 'rotated').map(({ at }) => at),
    crashes: observed.filter((each) => each.kind === 'crash').map(({ at }) => at),
    down: readDowntime(observed),
    replays: calls.filter(({ request }) => /\/replay$/i.test(pathOf(request))).map(({ sentAt }) => sentAt),
    startedAt: observed[0]?.at ?? 0,
    endedAt: observed.at(-1)?.at ?? 0,
  };
}

/** What every submission of the actors has in an answer, so that it is found wherever it went. */
export const MARK = /mark-[a-z0-9]{10,}/g;

/** A span in which something began to hold: it may hold from `from` on, and does from `sure` on, if that is known. */
export type Change = { from: number; sure: number | undefined };

function readCalls(observed: readonly Observed[]): CallSeen[] {
  const byId = new Map<number, CallSeen>();
  for (const each of observed) {
    if (each.kind === 'call') {
      byId.set(each.request.id, {
        request: each.request,
        sentAt: each.at,
        doneAt: undefined,
        reply: undefined,
      });
    }
    if (each.kind !== 'reply' && each.kind !== 'unanswered') continue;
    const call = byId.get(each.request.id);
    if (call === undefined) continue;
    call.doneAt = each.at;
    call.reply = each.kind === 'reply' ? each.reply : undefined;
  }
  return [...byId.values()];
}

/** The change that a call makes: sure if it said so, none if it was refused. */
function changeBy({ sentAt, doneAt, reply }: CallSeen): Change | undefined {
  if (reply === undefined || reply.status >= 500) return { from: sentAt, sure: undefined };
  return reply.status < 400 ? { from: sentAt, sure: doneAt } : undefined;
}

/** A removal that is not there any more was done by a call before, whose reply said nothing. */
function removalsBy(call: CallSeen, before: Change[]): Change[] {
  const change = changeBy(call);
  if (change !== undefined) return [change];
  const isDone = call.reply?.status === 404 && before.length > 0;
  return isDone ? [{ from: call.sentAt, sure: call.doneAt }] : [];
}

export function pathOf({ path }: CallRequest): string {
  return (path.startsWith('http') ? new URL(path).pathname : path).split('?')[0] ?? '';
}

function readMail(mail: MailObserved): MailSeen {
  const text = decodeMail(mail.raw);
  return {
    ...mail,
    text,
    messageId: /^message-id:\s*<(.*?)>/im.exec(mail.raw)?.[1] ?? '',
    submissionId: /\b(sub_[0-9a-z]{10,})/.exec(text)?.[1],
    formId: [...text.matchAll(/\/mail\/([\w.-]+)/g)].flatMap(
      ([, token = '']) => linkClaim(token)?.formId ?? [],
    )[0],
    isTaken: mail.step === 'data' && (mail.answered === 250 || mail.answered === 'lost'),
  };
}

function readForms(calls: CallSeen[]): { forms: Map<string, FormSeen>; hooks: Map<string, HookSeen> } {
  const forms = new Map<string, FormSeen>();
  const hooks = new Map<string, HookSeen>();
  for (const call of calls) {
    const { request, reply } = call;
    const path = pathOf(request);
    const body = objectIn(request.body);
    if (request.method === 'POST' && path === '/api/forms/create' && reply?.status === 201) {
      const { id, name } = reply.json.form;
      if (forms.has(id)) continue;
      forms.set(id, {
        id,
        name,
        isKeyless: request.headers.authorization === undefined,
        versions: [
          { ...(changeBy(call) ?? { from: call.sentAt, sure: undefined }), definition: readDefinition(body) },
        ],
        activated: [],
        owners: [],
        recipients: [],
        closed: [],
        archived: [],
        deleted: [],
      });
    }
    const [, id = ''] = /^\/(?:api|v1)\/forms\/(form_\w+)/.exec(path) ?? [];
    const form = forms.get(id) ?? forms.get(String(body.formId));
    if (form !== undefined && request.method === 'DELETE' && /^\/v1\/forms\/form_\w+$/.test(path)) {
      form.deleted.push(...removalsBy(call, form.deleted));
    }
    const change = changeBy(call);
    if (form === undefined || change === undefined || request.method !== 'POST') continue;
    if (path.endsWith('/activate')) {
      form.activated.push(change);
      form.owners.push({ ...change, address: String(body.email), isConfirmed: false });
      readDefinitionHook(form, hooks, reply?.json?.webhook_secret);
    }
    if (path.endsWith('/versions')) {
      form.versions.push({ ...change, definition: readDefinition(body) });
    }
    if (path.endsWith('/AddFormRecipient')) form.recipients.push({ ...change, address: String(body.email) });
    if (path.endsWith('/archive')) form.archived.push(change);
    if (path.endsWith('/CloseOwnedForm')) form.closed.push({ ...change, isClosed: true });
    if (path.endsWith('/ReopenOwnedForm')) form.closed.push({ ...change, isClosed: false });
  }
  for (const call of calls) {
    const [, token] = /^\/mail\/((?:confirm-owner|change-owner)\.[\w.-]+)$/.exec(pathOf(call.request)) ?? [];
    const claim = token === undefined ? undefined : linkClaim(token);
    const change = call.request.method === 'POST' ? changeBy(call) : undefined;
    const form = claim && forms.get(claim.formId);
    if (form === undefined || change === undefined || claim === undefined) continue;
    form.owners.push({ ...change, address: claim.address, isConfirmed: true });
  }
  for (const form of forms.values()) form.owners.sort((a, b) => a.from - b.from);
  return { forms, hooks };
}

function readDefinition(body: Record<string, unknown>): DefinitionSeen {
  const settings = objectIn(body.settings);
  const delivery = objectIn(body.delivery);
  return {
    channel: delivery.type === 'webhook' ? 'webhook' : 'email',
    url: typeof delivery.url === 'string' ? delivery.url : undefined,
    secret: typeof delivery.secret === 'string' ? delivery.secret : undefined,
    autoresponse: delivery.autoresponse !== undefined,
    retentionDays: typeof settings.retentionDays === 'number' ? settings.retentionDays : undefined,
    maxSubmissions: typeof settings.maxSubmissions === 'number' ? settings.maxSubmissions : undefined,
  };
}

function readDefinitionHook(form: FormSeen, hooks: Map<string, HookSeen>, made: unknown): void {
  const definition = form.versions[0]?.definition;
  const activated = form.activated.at(-1);
  if (definition?.url === undefined || activated === undefined) return;
  const hook =
    hooks.get(definition.url) ?? newHook(definition.url, form.id, ['submission.created'], activated);
  addFirstSecret(hook, definition.secret ?? made);
  hook.registered = { ...hook.registered, sure: hook.registered.sure ?? activated.sure };
  hooks.set(definition.url, hook);
}

/** As it was given, or as the service has made it. */
function addFirstSecret({ secrets, registered }: HookSeen, secret: unknown): void {
  if (typeof secret === 'string' && secrets.length === 0) secrets.push({ ...registered, secret });
}

function newHook(url: string, formId: string | undefined, events: string[], registered: Change): HookSeen {
  return {
    url,
    id: undefined,
    formId,
    events,
    registered,
    secrets: [],
    off: [],
    on: [],
    gone: [],
    rotatedUnseen: [],
  };
}

function readWebhooks(calls: CallSeen[], hooks: Map<string, HookSeen>): void {
  for (const call of calls) {
    const { request, reply } = call;
    const path = pathOf(request);
    const body = objectIn(request.body);
    const change = changeBy(call);
    if (change === undefined) continue;
    if (request.method === 'POST' && path === '/v1/webhooks') {
      const url = String(body.url);
      const events = Array.isArray(body.events) ? body.events.map(String) : [];
      const formId = typeof body.form_id === 'string' ? body.form_id : undefined;
      const hook = hooks.get(url) ?? newHook(url, formId, events, change);
      hook.registered.sure ??= change.sure;
      hook.id ??= reply?.json?.webhook?.id;
      addFirstSecret(hook, body.secret ?? reply?.json?.secret);
      hooks.set(url, hook);
      continue;
    }
    const [, id, action] = /^\/v1\/webhooks\/(wh_\w+)(?:\/([\w-]+))?$/.exec(path) ?? [];
    const hook = id === undefined ? undefined : [...hooks.values()].find((each) => each.id === id);
    if (hook === undefined) continue;
    if (request.method === 'DELETE') hook.off.push(change);
    if (request.method === 'PATCH' && body.active === false) hook.off.push(change);
    if (request.method === 'PATCH' && body.active === true) hook.on.push(change);
    if (action === 'rotate-secret') {
      const delay = 1000 * Number(body.effective_in ?? 0);
      const secret = reply?.json?.secret;
      const { from, sure = Number.POSITIVE_INFINITY } = change;
      // A rotation that was planned before is dropped, if it was not over by then.
      for (const planned of hook.secrets) if (planned.from > from) planned.sure = undefined;
      hook.secrets = hook.secrets.filter((planned) => planned.from <= sure);
      if (typeof secret !== 'string') hook.rotatedUnseen.push(from + delay);
      else
        hook.secrets.push({
          from: from + delay,
          sure: change.sure === undefined ? undefined : change.sure + delay,
          secret,
        });
    }
  }
}

/** The webhook that a request was for. Receivers have one each. */
export function hookAt(hooks: ReadonlyMap<string, HookSeen>, url: string): HookSeen | undefined {
  return hooks.get(url);
}

function readSubmissions(
  calls: CallSeen[],
  forms: ReadonlyMap<string, FormSeen>,
): Map<string, SubmissionSeen> {
  const submissions = new Map<string, SubmissionSeen>();
  const formOfSession = new Map<string, string>();
  for (const { request, reply } of calls) {
    const [, formId = ''] = /^\/v1\/forms\/(form_\w+)\/sessions$/.exec(pathOf(request)) ?? [];
    const id = reply?.json?.session?.id;
    if (formId !== '' && request.method === 'POST' && typeof id === 'string') formOfSession.set(id, formId);
  }
  for (const call of calls) {
    const { request, reply, sentAt, doneAt } = call;
    const path = pathOf(request);
    const [, formId, sessionId] =
      /^\/(?:api|v1)\/forms\/(form_\w+)\/submissions$|^\/(?:v1\/sessions|[fs])\/(sess_\w+)(?:\/submit)?$/.exec(
        path,
      ) ?? [];
    if (request.method !== 'POST' || (formId === undefined && sessionId === undefined)) continue;
    const sent = textOf(request.body);
    const [mark] = sent.match(MARK) ?? [];
    if (mark === undefined || /_go=save/.test(sent)) continue;
    const submission: SubmissionSeen = submissions.get(mark) ?? {
      mark,
      formId: formId ?? formOfSession.get(sessionId ?? '') ?? '',
      form: undefined,
      key: undefined,
      firstSentAt: sentAt,
      lastDoneAt: undefined,
      ackedAt: undefined,
      ids: new Map(),
      calls: [],
      body: objectIn(request.body),
      isOpen: false,
      deleted: [],
    };
    submission.form = forms.get(submission.formId);
    submission.key ??= request.headers['idempotency-key'];
    submission.calls.push(call);
    submission.lastDoneAt = doneAt;
    if (reply === undefined || reply.status >= 500) submission.isOpen = true;
    const id = typeof reply?.json?.submission_id === 'string' ? reply.json.submission_id : undefined;
    const [inText] =
      reply !== undefined && reply.status < 400 ? (reply.text.match(/\bsub_[0-9a-z]+/) ?? []) : [];
    const accepted = reply !== undefined && reply.status < 400 ? (id ?? inText) : undefined;
    if (accepted !== undefined && doneAt !== undefined) {
      submission.ackedAt ??= doneAt;
      if (!submission.ids.has(accepted)) submission.ids.set(accepted, doneAt);
    }
    submissions.set(mark, submission);
  }
  for (const call of calls) {
    const [, id] = /^\/v1\/submissions\/(sub_\w+)$/.exec(pathOf(call.request)) ?? [];
    if (id === undefined || call.request.method !== 'DELETE') continue;
    for (const { ids, deleted } of submissions.values()) {
      if (ids.has(id)) deleted.push(...removalsBy(call, deleted));
    }
  }
  return submissions;
}

function readUploads(calls: CallSeen[]): Map<string, UploadSeen> {
  const uploads = new Map<string, UploadSeen>();
  for (const { request, reply, sentAt, doneAt } of calls) {
    const id = reply?.json?.upload?.upload_id;
    if (typeof id !== 'string' || request.method !== 'POST') continue;
    const name = new URL(request.path, 'http://service').searchParams.get('filename') ?? '';
    uploads.set(id, { id, name, sentAt, doneAt: doneAt ?? sentAt });
  }
  return uploads;
}

function readErasures(calls: CallSeen[]): ErasureSeen[] {
  const erasures: ErasureSeen[] = [];
  for (const { request, reply, sentAt, doneAt } of calls) {
    if (request.method !== 'POST' || pathOf(request) !== '/v1/erasures') continue;
    const { value, cursor } = objectIn(request.body);
    const known = erasures.find((each) => each.value === value);
    const erasure = known ?? { value: String(value), from: sentAt, sure: undefined };
    if (known === undefined) erasures.push(erasure);
    // A repetition begins again: what it has not come to counts from its own end on.
    if (cursor === undefined && erasure.sure === undefined) erasure.from = Math.min(erasure.from, sentAt);
    if (reply?.status === 200 && reply.json.next_cursor === null) erasure.sure ??= doneAt;
  }
  return erasures;
}

function readStops(calls: CallSeen[]): StopSeen[] {
  return calls.flatMap((call) => {
    const [, token = ''] = /^\/mail\/(stop\.[\w.-]+)$/.exec(pathOf(call.request)) ?? [];
    const claim = linkClaim(token);
    const change = call.request.method === 'POST' ? changeBy(call) : undefined;
    if (claim === undefined || change === undefined) return [];
    const sent = new URLSearchParams(textOf(call.request.body));
    const scope = sent.has('start') ? 'start' : sent.get('stop') === 'all' ? 'all' : 'form';
    return [{ ...change, ...claim, scope } as const];
  });
}

/** When no process ran. */
function readDowntime(observed: readonly Observed[]): Span[] {
  const running = new Set<number>();
  const spans: Span[] = [];
  let since = observed[0]?.at ?? 0;
  for (const each of observed) {
    const before = running.size;
    if (each.kind === 'start') running.add(each.process);
    if (each.kind === 'crash' || each.kind === 'stopped') running.delete(each.process);
    if (before === 0 && running.size > 0 && each.at > since) spans.push({ from: since, until: each.at });
    if (before > 0 && running.size === 0) since = each.at;
  }
  return spans;
}

/** The milliseconds of a time in which no process ran. */
export function downtimeIn({ down }: Pick<History, 'down'>, from: number, until: number): number {
  return down.reduce(
    (sum, span) => sum + Math.max(0, Math.min(span.until, until) - Math.max(span.from, from)),
    0,
  );
}

/** Whether a fault of one of these kinds, about one of these, was there in a time. */
export function hadFault(
  { faults }: Pick<History, 'faults'>,
  { kinds, about, from, until }: FaultQuestion,
): boolean {
  return faults.some(
    (each) =>
      kinds.includes(each.fault) &&
      (about === undefined || about.includes(each.about)) &&
      each.at <= until &&
      each.at + (each.ms ?? 0) >= from,
  );
}

export function objectIn(value: unknown): Record<string, unknown> {
  return typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
    ? (value as Record<string, unknown>)
    : {};
}

export function textOf(body: unknown): string {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? Buffer.from(body).toString('latin1') : JSON.stringify(body ?? '');
}

export type History = {
  calls: CallSeen[];
  /** Requests at receivers of webhooks. */
  hits: WebhookObserved[];
  mails: MailSeen[];
  forms: Map<string, FormSeen>;
  /** By URL. */
  hooks: Map<string, HookSeen>;
  /** By their marks. */
  submissions: Map<string, SubmissionSeen>;
  uploads: Map<string, UploadSeen>;
  erasures: ErasureSeen[];
  stops: StopSeen[];
  faults: FaultObserved[];
  /** When the secret key was changed. */
  rotations: number[];
  crashes: number[];
  down: Span[];
  replays: number[];
  startedAt: number;
  endedAt: number;
};

/** `doneAt` is when the reply came or the caller gave up. */
export type CallSeen = {
  request: CallRequest;
  sentAt: number;
  doneAt: number | undefined;
  reply: Reply | undefined;
};

export type MailSeen = MailObserved & {
  /** With its quoted-printable decoded. */
  text: string;
  messageId: string;
  submissionId: string | undefined;
  formId: string | undefined;
  isTaken: boolean;
};

export type FormSeen = {
  id: string;
  name: string;
  isKeyless: boolean;
  versions: (Change & { definition: DefinitionSeen })[];
  activated: Change[];
  owners: (Change & { address: string; isConfirmed: boolean })[];
  /** Whom owners have added. */
  recipients: (Change & { address: string })[];
  closed: (Change & { isClosed: boolean })[];
  archived: Change[];
  deleted: Change[];
};

type DefinitionSeen = {
  channel: 'email' | 'webhook';
  url: string | undefined;
  secret: string | undefined;
  autoresponse: boolean;
  retentionDays: number | undefined;
  maxSubmissions: number | undefined;
};

export type HookSeen = {
  url: string;
  id: string | undefined;
  /** Undefined: of all forms. */
  formId: string | undefined;
  events: string[];
  registered: Change;
  secrets: (Change & { secret: string })[];
  /** Turned off or deleted, turned on again, answered 410. */
  off: Change[];
  on: Change[];
  gone: number[];
  /** From when on a secret may sign that nobody has seen. */
  rotatedUnseen: number[];
};

export type SubmissionSeen = {
  mark: string;
  formId: string;
  form: FormSeen | undefined;
  /** The idempotency key. */
  key: string | undefined;
  firstSentAt: number;
  lastDoneAt: number | undefined;
  /** When it was first said to be accepted. */
  ackedAt: number | undefined;
  /** The ids that replies named, with when they first did. */
  ids: Map<string, number>;
  calls: CallSeen[];
  body: Record<string, unknown>;
  /** Whether one of the calls may have stored it without saying so. */
  isOpen: boolean;
  deleted: Change[];
};

export type UploadSeen = { id: string; name: string; sentAt: number; doneAt: number };
type ErasureSeen = Change & { value: string };
type StopSeen = Change & { formId: string; address: string; scope: 'form' | 'all' | 'start' };
type Span = { from: number; until: number };
type FaultQuestion = { kinds: readonly string[]; about?: readonly string[]; from: number; until: number };
