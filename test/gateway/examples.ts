import { contactForm } from '../support/server.ts';

/** A body that fits, for each operation that reads one, and the query of those that need one. */
export const examples: Record<string, Example> = {
  submit: { json: { answers: { email: 'a@example.com' } } },
  createSubmission: { json: { answers: { email: 'a@example.com' }, source: 'crm' } },
  submitDemo: { json: { name: 'Ada', email: 'ada@example.com', message: 'Hello' } },
  createForm: { json: contactForm },
  validateForm: { json: contactForm },
  publishFormVersion: { json: contactForm },
  changeFormOwner: { json: { email: 'next@example.com' } },
  activateForm: { json: { email: 'owner@example.com' }, query: '?token=t' },
  createSession: { json: { expires_in: 60, prefill: {}, metadata: { a: 1 } } },
  updateSession: { json: { extend_by: 60 } },
  submitSession: { json: { answers: {} } },
  createWebhook: { json: { url: 'https://example.com/hook', events: ['submission.created'] } },
  updateWebhook: { json: { active: false } },
  rotateWebhookSecret: { json: { effective_in: 0 } },
  replayDeliveries: { json: { status: 'failed' } },
  testWebhook: { json: {} },
  createKey: { json: { name: 'ci', scopes: ['forms:read'] } },
  createUpload: { body: 'content', type: 'application/octet-stream', query: '?field=cv&filename=cv.txt' },
};

export type Example = { json?: object; body?: string; type?: string; query?: string };
