import { z } from 'zod';
import { mailLinkToken, mailLinkUrl } from '../../domain/links.ts';
import type { SecretKey } from '../../domain/secrets/secret-key.ts';
import { hex, parseColor, type Rgb, textOn } from '../../domain/text/color.ts';
import { Html, html } from '../../domain/text/html.ts';
import { oneLine, withoutLinks } from '../../text/untrusted.ts';
import type { Language } from '../../text/words.ts';

/**
 * An email as it is sent, and as earlier versions stored it in its delivery: everything that differs from email to
 * email.
 */
export const mailMessageSchema = z.object({
  to: z.string(),
  subject: z.string(),
  text: z.string(),
  html: z.string(),
  replyTo: z.string().exactOptional(),
  /** The name beside the sender's address. */
  senderName: z.string().exactOptional(),
  /** The token with which the reader stops such emails. */
  stopToken: z.string(),
});

export type MailMessage = z.output<typeof mailMessageSchema>;

/**
 * Writes an email as plain text and as HTML with the same content, and adds the link that stops emails of this
 * form to its reader, and starts them again.
 */
export function writeMail(context: MailContext, content: MailContent): MailMessage {
  const { secretKey, baseUrl, formId, to, language } = context;
  const { subject = content.title, replyTo, ...rest } = content;
  const stopToken = mailLinkToken(secretKey, { purpose: 'stop', formId, address: to }, null);
  const body = {
    ...rest,
    language,
    accent: parseColor(context.accentColor ?? '') ?? BLUE,
    title: oneLine(rest.title),
    footer: rest.footer.map((line) => oneLine(line, MAX_FOOTER_CHARS)),
    stopUrl: mailLinkUrl(baseUrl, stopToken),
  };
  const senderName = senderNameOf(context);
  return {
    to,
    subject: oneLine(subject),
    text: textOf(body),
    html: htmlOf(body),
    ...(replyTo !== undefined && { replyTo }),
    ...(senderName !== '' && { senderName }),
    stopToken,
  };
}

const MAX_FOOTER_CHARS = 400;

/** What looks like an address would stand beside the true one of the sender; so it is left out. */
function senderNameOf({ senderName = '' }: MailContext): string {
  const name = withoutLinks(senderName);
  return name.includes('[…]') ? '' : name;
}

function textOf({ language, paragraphs, rows = [], button, footer, stopUrl }: MailBody): string {
  const parts = [
    ...paragraphs,
    ...rows.map(({ label, text, note, links }) => {
      const answer =
        links?.map(({ name, url }) => (name === url ? url : `${name}\n${url}`)).join('\n') ?? text;
      return `${withColon(note === undefined ? label : `${label} (${note})`)}\n${answer}`;
    }),
    ...(button === undefined ? [] : [`${button.label}:\n${button.url}`]),
    `-- \n${footer.join('\n')}\n${language.mail.stop}: ${stopUrl}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function withColon(label: string): string {
  return /[?!:？！：؟…]$/u.test(label) ? label : `${label}:`;
}

function htmlOf({
  language,
  accent,
  title,
  paragraphs,
  rows = [],
  button,
  footer,
  stopUrl,
}: MailBody): string {
  const { tag, direction, mail } = language;
  return html`<!doctype html>
<html lang="${tag}" dir="${direction}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="${noDetection}"><title>${title}</title>
<style>${inTheDark}</style></head>
<body style="${styles.body}">
<div class="page" dir="${direction}" style="${styles.page}">
<h1 style="${styles.title}">${title}</h1>
${paragraphs.map((text) => html`<p style="${styles.text}">${text}</p>`)}
${rows.length > 0 && html`<table role="presentation" width="100%" cellspacing="0" cellpadding="0" style="${styles.rows}">${rows.map((row) => rowOf(row, direction))}</table>`}
${button && html`<p style="margin:24px 0"><a class="button" href="${button.url}" style="${styles.button};background:${hex(accent)};color:${hex(textOn(accent))}">${button.label}</a></p>`}
<p class="muted" style="${styles.footer}">${footer.map((line) => html`${line}<br>`)}
<a class="muted" href="${stopUrl}" style="color:#555b68">${mail.stop}</a></p>
</div>
</body>
</html>`.text;
}

/** The label stands above its answer, so that both have the width of a phone. Their words may run in any direction. */
function rowOf({ label, text, note, links }: MailRow, direction: 'ltr' | 'rtl'): Html {
  const align = `text-align:${direction === 'rtl' ? 'right' : 'left'}`;
  const answer =
    links?.map(({ name, url }) => html`<a href="${url}" style="color:${hex(BLUE)}">${name}</a><br>`) ?? text;
  return html`<tr><td class="row" style="${styles.row}">
<div class="muted" dir="auto" style="${styles.label};${align}">${label}${note !== undefined && html` <span style="font-weight:400">(${note})</span>`}</div>
<div dir="auto" style="${styles.answer};${align}">${answer}</div></td></tr>
`;
}

/** Programs that know this make no links of numbers, days and addresses. */
const noDetection = 'telephone=no, date=no, address=no, email=no, url=no';

/** Many mail programs read styles only in attributes. */
const styles = {
  body: 'margin:0;padding:0;background:#ffffff;color:#17191f',
  page:
    'font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif;font-size:16px;line-height:1.5;' +
    'max-width:600px;margin:0 auto;padding:24px;overflow-wrap:anywhere',
  title: 'font-size:24px;line-height:1.2;margin:0 0 16px',
  text: 'margin:0 0 12px;white-space:pre-wrap',
  rows: 'border-collapse:collapse;width:100%;margin:24px 0 0',
  row: 'padding:12px 0;border-top:1px solid #d9dce3',
  label: 'font-size:15px;font-weight:600;color:#555b68',
  answer: 'white-space:pre-wrap;overflow-wrap:anywhere',
  button: 'display:inline-block;padding:12px 24px;text-decoration:none;font-weight:600;border-radius:10px',
  footer: 'margin:32px 0 0;padding:16px 0 0;border-top:1px solid #d9dce3;font-size:15px;color:#555b68',
};

/** What has no meaning to a program that shows emails in the dark by its own rules. */
const inTheDark = new Html(`:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (prefers-color-scheme:dark){
body,.page{background:#16181d!important;color:#e8eaed!important}
.muted{color:#a9b0bc!important}
.row,p.muted{border-color:#3b414c!important}
a{color:#8fb5ff!important}
a.button{background:#8fb5ff!important;color:#10131a!important}
}`);

/** To whom an email goes, about which form, in its language, and what links need. */
export type MailContext = {
  secretKey: SecretKey;
  baseUrl: string;
  formId: string;
  to: string;
  language: Language;
  /** The name beside the sender's address: the form's. */
  senderName?: string;
  /** The form's, `#rrggbb`; absent: that of the pages. */
  accentColor?: string | undefined;
};

/** What an email says. All of it is plain text. */
export type MailContent = {
  /** Absent: the title. */
  subject?: string;
  replyTo?: string;
  title: string;
  paragraphs: string[];
  rows?: MailRow[];
  button?: { label: string; url: string };
  /** Why the reader gets it, line by line. */
  footer: string[];
};

/** An answer. `note` says something about it, such as its origin; `links` stand in place of the text. */
export type MailRow = { label: string; text: string; note?: string; links?: { name: string; url: string }[] };

type MailBody = Omit<MailContent, 'subject' | 'replyTo'> & {
  stopUrl: string;
  language: Language;
  accent: Rgb;
};

/** The accent of the pages that have none of their own, as in style.css. */
const BLUE: Rgb = [0x2f, 0x4f, 0xd0];
