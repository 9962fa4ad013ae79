import { create } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import * as pb from '../../../gen/forms/v1/definition_pb.js';
import { fieldFromMessage, fieldToMessage } from '../fields/field-message.ts';
import { memoize } from '../memoize.ts';
import type { Delivery, FormDefinition, Settings } from './definition.ts';
import { keyOf, listed, present } from './message-values.ts';
import { fieldTexts } from './translations.ts';

/**
 * Returns the JSON that a typed definition stands for, as `checkDefinition` reads it. Unset fields are
 * absent. Nothing is checked: values that have no meaning become JSON that the check refuses.
 */
export function definitionFromMessage(message: pb.FormDefinition): unknown {
  return present({
    name: message.name,
    slug: message.slug,
    description: message.description || undefined,
    fields: message.fields.map(fieldFromMessage),
    delivery: message.delivery && deliveryFromMessage(message.delivery),
    settings: message.settings && settingsFromMessage(message.settings),
    pages: listed(message.pages.map(pageFromMessage)),
    translations: mapped(message.translations, translationFromMessage),
  });
}

/** The typed message of a checked definition; `definitionFromMessage` and the check give it back unchanged. */
export function definitionToMessage(definition: FormDefinition): pb.FormDefinition {
  return create(pb.FormDefinitionSchema, {
    name: definition.name,
    slug: definition.slug,
    description: definition.description ?? '',
    fields: definition.fields.map(fieldToMessage),
    delivery: deliveryToMessage(definition.delivery),
    settings: settingsToMessage(definition.settings),
    pages: definition.pages ?? [],
    translations: definition.translations ?? {},
  });
}

/** The typed message of a definition's theme, if it has one. */
export const themeToMessage = memoize(
  (definition: FormDefinition): pb.Theme | undefined => settingsToMessage(definition.settings).theme,
);

function pageFromMessage({ title, description }: pb.Page): unknown {
  return present({ title: title || undefined, description: description || undefined });
}

function translationFromMessage(translation: pb.Translation): unknown {
  const { name, description, fields, pages, settings, autoresponse } = translation;
  return present({
    name: name || undefined,
    description: description || undefined,
    fields: mapped(fields, fieldTextsFromMessage),
    pages: listed(pages.map(pageFromMessage)),
    settings:
      settings &&
      present({
        submitLabel: settings.submitLabel || undefined,
        successMessage: settings.successMessage || undefined,
      }),
    autoresponse:
      autoresponse &&
      present({ subject: autoresponse.subject || undefined, message: autoresponse.message || undefined }),
  });
}

function fieldTextsFromMessage(texts: pb.FieldTranslation): unknown {
  return present({
    ...Object.fromEntries(fieldTexts.map((name) => [name, texts[name] || undefined])),
    options: mapped(texts.options, (label) => label),
    rows: mapped(texts.rows, (label) => label),
  });
}

/** The JSON of a map's values; undefined if it has none. */
function mapped<Value>(map: Record<string, Value>, json: (value: Value) => unknown): unknown {
  const entries = Object.entries(map).map(([key, value]) => [key, json(value)]);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function deliveryFromMessage({ channel }: pb.DeliveryTarget): unknown {
  switch (channel.case) {
    case 'email': {
      const { to, subject, replyTo, autoresponse } = channel.value;
      return present({
        type: 'email',
        to: listed(to),
        subject: subject || undefined,
        replyTo: replyTo || undefined,
        autoresponse: autoresponse && {
          to: autoresponse.to,
          subject: autoresponse.subject,
          message: autoresponse.message,
        },
      });
    }
    case 'webhook':
      return present({ type: 'webhook', url: channel.value.url, secret: channel.value.secret || undefined });
    case undefined:
      return {};
    default:
      return channel satisfies never;
  }
}

function deliveryToMessage(delivery: Delivery): pb.DeliveryTarget {
  if (delivery.type === 'webhook') {
    const value = create(pb.WebhookDeliverySchema, { url: delivery.url });
    return create(pb.DeliveryTargetSchema, { channel: { case: 'webhook', value } });
  }
  const { type: _, ...email } = delivery;
  const value = create(pb.EmailDeliverySchema, email);
  return create(pb.DeliveryTargetSchema, { channel: { case: 'email', value } });
}

function settingsFromMessage(settings: pb.Settings): unknown {
  const { theme, spam } = settings;
  return present({
    allowPartial: settings.allowPartial,
    submitLabel: settings.submitLabel || undefined,
    successMessage: settings.successMessage || undefined,
    redirectUrl: settings.redirectUrl || undefined,
    allowedOrigins: settings.allowedOrigins,
    embedOrigins: settings.embedOrigins,
    retentionDays: settings.retentionDays,
    closesAt: settings.closesAt && isoText(timestampDate(settings.closesAt)),
    maxSubmissions: settings.maxSubmissions,
    locale: settings.locale || undefined,
    publicPage: settings.publicPage,
    review: settings.review,
    theme:
      theme &&
      present({
        accentColor: theme.accentColor || undefined,
        logo: theme.logo || undefined,
        mode: keyOf(themeModes, theme.mode),
      }),
    spam:
      spam &&
      present({
        honeypot: spam.honeypot || undefined,
        minSeconds: spam.minTime && Number(spam.minTime.seconds) + spam.minTime.nanos / NANOS,
      }),
  });
}

function settingsToMessage({ closesAt, theme, spam, ...same }: Settings): pb.Settings {
  const seconds = Math.floor(spam.minSeconds ?? 0);
  const nanos = Math.round(((spam.minSeconds ?? 0) - seconds) * NANOS);
  return create(pb.SettingsSchema, {
    ...same,
    // Absent in what was published before the setting was there.
    publicPage: same.publicPage ?? true,
    closesAt: closesAt === undefined ? undefined : timestampFromMs(Date.parse(closesAt)),
    theme: create(pb.ThemeSchema, { ...theme, mode: themeModes[theme.mode] }),
    spam: create(pb.SpamSettingsSchema, {
      honeypot: spam.honeypot ?? false,
      minTime: spam.minSeconds === undefined ? undefined : { seconds: BigInt(seconds), nanos },
    }),
  });
}

/** A timestamp outside of what `Date` can hold becomes a text that the check refuses. */
function isoText(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'beyond time' : date.toISOString();
}

const NANOS = 1_000_000_000;

const themeModes: Record<Settings['theme']['mode'], pb.ThemeMode> = {
  light: pb.ThemeMode.LIGHT,
  dark: pb.ThemeMode.DARK,
  auto: pb.ThemeMode.AUTO,
};
