import { escapeHtml } from './plain.ts';

/** Writes a letter as plain text and as HTML, saying the same. All its texts are plain text. */
export function renderLetter(letter: Letter): { text: string; html: string } {
  return { text: asText(letter), html: asHtml(letter) };
}

function asText({ paragraphs, rows = [], button, footer, stopUrl }: Letter): string {
  const parts = [
    ...paragraphs,
    ...rows.map(({ label, text }) => `${label}:\n${text}`),
    ...(button === undefined ? [] : [`${button.label}:\n${button.url}`]),
    `-- \n${footer}\nTo get no more of these mails: ${stopUrl}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function asHtml({ title, paragraphs, rows = [], button, footer, stopUrl }: Letter): string {
  const cells = rows.map(
    ({ label, text }) =>
      `<tr><th align="left" valign="top" style="${cell};color:#555;font-weight:600">${escapeHtml(label)}</th>` +
      `<td valign="top" style="${cell};white-space:pre-wrap">${escapeHtml(text)}</td></tr>`,
  );
  return [
    '<!doctype html><html><head><meta charset="utf-8">',
    `<title>${escapeHtml(title)}</title></head><body style="${page}">`,
    `<h1 style="font-size:20px;margin:0 0 16px">${escapeHtml(title)}</h1>`,
    ...paragraphs.map((text) => `<p style="white-space:pre-wrap">${escapeHtml(text)}</p>`),
    cells.length === 0
      ? ''
      : `<table cellspacing="0" style="border-collapse:collapse;width:100%">${cells.join('')}</table>`,
    button === undefined
      ? ''
      : `<p><a href="${escapeHtml(button.url)}" style="${action}">${escapeHtml(button.label)}</a></p>`,
    `<p style="margin-top:32px;font-size:13px;color:#666">${escapeHtml(footer)}<br>`,
    `<a href="${escapeHtml(stopUrl)}" style="color:#666">Get no more of these mails</a></p></body></html>`,
  ].join('');
}

// Mail programs read styles only in attributes.
const page =
  'font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif;font-size:15px;line-height:1.5;color:#1a1a1a;' +
  'max-width:600px;margin:0 auto;padding:24px';
const cell = 'padding:8px 12px 8px 0;border-top:1px solid #ddd';
const action =
  'display:inline-block;padding:10px 18px;background:#1a56db;color:#ffffff;text-decoration:none;border-radius:6px';

/** What a mail says, in plain text. */
export type Letter = {
  title: string;
  paragraphs: string[];
  rows?: { label: string; text: string }[];
  button?: { label: string; url: string };
  /** Why the reader gets it. */
  footer: string;
  stopUrl: string;
};
