import { z } from 'zod';
import { FormsService } from '../../../gen/forms/v1/forms_pb.js';
import { type Route, route, tagged } from '../route.ts';
import { present, timeOf, timeReply } from '../schemas.ts';
import { definitionBody } from './definition-body.ts';
import { form, formOf, webhookSecret } from './shapes.ts';

const { method: rpcs } = FormsService;

const version = z.object({
  id: z.string(),
  number: z.int(),
  checksum: z.string().describe('SHA-256 of the definition’s canonical JSON, in hex.'),
  created_at: timeReply,
});

/** The routes of a form's versions. */
export const versionRoutes: Route[] = tagged('Forms', [
  route('post', '/v1/forms/:id/versions', rpcs.publishFormVersion, {
    ...definitionBody,
    summary: 'Publish a new definition of a published form; an unchanged one keeps its version',
    input: ({ id, body }) => ({ formId: id, definition: body }),
    status: 201,
    errors: [409, 410],
    reply: z.object({ form, version, webhook_secret: webhookSecret }),
    answer: ({ form, version, webhookSecret }) => ({
      form: formOf(form),
      version: {
        id: present(version).id,
        number: present(version).number,
        checksum: present(version).checksum,
        created_at: timeOf(version?.createTime),
      },
      ...(webhookSecret === '' ? {} : { webhook_secret: webhookSecret }),
    }),
  }),
]);
