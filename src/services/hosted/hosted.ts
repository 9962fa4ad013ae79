import { ConnectError, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import type {
  GiveRespondentCodeRequest,
  HostedService,
  SendRespondentCodeRequest,
  SubmitPostedFormRequest,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { allowedRedirect, checkOrigin } from '../../domain/addresses/origins.ts';
import { foreignPost, namedInputs, readNamed } from '../../domain/answers/answer-texts.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { failureOf, invalid, reasonOf, violationFromMessage } from '../../domain/errors/failure.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import { foreignNames } from '../../domain/limits/limits.ts';
import { createNameNotes, type NoteNames } from '../../store/forms/ignored-names.ts';
import { throttledWarning, type Warn } from '../../telemetry/log.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm, refuseIfClosed } from '../forms/form-access.ts';
import { acceptRequest, readRequest } from '../submissions/submission-request.ts';
import { completionOf, visitToMessage } from './hosted-proto.ts';
import { postHosted, typedIn } from './post-hosted.ts';
import { previewForm } from './preview.ts';
import { noteOpened, requireRespondent, resolveVisit } from './resolve-visit.ts';
import { giveCode, sendCode } from './respondents.ts';
import { openVisitorsSession } from './saving.ts';

/**
 * Shows sessions and forms to people and takes their answers; a session's id is its credential. And HTML forms' posts.
 */
export function hostedService(context: ServiceContext): ServiceImpl<typeof HostedService> {
  const warn = throttledWarning(context.log, context.now, WARN_EVERY_MS, MAX_WARNINGS);
  const noteNames = createNameNotes(context.database);
  const pageOf = async (request: SendRespondentCodeRequest | GiveRespondentCodeRequest) => {
    const target = { ...request, prefill: [], posted: true, begun: [] };
    const { form, stored: session } = await resolveVisit(context, target);
    return { form, session };
  };
  return {
    async getHosted(request, call) {
      const visit = await resolveVisit(context, request);
      if (!request.preview) await noteOpened(context, visit);
      return { session: await visitToMessage(context, visit, request, call) };
    },

    async openHostedSession(request, call) {
      const visit = await resolveVisit(context, { ...request, sessionId: '', posted: true });
      requireRespondent(context, visit);
      const { session, begun } = await openVisitorsSession(context, visit, request, call);
      return { sessionId: session.id, begun };
    },

    postHosted: (request, call) => postHosted(context, request, call),

    sendRespondentCode: async (request, call) => sendCode(context, await pageOf(request), request, call),

    giveRespondentCode: async (request, call) => giveCode(context, await pageOf(request), request, call),

    submitPostedForm: (request, call) => submitPostedForm(context, request, call, { warn, noteNames }),

    previewForm: (request, call) => previewForm(context, request, call),
  };
}

/** Strangers choose what a post is to be answered with. */
const MAX_WARNINGS = 10;
const WARN_EVERY_MS = 60_000;

/**
 * Accepts the post of a site's own HTML form. Where its answers are refused and it names a page for that, the failure
 * has the page's address in its header `location`. `warn` logs what was not followed, and `noteNames` keeps for the owner
 * the names that no field has.
 *
 * A post without any inputs lacks answers.
 */
async function submitPostedForm(
  context: ServiceContext,
  { formId, inputs, language, nextUrl, errorUrl, pageUrl, violations, ...rest }: SubmitPostedFormRequest,
  call: HandlerContext,
  { warn, noteNames }: Notes,
) {
  const { requestHeader } = call;
  const form = await publishedForm(context.forms, formId);
  const { definition } = form.version;
  const { allowedOrigins } = definition.settings;
  checkOrigin(requestHeader, allowedOrigins, context.settings);
  const allowed = (url: string) => allowedRedirect(url, requestHeader, allowedOrigins, pageUrl);
  try {
    if (violations.length > 0) throw invalid(violations.map(violationFromMessage));
    const { byName, unknown } = namedInputs(definition.fields, inputs);
    const given = inputs.length > 0 ? readNamed(definition, byName, typedIn(language)) : undefined;
    const own = unknown.filter((name) => !name.startsWith('_'));
    const isSpam = rest.honeypot !== '';
    const foreign = isSpam || inputs.length === 0 || byName.size > 0 ? [] : foreignPost(definition, own);
    if (foreign.length > 0) {
      refuseIfClosed(form, context.now());
      throw invalid(foreign);
    }
    const request = readRequest({ ...rest, answers: given }, form, call);
    const { submissionId, answers } = await acceptRequest(context, form, request, call);
    const ignored = own
      .slice(0, foreignNames.kept)
      .map((name) => name.slice(0, foreignNames.length).toWellFormed());
    if (!isSpam && ignored.length > 0) {
      const lastAt = new Date(context.now()).toISOString();
      noteNames({ formId, names: ignored, lastAt }).catch((err: unknown) => warn({ err, formId }, NOT_NOTED));
    }
    const redirectUrl = allowed(nextUrl);
    const notFollowed = redirectUrl === '' ? wantedBy(definition, nextUrl) : '';
    if (notFollowed !== '') warn({ formId, name: notFollowed }, NOT_FOLLOWED);
    return {
      submissionId,
      ignored: ignored.slice(0, foreignNames.shown),
      ending: completionOf(definition, answers, { form, redirectUrl, notFollowed, requestHeader }),
    };
  } catch (error) {
    const address = withErrors(allowed(errorUrl), definition, error);
    if (address !== '' && error instanceof ConnectError) error.metadata.set('location', address);
    throw error;
  }
}

type Notes = { warn: Warn; noteNames: NoteNames };

/** The control or setting that would have sent the person elsewhere; empty: none. */
function wantedBy({ settings }: FormDefinition, nextUrl: string): string {
  if (nextUrl !== '') return '_next';
  return settings.redirectUrl === undefined ? '' : 'redirectUrl';
}

const NOT_NOTED = 'The names of inputs that no field has could not be noted for the owner of the form.';

const NOT_FOLLOWED =
  'The post of a site’s own HTML form was answered with the page of thanks, not with a redirect. "_next" must lead to ' +
  'the site’s own origin or one in allowedOrigins; "redirectUrl" applies to the form’s own page only.';

/**
 * The address with the fields whose answers were refused in its query, and nothing that was posted. Empty if no field
 * is to blame: the site’s page could not say what is wrong.
 */
function withErrors(address: string, { fields }: FormDefinition, error: unknown): string {
  if (address === '' || reasonOf(error) !== Reason.INVALID) return '';
  const known = new Set(fields.map(({ id }) => id));
  const refused = (failureOf(error)?.violations ?? []).map(violationFromMessage);
  const pairs = refused.flatMap(({ path, code }) => {
    const id = path.startsWith('answers.') ? fieldIdOf(path) : '';
    return known.has(id) ? [`${id}:${code}`] : [];
  });
  if (pairs.length === 0) return '';
  const url = new URL(address);
  url.searchParams.delete('error');
  for (const pair of [...new Set(pairs)].slice(0, MAX_PAIRS)) url.searchParams.append('error', pair);
  return url.href;
}

/** They go into an address. */
const MAX_PAIRS = 20;
