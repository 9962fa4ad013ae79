import type { IncomingMessage } from 'node:http';
import { create } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import {
  EndingSchema,
  HostedService,
  HostedState,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { violationToMessage } from '../../domain/errors/failure.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { MAX_REFERRER_LENGTH } from '../../domain/limits/limits.ts';
import { CHARSET_INPUT } from '../../http/charset.ts';
import { restErrorOf, undefinedFor } from '../../http/errors.ts';
import { type FormInputs, fileParts, lastOf, readFormInputs } from '../../http/multipart.ts';
import { prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { idempotencyKeyOf } from '../../http/schemas.ts';
import type { RouteContext } from '../route-context.ts';

/**
 * Accepts the post of somebody's own HTML form: its inputs are the answers, its files are uploaded first. Answers
 * with a page or a redirect, unless JSON is preferred. Where answers are refused, the redirect is to `_error`, and
 * the page is the form itself.
 */
export async function acceptFormPost(context: RouteContext): Promise<void> {
  const { id: formId, request, response, options } = context;
  const { pages } = options;
  const idempotencyKey = idempotencyKeyOf(request);
  const { inputs, problems } = await readPost(context, formId);
  const site = postingSite(request, inputs, options.baseUrl);
  try {
    const { submissionId, ending, ignored } = await context.call(HostedService.method.submitPostedForm, {
      formId,
      inputs: inputsOf(inputs).filter(({ name }) => !controls.has(name)),
      source: inputs.get('_source')?.[0] ?? '',
      honeypot: inputs.get('_gotcha')?.join('') ?? '',
      nextUrl: inputs.get('_next')?.[0] ?? '',
      errorUrl: inputs.get('_error')?.[0] ?? '',
      pageUrl: site.again ? site.address : '',
      violations: problems.map(violationToMessage),
      language: lastOf(inputs, '_lang'),
      idempotencyKey,
    });
    if (prefersJson(request)) {
      const dropped = ignored.length > 0 && { ignored };
      return sendJson(response, 201, { ok: true, submission_id: submissionId, ...dropped });
    }
    if (ending?.redirectUrl) return response.redirect(303, ending.redirectUrl);
    sendPage(response, 201, pages.renderCompletion(ending ?? create(EndingSchema), request));
  } catch (error) {
    const refused = restErrorOf(error);
    if (refused.reason !== 'invalid' || prefersJson(request)) throw error;
    const errorPage = error instanceof ConnectError ? error.metadata.get('location') : null;
    if (errorPage !== null) return response.redirect(303, errorPage);
    const session = await findHostedForm(context, formId, inputs);
    if (session === undefined) throw error;
    // Pages tell what is wrong with a file from what is wrong with the list of them.
    const ofFiles = problems.map((problem) => ({ ...problem, path: `${problem.path}.file` }));
    const details = problems.length > 0 ? ofFiles : refused.details;
    const page = pages.renderRefusedPost(session, { request, inputs, details, site: site.address });
    sendPage(response, refused.status, page);
  }
}

/** The inputs of a post, and what is wrong with its files. */
async function readPost(context: RouteContext, formId: string) {
  const problems: Violation[] = [];
  const inputs = await readFormInputs(context.request, async ({ name, filename, content }) => {
    const target = { case: 'formId' as const, value: formId };
    const parts = fileParts({ target, fieldId: name, filename }, content);
    try {
      return (await context.stream(UploadsService.method.uploadFile, parts)).upload?.id;
    } catch (error) {
      const refused = restErrorOf(error);
      if (refused.reason !== 'invalid') throw error;
      // The further inputs are read all the same, so that they can be shown again.
      const path = `answers.${name.replace(/\[\d*\]$/, '')}`;
      problems.push(...refused.details.map((detail) => ({ ...detail, path })));
      return undefined;
    }
  });
  return { inputs, problems };
}

/** What the form's own page shows; undefined if it has none, or accepts no answers. */
async function findHostedForm(context: RouteContext, formId: string, inputs: FormInputs) {
  const asked = { formId, prefill: inputsOf(inputs) };
  const read = await context.call(HostedService.method.getHosted, asked).catch(undefinedFor('not_found'));
  return read?.session?.state === HostedState.OPEN ? read.session : undefined;
}

function inputsOf(inputs: FormInputs) {
  return [...inputs].map(([name, values]) => ({ name, values }));
}

/** The input in which the service's own page carries the site's address. */
const SITE = '_site';

/** Control names of an HTML form; no field can have them, since an id begins with a letter. */
const controls = new Set(['_next', '_error', '_gotcha', '_source', '_lang', CHARSET_INPUT, SITE]);

/**
 * The address of the page whose form was posted: http or https, by the request's `Referer` or `Origin`; empty if they
 * say none. A post of the service's own page, which it shows in place of a form whose post was refused, names the page
 * before it in `_site`: no other site can post with the service's own origin.
 */
function postingSite(request: IncomingMessage, inputs: FormInputs, baseUrl: string): PostingSite {
  const { origin = '', referer = '' } = request.headers;
  const site = webAddress(originOf(referer) === origin || origin === '' ? referer : origin);
  if (site === undefined) return { address: '', again: false };
  const again = site.origin === originOf(baseUrl) || site.host === request.headers.host;
  if (!again) return { address: site.href, again };
  const before = webAddress(lastOf(inputs, SITE));
  return { address: before?.href ?? '', again };
}

function originOf(address: string): string {
  return URL.parse(address)?.origin ?? '';
}

/** An address of the web without credentials; undefined for any other text. */
function webAddress(text: string): URL | undefined {
  const url = text.length > MAX_REFERRER_LENGTH ? null : URL.parse(text);
  return url && /^https?:$/.test(url.protocol) && url.username + url.password === '' ? url : undefined;
}

/** `again`: the post comes from the service's own page in place of the site's. */
type PostingSite = { address: string; again: boolean };
