import { type Client, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import type { Violation } from '../../../gen/forms/v1/errors_pb.js';
import { HostedService, type HostedSession, HostedState } from '../../../gen/forms/v1/hosted_pb.js';
import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import type { Field } from '../../domain/definition/definition.ts';
import { type PostedFile, readPost } from '../body.ts';
import { errorBody, failureOf } from '../failure.ts';
import { rootOf } from '../layout.ts';
import { languageOf } from '../message-pages.ts';
import { callOptions, prefersJson, sendJson, sendPage } from '../reply.ts';
import { type FormView, renderForm } from './form-page.ts';
import { fileNamesOf, textsOf } from './form-texts.ts';
import {
  type Hosted,
  openSession,
  readSession,
  refuseForeign,
  refuseOver,
  sessionIdOf,
} from './open-session.ts';
import { inputsOf, type Posted, readPosted, Uploads } from './posted.ts';
import { fieldIdOf, problemsOf } from './problems.ts';
import { type Answers, fieldsOf, stepAfter, stepFor, stepsOf, visibleIds } from './steps.ts';
import { submitAgain, submitPosted } from './submitting.ts';

/** The pages of a session: `show` answers GET, `take` answers POST. Both throw what went wrong. */
export function createSessionPages(transport: Transport): SessionPages {
  const hosted = createClient(HostedService, transport);
  const uploads = createClient(UploadsService, transport);
  return {
    async show(request, response) {
      const session = await openSession(hosted, request, response);
      const fields = fieldsOf(session);
      const answers: Answers = session.answers ?? {};
      const step = stepFor(fields, answers, session.resumed, request.query.step);
      const view = viewOf(session, fields, request, { answers, step, texts: textsOf(answers) });
      await sendPage(request, response, 200, renderForm(session, view));
    },

    async take(request, response) {
      const session = await readSession(hosted, request, response);
      refuseForeign(request, session);
      if (session.state === HostedState.SUBMITTED) {
        return submitAgain({ hosted, request, response, session });
      }
      refuseOver(session);
      const fields = fieldsOf(session);
      const received = new Uploads();
      const inputs = await readPost(request, (file) =>
        store(uploads, fields, file, received, request, response),
      );
      const posted = readPosted(fields, inputs, received);
      const exchange = { hosted, request, response, session, fields, posted };
      await answer(exchange).catch((error: unknown) => {
        // The first of two clicks has come through meanwhile: the second gets the same ending.
        const late = posted.goal.kind === 'forward' && failureOf(error).reason === 'conflict';
        return late ? submitPosted(exchange) : Promise.reject(error);
      });
    },
  };
}

/** Does what the person asked for, and shows what comes next. */
async function answer(exchange: Exchange): Promise<void> {
  const { posted, fields } = exchange;
  if (posted.goal.kind === 'save') return save(exchange);
  // A form of one page without conditions has nothing to find out before it is submitted.
  const plain = fields.every(({ page, visibleWhen }) => page === 1 && visibleWhen === undefined);
  if (plain && posted.violations.length === 0) return submit(exchange, {});

  const { hosted, request, response } = exchange;
  const forward = posted.goal.kind === 'forward';
  const saved = await hosted.saveHostedAnswers(
    { sessionId: sessionIdOf(request), inputs: inputsOf(posted.texts), page: forward ? posted.step : 0 },
    callOptions(request, response),
  );
  const answers: Answers = saved.answers ?? {};
  const visible = visibleIds(fields, answers);
  const steps = stepsOf(fields, visible);
  const here = fields.filter(({ id, page }) => page === posted.step && visible.has(id));
  const concerned = [...posted.violations, ...saved.violations].filter(({ path }) =>
    here.some(({ id }) => id === fieldIdOf(path) && posted.shown.has(id)),
  );
  if (forward && concerned.length > 0)
    return again(exchange, { answers, violations: concerned, step: posted.step });
  if (forward && here.some(({ id }) => !posted.shown.has(id))) {
    return again(exchange, { answers, violations: [], step: posted.step, revealed: true });
  }
  const step = stepAfter(posted.goal, posted.step, steps);
  if (step === undefined) return submit(exchange, answers);
  // Kept answers can be read again, so that the step gets an address the browser can go back to.
  if (saved.saved && saved.violations.length === 0) {
    response.set('cache-control', 'no-store').redirect(303, `?step=${step}`);
    return;
  }
  return again(exchange, { answers, violations: [], step });
}

/** Keeps answers while the person goes on typing: nothing but whether it worked is told. */
async function save({ hosted, request, response, posted }: Exchange): Promise<void> {
  const { saved, violations } = await hosted.saveHostedAnswers(
    { sessionId: sessionIdOf(request), inputs: inputsOf(posted.texts), page: 0 },
    callOptions(request, response),
  );
  sendJson(response, 200, { ok: true, saved, refused: violations.map(({ path }) => fieldIdOf(path)) });
}

async function submit(exchange: Exchange, answers: Answers): Promise<void> {
  const { request, session, fields, posted } = exchange;
  try {
    await submitPosted(exchange);
  } catch (error) {
    const { reason, violations } = failureOf(error);
    if (!(error instanceof ConnectError) || reason !== 'invalid' || prefersJson(request)) throw error;
    const ids = new Set(violations.map(({ path }) => fieldIdOf(path)));
    const step = fields.find(({ id }) => ids.has(id))?.page ?? posted.step;
    await again(exchange, {
      answers: { ...session.answers, ...answers },
      violations,
      step,
    });
  }
}

/** The form once more, with what was typed and what is wrong with it. */
async function again(exchange: Exchange, result: Result): Promise<void> {
  const { request, response, session, fields, posted } = exchange;
  const { answers, violations, step, revealed = false } = result;
  if (prefersJson(request)) {
    const refused = { reason: 'invalid', violations, submissionId: '' } as const;
    if (violations.length > 0) return sendJson(response, 422, errorBody(refused, 'The answers do not fit'));
    return sendJson(response, 200, { ok: true, page: step });
  }
  const problems = problemsOf(violations, fields, posted.texts, languageOf(request, session.locale));
  // Hidden fields are unknown here: a problem of theirs is named, but leads nowhere.
  const known = new Set(fields.map(({ id }) => id));
  const other = violations.filter(({ path }) => !known.has(fieldIdOf(path))).map(({ message }) => message);
  const texts = new Map([...textsOf(answers), ...posted.texts]);
  for (const { id, page } of fields) if (page !== step && !posted.texts.has(id)) texts.delete(id);
  const view = viewOf(session, fields, request, { answers, step, texts });
  const status = violations.length > 0 ? 422 : 200;
  const { fileNames, issueToken } = posted;
  const page = renderForm(session, {
    ...view,
    problems,
    otherProblems: other,
    revealed,
    fileNames,
    issueToken: issueToken || session.issueToken,
  });
  await sendPage(request, response, status, page);
}

/** A file is stored as soon as it has come; what the field does not take is told beside it. */
async function store(
  uploads: Client<typeof UploadsService>,
  fields: readonly Field[],
  { name, filename, content }: PostedFile,
  received: Uploads,
  request: Request,
  response: Response,
): Promise<void> {
  if (!fields.some(({ id, type }) => id === name && type === 'file')) return;
  if (content === undefined) return received.refuse(name, 'too_big', 'The file is too large');
  try {
    const target = { case: 'sessionId', value: sessionIdOf(request) } as const;
    const message = { target, fieldId: name, filename, content };
    const { upload } = await uploads.createUpload(message, callOptions(request, response));
    if (upload !== undefined)
      received.stored.push({ fieldId: name, uploadId: upload.id, filename: upload.filename });
  } catch (error) {
    const { reason, violations } = failureOf(error);
    if (reason !== 'invalid' && reason !== 'too_large') throw error;
    received.refuse(name, violations[0]?.code ?? 'too_big', violations[0]?.message ?? 'The file is refused');
  }
}

function viewOf(
  session: HostedSession,
  fields: readonly Field[],
  request: Request,
  state: Pick<FormView, 'answers' | 'step' | 'texts'>,
): FormView {
  return {
    language: languageOf(request, session.locale),
    root: rootOf(request),
    fields,
    fileNames: fileNamesOf(state.answers),
    problems: new Map(),
    otherProblems: [],
    revealed: false,
    issueToken: session.issueToken,
    ...state,
  };
}

export type SessionPages = {
  show: (request: Request, response: Response) => Promise<void>;
  take: (request: Request, response: Response) => Promise<void>;
};

type Exchange = {
  hosted: Hosted;
  request: Request;
  response: Response;
  session: HostedSession;
  fields: readonly Field[];
  posted: Posted;
};

type Result = { answers: Answers; violations: readonly Violation[]; step: number; revealed?: boolean };
