import type { HandlerContext } from '@connectrpc/connect';
import type { SubmitPostedFormRequest } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import { completionOf } from '../submissions/completion.ts';
import { allowedRedirect, checkOrigin } from '../submissions/origins.ts';
import { acceptRequest, readRequest } from '../submissions/submission-request.ts';

/**
 * Accepts the inputs that somebody's own HTML form posts, and says what its user is to see. A post without any
 * lacks answers.
 */
export async function submitPostedForm(
  context: ServiceContext,
  { formId, inputs, nextUrl, pageUrl, ...rest }: SubmitPostedFormRequest,
  call: HandlerContext,
) {
  const { requestHeader } = call;
  const form = await publishedForm(context.forms, formId);
  const { definition } = form.version;
  const { allowedOrigins } = definition.settings;
  checkOrigin(requestHeader, allowedOrigins, context.settings);
  const given = inputs.length > 0 ? readInputs(definition, inputs) : undefined;
  const request = readRequest({ ...rest, answers: given }, form);
  const { submissionId, answers } = await acceptRequest(context, form, request, call);
  const redirectUrl = allowedRedirect(nextUrl, requestHeader, allowedOrigins, pageUrl);
  return { submissionId, ending: completionOf(definition, answers, { redirectUrl, requestHeader }) };
}
