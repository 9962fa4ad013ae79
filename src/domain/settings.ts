import { z } from 'zod';

const text = (max: number) => z.string().min(1).max(max);

const themeSchema = z
  .strictObject({
    accentColor: z
      .string()
      .regex(/^#[0-9a-fA-F]{6}$/, 'Expected a color as #rrggbb')
      .exactOptional(),
    logo: z
      .string()
      .max(45_000)
      .exactOptional()
      .describe('A data: URL of a PNG, JPEG or WebP of at most 32 KiB.'),
    mode: z.enum(['light', 'dark', 'auto']).default('auto'),
  })
  .describe('How the hosted page looks.');

const spamSchema = z
  .strictObject({
    honeypot: z.literal(true).exactOptional().describe('Adds an input that only machines fill.'),
    minSeconds: z.number().min(0).max(3600).exactOptional().describe('Faster answers are spam.'),
  })
  .describe('How spam is told from answers.');

/** The shape of a form's settings as people send them. */
export const settingsSchema = z
  .strictObject({
    allowPartial: z.boolean().default(false).describe('Keeps partial answers of a session.'),
    submitLabel: text(100).exactOptional().describe('The words on the button.'),
    successMessage: text(2000).exactOptional().describe('Said after a submission.'),
    redirectUrl: text(2048).exactOptional().describe('Where the human goes after a submission; HTTPS.'),
    allowedOrigins: z
      .array(text(300))
      .max(100)
      .default([])
      .describe('Browser origins that may post; none: any.'),
    embedOrigins: z.array(text(300)).max(100).default([]).describe('Who may frame the hosted page.'),
    retentionDays: z
      .int()
      .min(1)
      .max(3650)
      .exactOptional()
      .describe('Absent: submissions are kept for ever.'),
    closesAt: text(64)
      .exactOptional()
      .describe('From then on the form takes no answers; ISO 8601 with offset.'),
    maxSubmissions: z.int().min(1).exactOptional().describe('How many submissions the form takes.'),
    locale: text(35).default('en').describe('The language of the page, BCP 47.'),
    theme: themeSchema.prefault({}),
    spam: spamSchema.prefault({}),
  })
  .meta({ id: 'Settings', description: 'Form-level settings.' });

/** Checked settings, every default filled in. */
export type Settings = z.output<typeof settingsSchema>;
