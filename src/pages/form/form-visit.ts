import { create } from '@bufbuild/protobuf';
import type { Request } from 'express';
import {
  HostedService,
  type HostedSession,
  type Input,
  InputSchema,
} from '../../../gen/forms/internal/v1/hosted_pb.js';
import { HttpError, httpErrorOf } from '../../http/errors.ts';
import type { PageExchange } from '../handler.ts';
import type { Visit } from './visit.ts';

const { method: rpcs } = HostedService;

/**
 * A form's own page. Its address fills in fields. Looking stores nothing: a session is opened when answers are first
 * saved or a file is put.
 *
 * From then on the page carries the session's id, so that every page goes on with its own, and a cookie for the
 * page's path finds it again when the page is opened anew, until it is submitted.
 */
export function visitForm(exchange: PageExchange, formId: string): Visit {
  const { call, request } = exchange;
  const prefill = inputsOf(request);
  const cookie = cookieOf(request);
  let shown: HostedSession | undefined;
  let sessionId = '';
  let issueToken = '';

  async function readForm(begun: string, ended: boolean): Promise<HostedSession> {
    const { session } = await call(rpcs.getHostedForm, { formId, prefill, sessionId: begun, ended });
    if (session === undefined) throw new HttpError('not_found', 'There is no such form');
    sessionId = session.sessionId;
    shown = session;
    exchange.session = session;
    return session;
  }

  async function open(): Promise<string> {
    if (sessionId !== '') return sessionId;
    sessionId = (await call(rpcs.openHostedSession, { formId, prefill, issueToken })).sessionId;
    setCookie(sessionId);
    return sessionId;
  }

  function setCookie(value: string): void {
    const { protocol, pathname } = new URL(exchange.hostedUrl);
    const framed = (shown?.embedOrigins.length ?? 0) > 0;
    const attributes = [
      `${COOKIE}=${value}`,
      `Path=${pathname.replace(/\/$/, '')}/f/${formId}`,
      'HttpOnly',
      value === '' ? 'Max-Age=0' : `Max-Age=${COOKIE_SECONDS}`,
      ...(protocol === 'https:' ? ['Secure'] : []),
      // Within another site's page browsers keep cookies only so, for each such site apart.
      ...(protocol === 'https:' && framed ? ['SameSite=None', 'Partitioned'] : ['SameSite=Lax']),
    ];
    exchange.response.setHeader('set-cookie', attributes.join('; '));
  }

  return {
    // A page that is posted goes on with the session that it names, or none: another tab's is not its own.
    read: () => readForm(request.method === 'POST' ? '' : cookie, false),
    async resume(inputs, session) {
      issueToken = inputs.get('_issued')?.at(-1) ?? '';
      const posted = inputs.get('_session')?.at(-1) ?? '';
      if (posted === '' || sessionId !== '') return shown ?? session;
      return readForm(posted, true);
    },
    async save({ inputs, page }) {
      const isAnswered = inputs.some(({ values }) => values.some((value) => value !== ''));
      if (sessionId === '' && isAnswered && shown?.allowPartial === true) await open().catch(goOnUnsaved);
      if (sessionId !== '') return call(rpcs.saveHostedAnswers, { sessionId, inputs, page });
      const checked = await call(rpcs.checkHostedAnswers, { formId, prefill, inputs, page });
      return { ...checked, saved: false };
    },
    async submit(answers) {
      const submitted =
        sessionId === ''
          ? await call(rpcs.submitHostedForm, { formId, prefill, ...answers })
          : await call(rpcs.submitHostedSession, { sessionId, ...answers });
      if (sessionId !== '' || cookie !== '') setCookie('');
      return submitted;
    },
    uploadTarget: async () => ({ case: 'sessionId', value: await open() }),
    sessionId: () => sessionId,
    isKeptByAddress: () => sessionId !== '' && sessionId === cookie,
  };
}

/** The inputs that the page's address fills in, by their names. */
function inputsOf({ url }: Request): Input[] {
  const query = new URLSearchParams(url.split('?').slice(1).join('?'));
  const names = [...new Set(query.keys())];
  return names.map((name) => create(InputSchema, { name, values: query.getAll(name) }));
}

function cookieOf({ headers }: Request): string {
  const pairs = (headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
}

/** Who has opened too many sessions can answer all the same: without them nothing is saved before the end. */
function goOnUnsaved(error: unknown): void {
  if (httpErrorOf(error).reason !== 'rate_limited') throw error;
}

const COOKIE = 'form_visit';

/** As long as a visitor's session takes answers. */
const COOKIE_SECONDS = 7 * 24 * 60 * 60;
