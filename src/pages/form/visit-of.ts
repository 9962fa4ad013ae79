import { HostedService, type HostedSession } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { HttpError } from '../../http/errors.ts';
import type { PageExchange } from '../handler.ts';
import { visitForm } from './form-visit.ts';
import { isPreview } from './preview.ts';
import type { Visit } from './visit.ts';

const { method: rpcs } = HostedService;

/** What an address that shows a form stands for: a session, or a form's own page. */
export function visitOf(exchange: PageExchange): Visit {
  const id = String(exchange.request.params.sessionId);
  return id.startsWith('form_') ? visitForm(exchange, id) : visitSession(exchange, id);
}

function visitSession(exchange: PageExchange, sessionId: string): Visit {
  const { call, request } = exchange;
  async function read(): Promise<HostedSession> {
    const { session } = await call(rpcs.getHostedSession, { sessionId, preview: isPreview(request) });
    if (session === undefined) throw new HttpError('not_found', 'There is no such session');
    exchange.session = session;
    return session;
  }
  return {
    read,
    resume: (_inputs, session) => Promise.resolve(session),
    save: (answers) => call(rpcs.saveHostedAnswers, { sessionId, ...answers }),
    submit: (answers) => call(rpcs.submitHostedSession, { sessionId, ...answers }),
    uploadTarget: () => Promise.resolve({ case: 'sessionId', value: sessionId }),
    sessionId: () => '',
    isKeptByAddress: () => true,
  };
}
