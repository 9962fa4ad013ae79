import { z } from 'zod';
import { answerChannels } from '../../domain/answers/provenance.ts';
import { optional } from '../../domain/json/optional.ts';
import { jsonObject } from '../../http/schemas.ts';
import { timeReply } from '../../http/shape.ts';
import type { Schemas } from './schemas.ts';

/** The requests that the service sends to registered endpoints, by event. */
export function describeWebhooks(schemas: Schemas): Record<string, DescribedWebhook> {
  return Object.fromEntries(events.map((event) => [event.name, { post: describe(event, schemas) }]));
}

function describe(
  { name, summary, data, example }: DescribedEvent,
  schemas: Schemas,
): DescribedWebhook['post'] {
  const body = envelope.extend({ event: z.literal(name), data }).meta({ id: nameOf(name) });
  const sent = { id: 'evt_01jd3kvz8nf9t8x1v0c9m2q4ra', event: name, createdAt: AT, data: example };
  return {
    operationId: nameOf(name),
    tags: ['Webhooks'],
    security: [],
    summary,
    description:
      'Sent until the endpoint answers 2xx, at least once, with the same `webhook-id` each time. Check the signature over the raw body first.',
    parameters: headers.map((header) => ({ ...header, in: 'header', required: true, schema: text })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemas.output(body), example: sent } },
    },
    responses: {
      '2XX': { description: 'Received. Within 10 seconds; the body is not read.' },
      410: { description: 'Not wanted any more: turns the webhook off.' },
      default: { description: 'Not received: sent again later. `Retry-After` is honoured.' },
    },
  };
}

/** `submission.created` is `SubmissionCreatedEvent`. */
function nameOf(event: string): string {
  return `${event.replaceAll(/(?:^|[._])(\w)/g, (_, letter) => letter.toUpperCase())}Event`;
}

const AT = '2026-11-21T08:00:00.000Z';

const text = { type: 'string' };

const headers = [
  {
    name: 'X-Service-Signature',
    description:
      '`t=<unix seconds>, v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed by the webhook’s whole secret.',
  },
  { name: 'webhook-id', description: 'The event’s id, the same over retries and replays.' },
  { name: 'webhook-timestamp', description: 'When it was sent, in Unix seconds.' },
  {
    name: 'webhook-signature',
    description: 'As Standard Webhooks has it: `v1,<base64>`, several by blanks.',
  },
];

const envelope = z.object({ id: z.string(), createdAt: timeReply });

const provenance = optional(
  z.record(
    z.string(),
    z
      .object({
        by: z.enum(answerChannels),
        at: timeReply,
        verified: optional(z.literal(true), 'By a person who gave a code emailed to their address.'),
        keyId: optional(z.string(), 'The key that brought it, if one of the project did.'),
      })
      .meta({ id: 'EventAnswerOrigin' }),
  ),
  'Where each answer comes from, by field id.',
);

const submissionData = (status: 'accepted' | 'complete') =>
  z.object({
    submissionId: z.string(),
    formId: z.string(),
    formVersionId: z.string(),
    language: optional(
      z.string(),
      'Of a translated form, the language in which it was filled in, as a BCP 47 tag.',
    ),
    formCreatedBy: z.string().describe('Who made the form: `public`, or the id of a key.'),
    sessionId: z.string().nullable(),
    source: z.string(),
    status: z.literal(status),
    answers: jsonObject.describe('By field id.'),
    provenance,
    metadata: jsonObject.describe('The metadata of its session.'),
    replaces: optional(z.string(), 'The submission that it corrects.'),
    outcome: optional(z.literal('submitted'), 'Where it ended a session.'),
    contextChecksum: optional(z.string(), 'SHA-256 of its session’s context, in hex.'),
    respondent: optional(
      z.object({ method: z.literal('email_code'), email: z.string(), verifiedAt: timeReply }),
      'Who answered on the page with a code emailed to their address.',
    ),
    createdAt: timeReply,
  });

const sessionData = z.object({
  sessionId: z.string(),
  formId: z.string(),
  outcome: z.enum(['declined', 'expired', 'cancelled']).describe('How it ended. None of these is consent.'),
  reason: optional(z.string(), 'Why the person declined, in their words.'),
  expiresAt: timeReply,
  metadata: jsonObject,
  contextChecksum: optional(z.string(), 'SHA-256 of its context’s canonical JSON, in hex.'),
  partialAnswers: optional(jsonObject, 'Only with `allowPartial`.'),
  provenance: provenance.describe('Where each partial answer comes from, by field id.'),
});

const idsData = z.object({ submissionId: z.string(), formId: z.string(), sessionId: z.string().nullable() });

