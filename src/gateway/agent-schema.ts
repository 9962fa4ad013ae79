import type { Request, Response } from 'express';
import { z } from 'zod';
import { AgentSchemaSchema } from '../../gen/headlessforms/v1/agent_schema_pb.js';
import { from, shape } from '../http/shape.ts';
import { jsonObject } from './schemas.ts';

/** What a model needs to fill a form, as replies have it. */
export const agentSchema = shape(AgentSchemaSchema, 'AgentSchema', {
  form: from(
    ({ name, description }) => ({ name, ...(description !== '' && { description }) }),
    z.object({ name: z.string(), description: z.string().exactOptional() }),
  ),
  questions: from(
    ({ questions }) => questions.map(({ text }) => text),
    z
      .array(z.string())
      .describe(
        'In the order they are asked; of a session, those without an answer. Each begins with the id of its field: ' +
          '`reason (required): Why does it come back? Options: broken = It does not work, other`.',
      ),
  ),
  json_schema: jsonObject.describe('JSON Schema 2020-12 of the answers to them that a call may give.'),
  example: jsonObject.describe('Made-up answers of that shape, the least that must be given.'),
});

/** The header by which a caller chooses among the languages of a form. */
export const preferredLanguage = {
  'Accept-Language': z
    .string()
    .exactOptional()
    .describe(
      'The languages that are preferred; the texts are in the first that the form has, else in its own.',
    ),
};

/** The value of that header, on which the reply then depends. */
export function preferredLanguageOf({ headers }: Request, response: Response): string {
  response.vary('accept-language');
  return headers['accept-language'] ?? '';
}
