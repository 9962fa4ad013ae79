import { createHmac } from 'node:crypto';
import type { CallRequest, MailObserved, Observed, Reply, WebhookObserved } from '../world/types.ts';
import type { EndFacts } from './end-facts.ts';
import { readHistory } from './history.ts';
import { judge } from './index.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from './rule.ts';

/** A log made by hand, of a form with an owner, a webhook, and whatever a test adds. Times are in milliseconds from 0. */
export class Days {
  readonly observed: Observed[] = [{ kind: 'start', at: 0, process: 1 }];
  readonly end: EndFacts = {
    now: 20 * DAY_MS,
    listed: new Map(),
    statuses: new Map(),
    texts: [{ table: 'installation', text: '{"name":"rewritten_at"}' }],
    counts: [],
    queue: [],
    waitingEvents: 0,
    uploadRows: new Map(),
    files: new Map(),
    dead: [],
  };
  #calls = 0;

  /** A call that is answered within a second; not at all without a status. */
  call(at: number, method: string, path: string, about: CallGiven = {}): this {
    const {
      status = 200,
      json,
      body,
      key = 'key',
      headers = {},
      operation = 'call',
      actor = 'somebody',
    } = about;
    const request: CallRequest = {
      id: ++this.#calls,
      actor,
      operation,
      process: 1,
      method,
      path,
      headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...headers },
      body,
    };
    this.observed.push({ kind: 'call', at, request });
    if (status === 'none') {
      this.observed.push({ kind: 'unanswered', at: at + SECOND_MS, request, why: 'lost' });
      return this;
    }
    const reply: Reply = { status, headers: {}, text: JSON.stringify(json ?? {}), json };
    this.observed.push({ kind: 'reply', at: at + SECOND_MS, request, reply });
    return this;
  }

  /** A form that is published and whose owner has confirmed by the third second. */
  form(settings: object = {}, delivery: object = { type: 'email' }): this {
    const body = { name: 'Form', fields: [], delivery, settings };
    this.call(0, 'POST', '/api/forms/create', {
      status: 201,
      body,
      json: { form: { id: FORM, name: 'Form' } },
    });
    this.call(1 * SECOND_MS, 'POST', `/api/forms/${FORM}/activate?token=t`, {
      key: null,
      body: { email: OWNER },
    });
    this.mail(1.5 * SECOND_MS, {
      to: [OWNER],
      raw: `Message-ID: <dlv_c@x>\n\n${linkOf('confirm-owner', OWNER)}`,
    });
    return this.call(2 * SECOND_MS, 'POST', linkOf('confirm-owner', OWNER), { key: null });
  }

  webhook(at = 4 * SECOND_MS): this {
    const body = { url: HOOK, events: ['submission.created'], secret: SECRET };
    return this.call(at, 'POST', '/v1/webhooks', { status: 201, body, json: { webhook: { id: 'wh_1' } } });
  }

  /** A submission; accepted, listed, counted, and sent to the webhook and by mail, unless it says otherwise. */
  submission(at: number, about: SubmissionGiven = {}): this {
    const {
      id = 'sub_1111111111',
      mark = MARK,
      status = 201,
      answers = {},
      source,
      key = `key of ${mark}`,
    } = about;
    const body = { answers: { note: mark, ...answers }, ...(source !== undefined && { source }) };
    const headers = { 'idempotency-key': key };
    const json = status === 201 ? { ok: true, submission_id: id } : { error: { reason: 'closed' } };
    this.call(at, 'POST', `/api/forms/${FORM}/submissions`, { status, key: null, headers, body, json });
    if (status !== 201 || about.onlyCall === true) return this;
    this.keep(id, mark, at);
    return about.isSilent === true
      ? this
      : this.hit(at + 2 * SECOND_MS, { id, mark }).told(at + 2 * SECOND_MS, { id, mark });
  }

  keep(id: string, mark: string, at: number): void {
    this.end.listed.set(id, { id, formId: FORM, text: mark, createdAt: at });
    this.end.statuses.set(id, 200);
    this.end.texts.push({ table: 'submissions', text: mark });
  }

  /** What is removed is read no more, and no row has it. */
  gone(id = 'sub_1111111111', mark = MARK): this {
    this.end.listed.delete(id);
    this.end.statuses.set(id, 404);
    this.end.texts.splice(
      0,
      this.end.texts.length,
      ...this.end.texts.filter(({ text }) => !text.includes(mark)),
    );
    return this;
  }

  hit(at: number, about: HitGiven = {}): this {
    const {
      id = 'sub_1111111111',
      mark = MARK,
      eventId = `evt_${id}`,
      secret = SECRET,
      answered = 204,
      event = 'submission.created',
    } = about;
    const answers = event === 'submission.created' ? { answers: { note: mark } } : {};
    const body = JSON.stringify({ id: eventId, event, data: { submissionId: id, ...answers } });
    const seconds = Math.floor(at / SECOND_MS);
    const mac = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
    const headers = { 'webhook-id': eventId, 'x-service-signature': `t=${seconds}, v1=${mac}` };
    const hit: WebhookObserved = {
      kind: 'webhook',
      at,
      receiver: 'hook',
      url: about.url ?? HOOK,
      headers,
      body,
      answered,
    };
    this.observed.push(hit);
    return this;
  }

  /** A callback of the session `sess_1`. */
  ended(at: number, { url, outcome, secret }: { url: string; outcome: string; secret: string }): this {
    const body = JSON.stringify({
      id: 'evt_1',
      event: 'session.ended',
      data: { sessionId: 'sess_1', outcome },
    });
    const seconds = Math.floor(at / SECOND_MS);
    const mac = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
    const headers = { 'webhook-id': 'evt_1', 'x-service-signature': `t=${seconds}, v1=${mac}` };
    this.observed.push({ kind: 'webhook', at, receiver: 'ask', url, headers, body, answered: 204 });
    return this;
  }

  /** A mail about a submission. */
  told(at: number, about: MailGiven = {}): this {
    const { id = 'sub_1111111111', mark = MARK, to = OWNER, messageId = `dlv_${id}@x` } = about;
    const raw = `Message-ID: <${messageId}>\n\n${mark} ${id}\n${linkOf('stop', to)}`;
    return this.mail(at, { to: [to], raw });
  }

  mail(at: number, about: Partial<MailObserved>): this {
    this.observed.push({
      kind: 'mail',
      at,
      from: 'a@b.example',
      to: [OWNER],
      raw: '',
      step: 'data',
      answered: 250,
      ...about,
    });
    return this;
  }

  /** What the rules find, as `rule: reason`, each once. */
  findings(): string[] {
    const last = { kind: 'jump', at: this.end.now, from: 0 } as const;
    const found = judge(readHistory([...this.observed, last].sort((a, b) => a.at - b.at)), this.end);
    return [...new Set(found.map(({ rule, reason }) => `${rule}: ${reason}`))];
  }
}

