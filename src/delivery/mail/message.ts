import { z } from 'zod';
import { mailLinkToken, mailLinkUrl } from '../../domain/delivery/mail-link.ts';
import type { SecretKey } from '../../domain/secrets.ts';
import { html } from '../../text/html.ts';
import { oneLine } from '../../text/untrusted.ts';

/** The shape of a mail as a delivery holds it: everything that differs from mail to mail. */
export const mailMessageSchema = z.object({
  to: z.string(),
  subject: z.string(),
  text: z.string(),
  html: z.string(),
  replyTo: z.string().exactOptional(),
  /** The token with which the reader stops such mails. */
  stopToken: z.string(),
});

export type MailMessage = z.output<typeof mailMessageSchema>;

/**
 * Writes a mail as plain text and as HTML with the same content, and adds the link that stops mails of this
 * form to its reader.
 */
export function writeMail(context: MailContext, content: MailContent): MailMessage {
  const { secretKey, baseUrl, formId, to } = context;
  const { subject, replyTo, ...rest } = content;
  const stopToken = mailLinkToken(secretKey, { purpose: 'stop', formId, address: to }, null);
  const body = {
    ...rest,
    title: oneLine(rest.title),
    footer: oneLine(rest.footer, MAX_FOOTER_CHARS),
    stopUrl: mailLinkUrl(baseUrl, stopToken),
  };
  return {
    to,
    subject: oneLine(subject),
    text: textOf(body),
    html: htmlOf(body),
    ...(replyTo !== undefined && { replyTo }),
    stopToken,
  };
}

const MAX_FOOTER_CHARS = 400;

function textOf({ paragraphs, rows = [], button, footer, stopUrl }: MailBody): string {
  const parts = [
    ...paragraphs,
    ...rows.map(({ label, text, note }) => `${label}${note === undefined ? '' : ` (${note})`}:\n${text}`),
    ...(button === undefined ? [] : [`${button.label}:\n${button.url}`]),
    `-- \n${footer}\nTo get no more of these mails: ${stopUrl}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function htmlOf({ title, paragraphs, rows = [], button, footer, stopUrl }: MailBody): string {
  const cells = rows.map(
    ({ label, text, note }) => html`<tr>
<th align="left" valign="top" style="${styles.cell};color:#555;font-weight:600">${label}${note !== undefined && html`<br><span style="${styles.note}">${note}</span>`}</th>
<td valign="top" style="${styles.cell};white-space:pre-wrap">${text}</td>
</tr>`,
  );
  return html`<!doctype html>
<html>
<head><meta charset="utf-8"><meta name="format-detection" content="${noDetection}"><title>${title}</title></head>
<body style="${styles.page}">
<h1 style="font-size:20px;margin:0 0 16px">${title}</h1>
${paragraphs.map((text) => html`<p style="white-space:pre-wrap">${text}</p>`)}
${cells.length > 0 && html`<table cellspacing="0" style="border-collapse:collapse;width:100%">${cells}</table>`}
${button && html`<p><a href="${button.url}" style="${styles.button}">${button.label}</a></p>`}
<p style="margin-top:32px;font-size:13px;color:#666">${footer}<br>
<a href="${stopUrl}" style="color:#666">Get no more of these mails</a></p>
</body>
</html>`.text;
}

/** Programs that know this make no links of numbers, days and addresses. */
const noDetection = 'telephone=no, date=no, address=no, email=no, url=no';

/** Mail programs read styles only in attributes. */
const styles = {
  page:
    'font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif;font-size:15px;line-height:1.5;color:#1a1a1a;' +
    'max-width:600px;margin:0 auto;padding:24px',
  cell: 'padding:8px 12px 8px 0;border-top:1px solid #ddd',
  note: 'font-size:13px;font-weight:400;color:#666',
  button:
    'display:inline-block;padding:10px 18px;background:#1a56db;color:#ffffff;text-decoration:none;border-radius:6px',
};

/** To whom a mail goes, about which form, and what links need. */
export type MailContext = { secretKey: SecretKey; baseUrl: string; formId: string; to: string };

/** What a mail says. All of it is plain text. */
export type MailContent = {
  subject: string;
  replyTo?: string;
  title: string;
  paragraphs: string[];
  /** `note` says something about the answer, such as where it comes from. */
  rows?: { label: string; text: string; note?: string }[];
  button?: { label: string; url: string };
  /** Why the reader gets it. */
  footer: string;
};

type MailBody = Omit<MailContent, 'subject' | 'replyTo'> & { stopUrl: string };
