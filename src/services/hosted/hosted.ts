import type { ServiceImpl } from '@connectrpc/connect';
import type { HostedService } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { throttledWarning } from '../../telemetry/log.ts';
import type { ServiceContext } from '../context.ts';
import { visitToMessage } from './hosted-proto.ts';
import { postHosted } from './post-hosted.ts';
import { submitPostedForm } from './posted-form.ts';
import { noteOpened, requireRespondent, resolveVisit } from './resolve-visit.ts';
import { giveCode, sendCode } from './respondents.ts';
import { openVisitorsSession } from './saving.ts';

/**
 * Shows sessions and forms to people and takes their answers; a session's id is its credential. And HTML forms' posts.
 */
export function hostedService(context: ServiceContext): ServiceImpl<typeof HostedService> {
  const warn = throttledWarning(context.log, context.now, WARN_EVERY_MS, MAX_WARNINGS);
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

    async giveRespondentCode(request, call) {
      const { form, stored: session } = await resolveVisit(context, {
        ...request,
        prefill: [],
        posted: true,
      });
      return giveCode(context, { form, session }, request, call);
    },

    submitPostedForm: (request, call) => submitPostedForm(context, request, call, warn),
  };
}

/** Strangers choose what a post is to be answered with. */
const MAX_WARNINGS = 10;
const WARN_EVERY_MS = 60_000;
