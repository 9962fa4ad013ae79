import { z } from 'zod';
import {
  ActivateFormResponseSchema,
  FormSchema,
  FormsService,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { required, violationsOf } from '../../domain/errors/violations.ts';
import { limitsOf } from '../../domain/methods.ts';
import { readJson } from '../../http/body.ts';
import { contentError, restErrorOf } from '../../http/errors.ts';
import { formTypes, isFormPost, readFormInputs } from '../../http/multipart.ts';
import { prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { idempotencyKey, idempotencyKeyOf } from '../../http/schemas.ts';
import { shape } from '../../http/shape.ts';
import { customRoute, type Route, tagged } from '../route.ts';
import type { RouteContext } from '../route-context.ts';
import { emailBody, formHead, sharedForm, webhookSecret } from './schemas.ts';

/** The path that publishes a draft by POST. GET shows the page that asks for the address, in src/pages/activation. */
export const ACTIVATION_PATH = '/api/forms/:id/activate';

const { method: rpcs } = FormsService;

const tokenQuery = z.object({
  token: z.string().min(1).describe('From `activate_url`; it works once.'),
});

const activated = shape(FormSchema, '', {
  ...formHead,
  current_version_id: z.string(),
  share: sharedForm,
});

const activatedReply = shape(ActivateFormResponseSchema, '', {
  form: activated,
  message: z
    .string()
    .describe('What happens to the confirmation email, and to responses until it is confirmed.'),
  webhook_secret: webhookSecret,
});

/** The route that publishes a draft. */
export const activationRoutes: Route[] = tagged('Forms', [
  customRoute('post', ACTIVATION_PATH, rpcs.activateForm, {
    summary: 'Publish a draft; the address becomes its owner and is asked by email to confirm',
    query: tokenQuery,
    body: emailBody,
    forms: formTypes,
    headers: { 'Idempotency-Key': idempotencyKey },
    errors: [401, 409],
    reply: activatedReply.schema,
    handle: activate,
  }),
]);

async function activate(context: RouteContext): Promise<void> {
  const { request, response, options } = context;
  const { token = '' } = tokenQuery.safeParse(request.query).data ?? {};
  const draft = { formId: context.id, activationToken: token };
  if (token === '') await refuseStrangers(context, draft);
  const email = await readEmail(request).catch(async (error: unknown) => {
    await refuseStrangers(context, draft);
    throw error;
  });
  const isPage = isFormPost(request) && !prefersJson(request);
  const browser = isPage ? options.pages.browserOf(request, response) : '';
  const input = { ...draft, email, browser, idempotencyKey: idempotencyKeyOf(request) };
  const done = await context.call(rpcs.activateForm, input).catch((error: unknown) => {
    if (isPage && restErrorOf(error).reason === 'token_used') return undefined;
    throw error;
  });
  // The page of the link says that the form is active.
  if (done === undefined) return response.redirect(303, request.originalUrl);
  if (isPage) return sendPage(response, 200, options.pages.renderActivated(done, email, request));
  sendJson(response, 200, activatedReply.of(done));
}

/** Throws unless the token can publish the draft: anyone who has none learns nothing about the body. */
async function refuseStrangers(context: RouteContext, draft: Draft): Promise<void> {
  await context.admit();
  await context.call(rpcs.getActivation, draft);
}

async function readEmail(request: RouteContext['request']): Promise<string> {
  if (isFormPost(request)) {
    const inputs = await readFormInputs(request, async () => undefined);
    const email = inputs.get('email')?.at(-1);
    if (email === undefined) throw contentError([required('email')], undefined);
    return email;
  }
  const { value, problems } = await readJson(request, limitsOf(rpcs.activateForm));
  if (problems.length > 0) throw contentError(problems, undefined);
  const body = emailBody.safeParse(value);
  if (body.error) throw contentError(violationsOf(body.error, value), value);
  return body.data.email;
}

type Draft = { formId: string; activationToken: string };
