import { html } from '../../domain/text/html.ts';
import { renderShare } from '../activation.ts';
import { formHead, formIn } from './forms.ts';
import type { HandleOwner } from './handler.ts';

/** Shows how people reach a form. */
export const showShare: HandleOwner = async (exchange) => {
  const { request, language } = exchange;
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const body = html`${formHead(form, 'share', request, language)}
${form.share !== undefined && renderShare(form.share, form.name, language.words)}`;
  return { title: `${language.owner.share}: ${form.name}`, body, script: true };
};
