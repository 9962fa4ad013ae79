import type { ServiceImpl } from '@connectrpc/connect';
import type { HostedService } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { readInputs } from '../../domain/answers/answer-texts.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import {
  acceptRequest,
  allowedRedirect,
  checkOrigin,
  readRequest,
} from '../submissions/submission-request.ts';
import { completionOf, visitToMessage } from './hosted-proto.ts';
import { postHosted } from './post-hosted.ts';
import { noteOpened, requireRespondent, resolveVisit } from './resolve-visit.ts';
import { giveCode, sendCode } from './respondents.ts';
import { openVisitorsSession } from './saving.ts';

/**
 * Shows sessions and forms to people and takes their answers; a session's id is its credential. And HTML forms' posts.
 */
export function hostedService(context: ServiceContext): ServiceImpl<typeof HostedService> {
  return {
    async getHosted(request, call) {
      const visit = await resolveVisit(context, request);
      if (!request.preview) await noteOpened(context, visit);
      return { session: await visitToMessage(context, visit, request, call) };
    },

    async openHostedSession({ formId, prefill, issueToken, browser }, call) {
      const target = { formId, sessionId: '', prefill, posted: true, crossSite: false, browser };
      const visit = await resolveVisit(context, target);
      requireRespondent(context, visit);
      const { id } = await openVisitorsSession(context, visit, issueToken, call);
      return { sessionId: id };
    },

    postHosted: (request, call) => postHosted(context, request, call),

    async sendRespondentCode(request, call) {
      const { form, stored: session } = await resolveVisit(context, {
        ...request,
        prefill: [],
        posted: true,
      });
      return sendCode(context, { form, session }, request, call);
    },

    async giveRespondentCode(request) {
      const { form, stored: session } = await resolveVisit(context, {
        ...request,
        prefill: [],
        posted: true,
      });
      return giveCode(context, { form, session }, request);
    },

    // A post without any inputs lacks answers.
    async submitPostedForm({ formId, inputs, nextUrl, pageUrl, ...rest }, call) {
      const { requestHeader } = call;
      const form = await publishedForm(context.forms, formId);
      const { definition } = form.version;
      const { allowedOrigins } = definition.settings;
      checkOrigin(requestHeader, allowedOrigins, context.settings);
      const given = inputs.length > 0 ? readInputs(definition, inputs) : undefined;
      const request = readRequest({ ...rest, answers: given }, form, call);
      const { submissionId, answers } = await acceptRequest(context, form, request, call);
      const redirectUrl = allowedRedirect(nextUrl, requestHeader, allowedOrigins, pageUrl);
      return { submissionId, ending: completionOf(definition, answers, { redirectUrl, requestHeader }) };
    },
  };
}