/** The path of a mailed link, which says itself what it is about. */
export function linkOf(purpose: string, address: string): string {
  const claim = Buffer.from(JSON.stringify([FORM, address])).toString('base64url');
  return `http://service.example/mail/${purpose}.${claim}.x.mac`;
}

export const FORM = 'form_1';
export const OWNER = 'owner@owners.example';
export const HEIR = 'heir@owners.example';
const HOOK = 'http://hook.example/hook';
const SECRET = 'a secret of sixteen or more';
export const MARK = 'mark-0000000001';
export const AFTER = 10 * MINUTE_MS;

type CallGiven = {
  actor?: string;
  status?: number | 'none';
  json?: unknown;
  body?: unknown;
  key?: string | null;
  headers?: Record<string, string>;
  operation?: string;
};
type SubmissionGiven = {
  id?: string;
  mark?: string;
  status?: number | 'none';
  answers?: object;
  source?: string;
  key?: string;
  /** Only the call, or all but webhook and mail. */
  onlyCall?: boolean;
  isSilent?: boolean;
};
type HitGiven = {
  id?: string;
  mark?: string;
  eventId?: string;
  secret?: string;
  answered?: WebhookObserved['answered'];
  event?: string;
  url?: string;
};
type MailGiven = { id?: string; mark?: string; to?: string; messageId?: string };
