import { z } from 'zod';
import { isLoopback } from '../addresses/ip-address.ts';
import { isDatetime } from '../fields/date-time.ts';
import { textUpTo } from '../fields/text.ts';
import { optional } from '../json/optional.ts';
import { formLimits, instants, retentionDays } from '../limits/limits.ts';
import { isLanguageTag } from '../text/accept-language.ts';

/** What the database and the typed message hold. */
const MAX_INT32 = 2_147_483_647;

/** Which texts are origins is a rule of the definition: versions that are in use keep those that they have. */
const origins = z.array(textUpTo(300)).max(100).default([]);

/** The shape of an address of https, or of http on loopback. */
const redirectPattern =
  '^(https://|http://(([^/?#@:]+\\.)?localhost|127\\.[0-9]+\\.[0-9]+\\.[0-9]+|\\[::1\\])(:[0-9]+)?([/?#]|$))';

const themeSchema = z
  .strictObject({
    accentColor: z
      .string()
      .regex(/^#[0-9a-fA-F]{6}$/, 'Expected a color as #rrggbb')
      .exactOptional(),
    logo: optional(
      z.string().refine(isLogo, 'Expected a data: URL of a PNG, JPEG or WebP of at most 32 KiB'),
      'A data: URL of a PNG, JPEG or WebP of at most 32 KiB.',
    ),
    mode: z.enum(['light', 'dark', 'auto']).default('auto').describe('Auto: as the device has it.'),
  })
  .describe('How the hosted page looks.');

const spamSchema = z
  .strictObject({
    honeypot: optional(z.literal(true), 'Adds an input that only machines fill.'),
    minSeconds: optional(z.number().min(0).max(3600), 'Faster answers are spam.'),
  })
  .describe('How spam is detected.');

/** For how many days submissions are kept. */
export const daysKept = z.int().min(retentionDays.min).max(retentionDays.max);

/** The shape of a form's settings as people send them. */
export const settingsSchema = z
  .strictObject({
    allowPartial: z.boolean().default(false).describe('Keeps partial answers of a session.'),
    submitLabel: optional(textUpTo(formLimits.submitLabel), 'The words on the button.'),
    successMessage: optional(textUpTo(formLimits.successMessage), 'Said after a submission.'),
    redirectUrl: textUpTo(formLimits.url)
      .refine(isRedirectUrl, 'Expected an HTTPS URL, or one of http on loopback')
      .exactOptional()
      .meta({ format: 'uri', pattern: redirectPattern })
      .describe('Where the human goes after a submission; HTTPS, or http on loopback.'),
    allowedOrigins: origins.describe('Browser origins that may post; none: any.'),
    embedOrigins: origins.describe('Origins that may frame the hosted page; none: nobody.'),
    retentionDays: optional(daysKept, 'Absent: submissions are kept permanently.'),
    closesAt: textUpTo(64)
      .refine((time) => isDatetime(time) && isTimestamp(time), {
        error: 'Expected a date and time with offset, such as 2030-01-31T09:00:00Z',
        params: { code: 'invalid_date' },
      })
      .exactOptional()
      .meta({ format: 'date-time' })
      .describe('From then on the form accepts no responses; ISO 8601 with offset, in the years 1 to 9999.'),
    maxSubmissions: optional(z.int().min(1).max(MAX_INT32), 'How many submissions the form takes.'),
    locale: optional(
      textUpTo(formLimits.languageTag).refine(
        isLanguageTag,
        'Expected a language tag (BCP 47) such as en or de-CH',
      ),
      'The language of the page, BCP 47; absent: the one each person prefers.',
    ),
    compatibility: optional(
      z.enum(['none', 'backward', 'forward', 'full', 'full_transitive']),
      'Which changes a new version may not make; default: none. `full_transitive`: neither of any version that a submission or an open session has.',
    ),
    review: z.boolean().default(false).describe('Ends the page with a step that shows all answers.'),
    publicPage: z
      .boolean()
      .default(true)
      .describe('Whether the form has a page of its own, /f/form_…, for everyone who knows the address.'),
    onePerRespondent: optional(
      z.boolean(),
      'Takes one submission of each mailbox: the page asks for a code emailed to it. Default: false.',
    ),
    allowCorrection: optional(z.boolean(), 'Lets people correct what they sent.'),
    theme: themeSchema.prefault({}),
    spam: spamSchema.prefault({}),
  })
  .meta({ id: 'Settings', description: 'Form-level settings.' });

/** Returns settings with a canonical language tag and the closing time in UTC. */
export function normalizeSettings(settings: Settings): Settings {
  const { closesAt, locale, compatibility, onePerRespondent, allowCorrection, ...rest } = settings;
  return {
    ...rest,
    // Left out where it is the default: versions from before the setting keep their checksums.
    ...(compatibility !== undefined && compatibility !== 'none' && { compatibility }),
    ...(onePerRespondent === true && { onePerRespondent }),
    ...(allowCorrection === true && { allowCorrection }),
    ...(locale !== undefined && { locale: Intl.getCanonicalLocales(locale)[0] ?? locale }),
    ...(closesAt !== undefined && { closesAt: new Date(closesAt).toISOString() }),
  };
}

/** Whether a message, and its JSON, can hold the time: they have the years 1 to 9999, in UTC. */
function isTimestamp(time: string): boolean {
  const instant = Date.parse(time);
  return instant >= instants.firstMs && instant <= instants.lastMs;
}

/**
 * Whether a text is an origin as browsers send it, of http or https. None has a mark that would end a directive of a
 * content security policy, or a wildcard in it, though some of these may stand in the host of a URL.
 */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[\w.:[\]-]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** Checks the bytes too: pages show the logo, so it must be of the type that it claims. */
function isLogo(text: string): boolean {
  const [, type, data] = /^data:image\/(png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (type === undefined || data === undefined || data.length % 4 !== 0) return false;
  const bytes = Buffer.from(data, 'base64');
  return bytes.length <= MAX_LOGO_BYTES && kindOfPicture(bytes) === type;
}

function kindOfPicture(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 8).equals(PNG)) return 'png';
  if (bytes.subarray(0, 3).equals(JPEG)) return 'jpeg';
  const riff = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
  return riff ? 'webp' : undefined;
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const JPEG = Buffer.from([0xff, 0xd8, 0xff]);
const MAX_LOGO_BYTES = 32 * 1024;

/** Checked settings, every default filled in. */
export type Settings = z.output<typeof settingsSchema>;

/** Whether a text is an `https` address without credentials and spaces, to send a browser to. */
export function isHttpsUrl(text: string): boolean {
  if (/\s/.test(text) || !URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '';
}

/** The same, or one of `http` on loopback, as sites have in development. */
function isRedirectUrl(text: string): boolean {
  return isHttpsUrl(text) || (loopbackOrigin(text) !== '' && isHttpsUrl(text.replace(/^http:/i, 'https:')));
}

/** The origin of an address of `http` on loopback; empty for any other. */
export function loopbackOrigin(text: string): string {
  if (!URL.canParse(text)) return '';
  const { protocol, hostname, origin } = new URL(text);
  return protocol === 'http:' && isLoopback(hostname) ? origin : '';
}
