import { z } from 'zod';
import { FormsService, type PublicForm, PublicFormSchema } from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { publicSettingNames } from '../../domain/definition/public-definition.ts';
import { settingsSchema } from '../../domain/definition/settings.ts';
import { fieldSchema } from '../../domain/fields/field.ts';
import { optional } from '../../domain/json/optional.ts';
import { ifNoneMatch } from '../../http/schemas.ts';
import { from, present, shape } from '../../http/shape.ts';
import { type Route, route, tagged } from '../route.ts';
import { definitionReply, formId } from './schemas.ts';

const { getPublicForm } = FormsService.method;

const version = shape(PublicFormSchema, '', {
  id: from('version_id', z.string()),
  number: from('version', z.int()),
  checksum: z.string().describe('SHA-256 of the whole definition’s canonical JSON, in hex.'),
});

const field = fieldSchema.safeExtend({
  hosted_only: optional(
    z.literal(true),
    'Only a person may answer it, on the hosted page: submissions of own pages can’t hold it.',
  ),
});

const publicSettings = settingsSchema.pick({
  submitLabel: true,
  successMessage: true,
  redirectUrl: true,
  closesAt: true,
  locale: true,
  theme: true,
  review: true,
} satisfies Record<(typeof publicSettingNames)[number], true>);

/** A published form, in the version that is asked. */
export const publicForm = z
  .object({
    id: formId,
    version: version.schema,
    open: z.boolean().describe('Whether the form takes submissions now.'),
    ...definitionSchema.pick({ name: true, slug: true, description: true, pages: true, translations: true })
      .shape,
    fields: z.array(field),
    settings: publicSettings,
  })
  .meta({ id: 'PublicForm', description: 'A published form, as anybody may read it.' });

const reply = z.object({ form: publicForm });

/** The route that own pages read a form by. */
export const publicFormRoutes: Route[] = tagged('Forms', [
  route('get', '/api/forms/:id', getPublicForm, {
    summary: 'What a published form asks, for a page of one’s own',
    query: z.object({}),
    headers: ifNoneMatch,
    errors: [410],
    notModified: true,
    reply,
    answer({ form }, { response }) {
      response.setHeader('cache-control', `public, max-age=${MAX_AGE_SECONDS}`);
      // Which origins may read it depends on the form.
      response.vary('origin');
      return { form: publicFormOf(present(form)) };
    },
  }),
]);

/** A published form as replies have it. */
export function publicFormOf(message: PublicForm): z.input<typeof publicForm> {
  const { id, open, definition } = message;
  const { fields, settings = {}, ...texts } = definitionReply(definition);
  const shown = new Set<string>(publicSettingNames);
  return {
    id,
    version: version.of(message),
    open,
    ...texts,
    fields: fields.map((each) => ({
      ...each,
      ...(each.answeredBy === 'human' && { hosted_only: true as const }),
    })),
    settings: Object.fromEntries(Object.entries(settings).filter(([name]) => shown.has(name))),
  };
}

/** How long browsers and proxies may show a form that has changed. */
const MAX_AGE_SECONDS = 60;
