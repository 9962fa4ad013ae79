import { requestBytes } from './connection.ts';

/** A contact form as people make it: eight fields of the common kinds, and one webhook. */
export function contactForm(webhookUrl: string): Form {
  return {
    name: 'Contact',
    slug: 'contact',
    fields: [
      { id: 'name', type: 'text', required: true, maxLength: 200 },
      { id: 'email', type: 'email', required: true },
      { id: 'phone', type: 'phone' },
      { id: 'company', type: 'text', maxLength: 200 },
      { id: 'seats', type: 'number', min: 1, max: 10_000 },
      { id: 'topic', type: 'select', required: true, options: optionsOf(['sales', 'support', 'press']) },
      { id: 'consent', type: 'checkbox', required: true },
      { id: 'message', type: 'textarea', required: true },
    ],
    delivery: { type: 'webhook', url: webhookUrl, secret: webhookSecret },
  };
}

/** The secret of the webhooks made here. */
export const webhookSecret = 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz';

/** Answers to `contactForm`, 400 bytes as JSON. */
export const contactAnswers = {
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  phone: '+44 20 7946 0018',
  company: 'Analytical Engines Ltd',
  seats: 42,
  topic: 'sales',
  consent: true,
  message:
    'We would like to know whether the engine can be delivered before the spring, and what it takes to ' +
    'run one in a house without a steam engine of its own. Please answer by letter, since the wires are ' +
    'down again.',
};

/** The bytes of one submission of `contactAnswers` by REST. */
export function submissionRequest(path: string, headers: Record<string, string> = {}): Buffer {
  return requestBytes({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ source: 'bench', answers: contactAnswers }),
  });
}

function optionsOf(values: string[]) {
  return values.map((value) => ({ label: value, value }));
}

export type Form = Record<string, unknown> & { name: string; slug: string; fields: object[] };
