import { FormAvailability, type OwnedForm } from '../../../gen/headlessforms/v1/owners_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import type { Language } from '../../text/words.ts';
import { renderLink, renderShare } from '../activation.ts';
import { renderFormHead, withForm } from './forms.ts';

/** Shows how people reach a form. */
export const showShare = withForm(({ request, language }, form) => {
  const body = html`${renderFormHead(form, 'share', request, language)}
${form.share !== undefined && renderShare(form.share, form.name, language.words)}`;
  return { title: `${language.owner.share}: ${form.name}`, body, script: true };
});

/** What stands where a form has no responses yet; `here` is the address of its pages. */
export function noResponsesYet(
  { availability, share }: OwnedForm,
  here: string,
  { owner, words }: Language,
): Html {
  const isReached = availability === FormAvailability.OPEN && (share?.pageUrl ?? '') !== '';
  return html`<section class="share"><h2>${owner.noAnswers}</h2>
${
  share !== undefined &&
  isReached &&
  html`<p>${owner.shareNow}</p>
${renderLink(share, words)}
<p><a href="${here}/share">${owner.moreShare}</a></p>`
}</section>`;
}
