import type { Request } from 'express';
import type { Page } from '../../http/reply.ts';
import { attributes, html } from '../../text/html.ts';
import type { OwnerLanguage } from '../../text/words/owner/index.ts';
import { rootOf } from '../layout.ts';
import { renderOwnerPage } from './layout.ts';

/** The page that asks for an address; `wrong` is what was given that is none. */
export function renderSignIn(request: Request, language: OwnerLanguage, wrong?: string): Page {
  const { owner, words } = language;
  const isWrong = wrong !== undefined;
  const title = isWrong ? words.errorTitle.replace('{title}', owner.signInTitle) : owner.signInTitle;
  const body = html`<h1>${owner.signInTitle}</h1>
<p class="lead">${owner.signInText}</p>
<form method="post" action="${rootOf(request)}owner/sign-in" novalidate>
<div class="${isWrong ? 'field wrong' : 'field'}"><label for="email">${owner.emailLabel}</label>
${isWrong && html`<p class="error" id="email.error"><span class="sr">${words.error} </span>${owner.wrongEmail}</p>`}
<input class="control" id="email" name="email" type="email" autocomplete="email" required${attributes({
    value: wrong,
    'aria-invalid': isWrong && 'true',
    'aria-describedby': isWrong && 'email.error',
  })}></div>
<div class="actions"><button>${owner.signInButton}</button></div>
</form>`;
  return renderOwnerPage({ request, language, title, body });
}
