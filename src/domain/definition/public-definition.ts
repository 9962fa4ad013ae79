import { undecidedFields } from '../conditions/shown-fields.ts';
import type { Field } from '../fields/field.ts';
import { memoize } from '../memoize.ts';
import type { FormDefinition } from './definition.ts';
import type { Settings } from './settings.ts';
import type { Translation, Translations } from './translations.ts';

/**
 * What anybody may read of a published definition, to show it on a page of their own: not where answers go, nor what is
 * for agents alone. Conditions on agents' fields are decided by the defaults of those, as when nobody answers them.
 * Hidden fields stay, with their defaults: own pages set them, as HTML forms do.
 */
export const publicDefinition = memoize((definition: FormDefinition): PublicDefinition => {
  const { delivery: _, settings, translations, ...rest } = definition;
  const isOpen = ({ answeredBy }: Field) => answeredBy !== 'agent';
  const defaults = definition.fields.flatMap(({ id, defaultValue }) =>
    defaultValue === undefined ? [] : [[id, defaultValue]],
  );
  const fields = undecidedFields(definition.fields, isOpen, Object.fromEntries(defaults)).map(withoutHint);
  const ids = new Set(fields.map(({ id }) => id));
  return {
    ...rest,
    fields,
    settings: publicSettings(settings),
    ...(translations !== undefined && { translations: publicTranslations(translations, ids) }),
  };
});

/** The names of the settings that concern the person who fills the form. */
export const publicSettingNames = [
  'submitLabel',
  'successMessage',
  'redirectUrl',
  'closesAt',
  'locale',
  'theme',
  'review',
] as const satisfies (keyof Settings)[];

/** The other settings are as if they were not set. */
function publicSettings(settings: Settings): Settings {
  const shown = publicSettingNames.flatMap((name) =>
    settings[name] === undefined ? [] : [[name, settings[name]]],
  );
  const { review, theme } = settings;
  return {
    allowPartial: false,
    allowedOrigins: [],
    embedOrigins: [],
    publicPage: true,
    spam: {},
    review,
    theme,
    ...Object.fromEntries(shown),
  };
}

function publicTranslations(translations: Translations, ids: ReadonlySet<string>): Translations {
  const entries = Object.entries(translations).map(([language, translation]): [string, Translation] => {
    const { autoresponse: _, fields = {}, ...texts } = translation;
    const shown = Object.entries(fields).flatMap(([id, field]) =>
      ids.has(id) ? [[id, withoutHint(field)]] : [],
    );
    return [language, { ...texts, ...(shown.length > 0 && { fields: Object.fromEntries(shown) }) }];
  });
  return Object.fromEntries(entries);
}

function withoutHint<Hinted extends { agentHint?: string }>(hinted: Hinted) {
  const { agentHint: _, ...rest } = hinted;
  return rest;
}

export type PublicDefinition = Omit<FormDefinition, 'delivery'>;
