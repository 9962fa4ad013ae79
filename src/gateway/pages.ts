import type { IncomingMessage } from 'node:http';
import type { Ending } from '../../gen/forms/v1/submissions_pb.js';
import type { RefusalDetail } from '../domain/refusal.ts';

/**
 * The pages that answer a browser's form post in place of JSON.
 *
 * The gateway decides the status; a page brings its HTML and the headers it needs beside
 * `Content-Type`, such as its own `Content-Security-Policy`. The request is there for its
 * `Accept-Language`.
 */
export type Pages = {
  /** Thanks a person for a submission. */
  renderEnding(ending: Ending, request: IncomingMessage): Page;

  /** Names the refused answers to a static site's form (422). Paths are as in the JSON error. */
  renderProblems(violations: readonly RefusalDetail[], request: IncomingMessage): Page;

  /** Says why a form post was refused, with any other status; `reason` is the JSON error's. */
  renderError(status: number, reason: string, request: IncomingMessage): Page;

  /** Tells a person that their form is published. `webhookSecret` is empty unless one was made. */
  renderActivated(activated: Activated, request: IncomingMessage): Page;
};

/** What the page that follows an activation tells. */
type Activated = { formId: string; formName: string; email: string; webhookSecret: string };

export type Page = { html: string; headers: Record<string, string> };
