import { ConnectError, type HandlerContext } from '@connectrpc/connect';
import type { SubmitPostedFormRequest } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { readInputs } from '../../domain/answers/answer-texts.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { failureOf, invalid, reasonOf, violationFromMessage } from '../../domain/errors/failure.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import type { Warn } from '../../telemetry/log.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import {
  acceptRequest,
  allowedRedirect,
  checkOrigin,
  readRequest,
} from '../submissions/submission-request.ts';
import { completionOf } from './hosted-proto.ts';

/**
 * Accepts the post of a site's own HTML form. Where its answers are refused and it names a page for that, the failure
 * has the page's address in its header `location`. `warn` logs what was not followed.
 *
 * A post without any inputs lacks answers.
 */
export async function submitPostedForm(
  context: ServiceContext,
  { formId, inputs, nextUrl, errorUrl, pageUrl, violations, ...rest }: SubmitPostedFormRequest,
  call: HandlerContext,
  warn: Warn,
) {
  const { requestHeader } = call;
  const form = await publishedForm(context.forms, formId);
  const { definition } = form.version;
  const { allowedOrigins } = definition.settings;
  checkOrigin(requestHeader, allowedOrigins, context.settings);
  const allowed = (url: string) => allowedRedirect(url, requestHeader, allowedOrigins, pageUrl);
  try {
    if (violations.length > 0) throw invalid(violations.map(violationFromMessage));
    const given = inputs.length > 0 ? readInputs(definition, inputs) : undefined;
    const request = readRequest({ ...rest, answers: given }, form, call);
    const { submissionId, answers } = await acceptRequest(context, form, request, call);
    const redirectUrl = allowed(nextUrl);
    const notFollowed = redirectUrl === '' ? wantedBy(definition, nextUrl) : '';
    if (notFollowed !== '') warn({ formId, name: notFollowed }, NOT_FOLLOWED);
    return {
      submissionId,
      ending: completionOf(definition, answers, { redirectUrl, notFollowed, requestHeader }),
    };
  } catch (error) {
    const address = withErrors(allowed(errorUrl), definition, error);
    if (address !== '' && error instanceof ConnectError) error.metadata.set('location', address);
    throw error;
  }
}

/** The control or setting that would have sent the person elsewhere; empty: none. */
function wantedBy({ settings }: FormDefinition, nextUrl: string): string {
  if (nextUrl !== '') return '_next';
  return settings.redirectUrl === undefined ? '' : 'redirectUrl';
}

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