const submissionExample = {
  submissionId: 'sub_01jd3kvz8nf9t8x1v0c9m2q4ra',
  formId: 'form_01jd3kvz8nf9t8x1v0c9m2q4ra',
  formVersionId: 'ver_01jd3kvz8nf9t8x1v0c9m2q4ra',
  formCreatedBy: 'public',
  sessionId: null,
  source: 'api',
  status: 'accepted',
  answers: { email: 'ada@example.com' },
  metadata: {},
  createdAt: AT,
};

const sessionExample = {
  sessionId: 'sess_4t1fz0q6x8r2n9b3k7m5c1v0w4j8h2g6',
  formId: 'form_01jd3kvz8nf9t8x1v0c9m2q4ra',
  outcome: 'expired',
  expiresAt: AT,
  metadata: { customer: 'c_17' },
};

const { submissionId, formId, answers } = submissionExample;
const { sessionId, metadata } = sessionExample;

const events: DescribedEvent[] = [
  {
    name: 'submission.created',
    summary: 'A submission came by API',
    data: submissionData('accepted'),
    example: submissionExample,
  },
  {
    name: 'submission.completed',
    summary: 'A person completed a submission on the hosted page; webhooks for `submission.created` get it',
    data: submissionData('complete'),
    example: { ...submissionExample, status: 'complete', sessionId },
  },
  {
    name: 'session.expired',
    summary: 'The time of a session that nobody submitted is over',
    data: sessionData,
    example: sessionExample,
  },
  {
    name: 'session.cancelled',
    summary: 'A session was ended by its maker',
    data: sessionData,
    example: { ...sessionExample, outcome: 'cancelled' },
  },
  {
    name: 'session.declined',
    summary: 'A person declined to answer in a session',
    data: sessionData,
    example: { ...sessionExample, outcome: 'declined', reason: 'It is not mine to decide.' },
  },
  {
    name: 'submission.deleted',
    summary: 'A submission was deleted: by a call, after the retention time of its form, or with its form',
    data: idsData,
    example: { submissionId, formId, sessionId: null },
  },
  {
    name: 'submission.replaced',
    summary: 'A person corrected a submission, beside the event of the correction',
    data: idsData.extend({ replacedBy: z.string().describe('The one that counts in its place.') }),
    example: { submissionId, formId, sessionId: null, replacedBy: 'sub_01jd3kw2m4f9t8x1v0c9m2q4rb' },
  },
  {
    name: 'session.notified',
    summary: 'Somebody is to be notified of a session; only the webhook that its `notify` names gets it',
    data: z.object({
      sessionId: z.string(),
      formId: z.string(),
      url: z.string().describe('The page on which the person answers.'),
      project: z.string().describe('Who asks.'),
      question: z.string().describe('The name of the form.'),
      title: optional(z.string(), 'Of the context.'),
      message: z.string().exactOptional(),
      reminder: z.int().describe('0 at first, then the number of the reminder.'),
      expiresAt: timeReply,
      metadata: jsonObject,
    }),
    example: {
      sessionId,
      formId,
      url: `https://forms.example.com/f/${sessionId}`,
      project: 'default',
      question: 'Deploy 2.1?',
      message: 'The tests have passed.',
      reminder: 0,
      expiresAt: AT,
      metadata,
    },
  },
  {
    name: 'session.ended',
    summary: 'A session with a callback ended, however; its callback alone gets it',
    data: z.object({
      sessionId: z.string(),
      formId: z.string(),
      outcome: z.enum(['submitted', 'declined', 'expired', 'cancelled']),
      metadata: jsonObject,
      submissionId: optional(z.string(), 'Only if it was submitted.'),
      answers: optional(
        jsonObject,
        'By field id; only if it was submitted and the key that made the session may read them.',
      ),
      reason: optional(z.string(), 'Of who declined, in the same case.'),
    }),
    example: { sessionId, formId, outcome: 'submitted', metadata, submissionId, answers },
  },
  {
    name: 'webhook.test',
    summary: 'Somebody wants to see whether the webhook works; the answers are made up',
    data: z.object({ webhookId: z.string(), formId: z.string().nullable(), answers: jsonObject }),
    example: { webhookId: 'wh_01jd3kvz8nf9t8x1v0c9m2q4ra', formId: null, answers },
  },
];

/** What is sent, as the document shows it. */
export type DescribedWebhook = {
  post: {
    requestBody: { required: true; content: { 'application/json': { schema: object; example: object } } };
    [key: string]: unknown;
  };
};

type DescribedEvent = { name: string; summary: string; data: z.ZodType; example: object };
