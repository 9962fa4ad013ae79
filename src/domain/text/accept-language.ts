/** Returns the language tags of an `Accept-Language` header, the most wanted first, without those of weight 0. */
export function preferredLanguages(header: string): string[] {
  return header
    .slice(0, MAX_HEADER)
    .split(',')
    .flatMap((part) => {
      const [tag = '', ...parameters] = part.trim().split(';');
      const quality = parameters.map((each) => /^\s*q=([\d.]+)/.exec(each)?.[1]).find(Boolean);
      const weight = quality === undefined ? 1 : Number(quality);
      return weight > 0 && isLanguageTag(tag) ? [{ tag, weight }] : [];
    })
    .sort((left, right) => right.weight - left.weight)
    .map(({ tag }) => tag);
}

/** The language of a BCP 47 tag, without script or region: `de-AT` → `de`. */
export function languageOfTag(tag: string): string {
  return tag.split('-', 1)[0]?.toLowerCase() ?? '';
}

/** Whether a text is one BCP 47 tag. */
export function isLanguageTag(text: string): boolean {
  if (text === '') return false;
  try {
    return Intl.getCanonicalLocales(text).length === 1;
  } catch {
    return false;
  }
}

/** Browsers send a few tags. What follows in a longer header is ignored. */
const MAX_HEADER = 500;
