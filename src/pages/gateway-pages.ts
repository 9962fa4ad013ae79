import { renderActivated } from './activation/activation-pages.ts';
import { renderEnding, renderError, renderProblems } from './message-pages.ts';

/** The pages with which other doors answer a browser's form post; each brings the headers it needs. */
export const pages = {
  renderActivated,
  renderEnding: (...[ending, request]: Parameters<typeof renderEnding>) => renderEnding(ending, request),
  renderError: (...[status, reason, request]: Parameters<typeof renderError>) =>
    renderError(status, reason, request),
  renderProblems,
};
