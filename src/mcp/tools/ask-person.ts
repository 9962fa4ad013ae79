import { z } from 'zod';
import { SessionStatus, SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { fieldTypes } from '../../domain/fields/field.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { optional } from '../../domain/json/optional.ts';
import { MAX_QUESTIONS } from '../../domain/limits/limits.ts';
import { messageFrom } from '../../domain/messages.ts';
import { readSubject } from '../../http/body.ts';
import { contentError } from '../../http/errors.ts';
import { toolOptions } from '../../http/sessions.ts';
import { present } from '../../http/shape.ts';
import { defineTool, jsonObject, type RequestContext } from '../tool.ts';
import { handOver, type Pending, resume } from './hand-over.ts';
import { formId, idempotencyKey, option } from './schemas.ts';
import { outcomeOf, sessionOutput } from './sessions.ts';

const { method: rpcs } = SessionsService;

/** The most that models write of a question. The rest is checked, too. */
const question = jsonObject.meta({
  required: ['label'],
  properties: {
    label: { type: 'string', description: 'The question.' },
    type: { enum: fieldTypes, description: 'Default: text. select, radio and multi_select have options.' },
    required: { type: 'boolean' },
    description: { type: 'string', description: 'Help for the person.' },
    options: { type: 'array', items: option },
    id: { type: 'string', description: 'Names the answer. Default: made of the label.' },
  },
});

/** The tool that hands questions over to a person. */
export const askPerson = defineTool({
  name: 'ask_person',
  title: 'Ask a person',
  description:
    'Asks a person your own questions (questions or schema) or those of a published form (form_id), with what you know ' +
    'as prefill, and returns a link and, once the person has submitted, the answers. Clients that can ask their user or show the link do; ' +
    'else show the url to the person yourself and call wait_for_session. Use it for what only a person may answer, and ' +
    'for consent: only a submitted answer is one.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
  rpcs: [[rpcs.createSession, rpcs.awaitSession]],
  input: z.strictObject({
    questions: optional(
      z.array(question).max(MAX_QUESTIONS),
      'Up to 20, such as [{"label": "Which date suits?", "type": "date"}].',
    ),
    schema: optional(jsonObject, 'In place of questions: a flat JSON Schema of the answer that you want.'),
    form_id: optional(formId, 'In place of questions: a published form.'),
    ...toolOptions,
    idempotency_key: idempotencyKey,
  }),
  output: sessionOutput,
  async run({ questions, schema, form_id, message, ...input }, exchange, context) {
    const { mcpReq } = context;
    const asked = mcpReq.requestState<Pending>();
    if (asked !== undefined) return resume(asked, mcpReq.inputResponses, exchange);
    const asks = { ...input, ...subjectOf({ questions, schema, form_id }, exchange) };
    const opened = await exchange.call(rpcs.createSession, messageFrom(rpcs.createSession.input, asks));
    const session = present(opened.session);
    // A repeated call whose session has ended meanwhile.
    if (session.status !== SessionStatus.OPEN) return outcomeOf(opened, exchange);
    return handOver(session, message, exchange, context);
  },
});

/** What is asked. Throws a failure with all that is wrong with it. */
function subjectOf({ questions, form_id, schema }: Asked, { allowPrivateUrls }: RequestContext) {
  const asked = {
    ...(form_id !== undefined && { form_id }),
    ...(schema !== undefined && { schema }),
    ...(questions !== undefined && { definition: { fields: questions } }),
  };
  const subject = readSubject(asked, allowPrivateUrls);
  if (subject.ok) return subject.value;
  const violations = subject.violations.map(({ path, message, ...one }) => ({
    ...one,
    path: path.replace(/^definition\.(fields\.?)?/, 'questions.').replace(/\.$/, ''),
    message: path === '' ? 'Expected one of questions, schema and form_id' : message,
  }));
  throw contentError(violations, { ...asked, questions });
}

type Asked = {
  questions: JsonObject[] | undefined;
  form_id: string | undefined;
  schema: JsonObject | undefined;
};
