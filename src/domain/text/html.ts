/**
 * Makes HTML. Interpolated values are escaped for texts and for quoted attributes, unless they are `Html`
 * themselves; lists are joined, and false, null and undefined are left out.
 */
export function html(strings: TemplateStringsArray, ...values: Content[]): Html {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += textOf(value) + strings[index + 1];
  return new Html(text);
}

/** Attributes with a leading space each: true stands alone, false and undefined leave none. */
export function attributes(values: Record<string, string | number | boolean | undefined>): Html {
  let text = '';
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === false) continue;
    text += value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`;
  }
  return new Html(text);
}

/** Text that is HTML already: the functions of this file make it, and constants are. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

function textOf(value: Content): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'string') return escapeHtml(value);
  if (typeof value === 'number') return String(value);
  if (value === false || value === null || value === undefined) return '';
  return value.map(textOf).join('');
}

/** A text that stands for itself in HTML, also within a quoted attribute. */
function escapeHtml(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (found) => entities[found] ?? found) : text;
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** What a template takes. */
export type Content = Html | string | number | false | null | undefined | readonly Content[];
