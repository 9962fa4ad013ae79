import { z } from 'zod';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { sessionSeconds } from '../../domain/limits/limits.ts';
import { durationOf, present } from '../../http/shape.ts';
import { defineTool, jsonObject } from '../tool.ts';
import { handOver, type Pending, resume } from './hand-over.ts';
import { formId, idempotencyKey } from './schemas.ts';
import { sessionOutput } from './sessions.ts';

const { method: rpcs } = SessionsService;

/** The tool that hands questions over to a person. */
export const askPerson = defineTool({
  name: 'ask_person',
  title: 'Ask a person',
  description:
    'Opens a session of a published form for a person, with what you know as prefill, and returns its link and, once ' +
    'the person has submitted, the answers. Clients that can ask their user or show the link do; else show the url to ' +
    'the person yourself and call wait_for_session. Use it for fields that only a person may answer, and for consent.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  rpcs: [[rpcs.createSession, rpcs.awaitSession]],
  input: z.strictObject({
    form_id: formId,
    prefill: jsonObject
      .exactOptional()
      .describe('Answers that you know, by field id; the person sees and can change them.'),
    message: z
      .string()
      .min(1)
      .max(500)
      .default('Please answer these questions.')
      .describe('What to tell the person above the questions or beside the link.'),
    expires_in: z
      .int()
      .min(sessionSeconds.min)
      .max(sessionSeconds.max)
      .default(sessionSeconds.default)
      .describe('Seconds until the link stops working.'),
    metadata: jsonObject
      .exactOptional()
      .describe('Data of yours, up to 16 KiB; it comes with the submission.'),
    return_url: z.string().min(1).exactOptional().describe('HTTPS. Where the person goes after submitting.'),
    allow_decline: z.boolean().default(false).describe('Whether the person may decline, with a reason.'),
    idempotency_key: idempotencyKey,
  }),
  output: sessionOutput,
  async run(input, exchange, context) {
    const { mcpReq } = context;
    const asked = mcpReq.requestState<Pending>();
    if (asked !== undefined) return resume(asked, mcpReq.inputResponses, exchange);
    const { session } = await exchange.call(rpcs.createSession, {
      subject: { case: 'formId', value: input.form_id },
      ...(input.prefill && { prefill: input.prefill }),
      ...(input.metadata && { metadata: input.metadata }),
      expiresIn: durationOf(input.expires_in),
      returnUrl: input.return_url ?? '',
      allowDecline: input.allow_decline,
      idempotencyKey: input.idempotency_key ?? '',
    });
    return handOver(present(session), input.message, exchange, context);
  },
});
