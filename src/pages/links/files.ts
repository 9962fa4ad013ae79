import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { html } from '../../domain/text/html.ts';
import { type RestError, restErrorOf } from '../../http/errors.ts';
import { type Page, prefersJson, sendFile, sendPage } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { languageOf, renderMessage } from '../messages.ts';

const { method: rpcs } = UploadsService;

/** Sends the file behind a signed link, or says what to do if the link does not work any more. */
export async function sendLinkedFile({ receive, request, response }: PageExchange): Promise<void> {
  try {
    await sendFile(response, receive(rpcs.getLinkedUpload, { token: String(request.params.token) }));
  } catch (error) {
    const failed = restErrorOf(error);
    const page = prefersJson(request) ? undefined : renderRefused(failed, request);
    if (page === undefined || response.headersSent) throw error;
    await sendPage(request, response, failed.status, page);
  }
}

/** Undefined where the page for every error says enough. */
function renderRefused({ reason }: RestError, request: PageExchange['request']): Page | undefined {
  const language = languageOf(request);
  const { words } = language;
  const isExpired = reason === 'expired';
  if (!isExpired && reason !== 'invalid_token') return undefined;
  return renderMessage({
    request,
    language,
    icon: isExpired ? 'clock' : 'problem',
    title: isExpired ? words.expiredTitle : words.linkInvalidTitle,
    text: isExpired ? words.fileExpiredText : words.fileInvalidText,
    more: html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${words.signIn}</a></p>`,
  });
}
