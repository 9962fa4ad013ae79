import type { CallOptions } from '@connectrpc/connect';
import { required, violationsOf } from '../domain/violations.ts';
import { readJson } from './body.ts';
import type { Clients } from './clients.ts';
import { formTypes, isFormPost, readForm } from './form-body.ts';
import { callOptions, prefersJson, sendJson, sendPage } from './reply.ts';
import { type Exchange, idOf, type Route, refuse } from './route.ts';
import { present } from './schemas/common.ts';
import { activatedReply, emailBody, statusOf, tokenQuery } from './schemas/forms.ts';

/** Where a draft is published. The page that asks for the address by GET is the hosted pages'. */
export const ACTIVATION_PATH = '/api/forms/:id/activate';

/** The route that publishes a draft. */
export const activationRoutes: Route[] = [
  {
    method: 'post',
    path: ACTIVATION_PATH,
    operation: {
      name: 'activateForm',
      tag: 'Forms',
      summary: 'Publish a draft; the address becomes its owner and gets a confirmation',
      access: 'public',
      query: tokenQuery,
      body: emailBody,
      forms: formTypes,
      errors: [401],
      reply: activatedReply,
    },
    handle: activate,
  },
];

async function activate({ clients, request, response, pages }: Exchange): Promise<void> {
  // The token stands in the address: neither a cache nor the next page may learn it.
  response.setHeader('referrer-policy', 'no-referrer');
  const { token = '' } = tokenQuery.safeParse(request.query).data ?? {};
  const options = callOptions(request, response);
  const call = { formId: idOf(request), token };
  if (token === '') await refusedCall(clients, call, options);

  const email = await readEmail(request, () => refusedCall(clients, call, options));
  const { form, webhookSecret } = await clients.forms.activateForm({ ...call, email }, options);
  const { id, name, slug, status, currentVersionId } = present(form);
  if (isFormPost(request) && !prefersJson(request)) {
    return sendPage(
      response,
      200,
      pages.renderActivated({ formId: id, formName: name, email, webhookSecret }, request),
    );
  }
  sendJson(response, 200, {
    form: { id, name, slug, status: statusOf(status), current_version_id: currentVersionId },
    message: `The form is published. A confirmation was sent to ${email}.`,
    ...(webhookSecret === '' ? {} : { webhook_secret: webhookSecret }),
  });
}

async function readEmail(request: Exchange['request'], refused: () => Promise<unknown>): Promise<string> {
  if (isFormPost(request)) {
    const inputs = await readForm(request, async () => undefined);
    const email = inputs.get('email')?.at(-1);
    if (email === undefined) throw await refuse('invalid', [required('email')], refused);
    return email;
  }
  const { value, problems } = await readJson(request);
  const body = problems.length > 0 ? undefined : emailBody.safeParse(value);
  if (body?.success) return body.data.email;
  throw await refuse('invalid', body ? violationsOf(body.error, value) : problems, refused);
}

/** A call that fails by its address, unless it fails by its token first. */
function refusedCall(clients: Clients, call: { formId: string; token: string }, options: CallOptions) {
  return clients.forms.activateForm({ ...call, email: '' }, options);
}
