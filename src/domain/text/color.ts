/** The contrast of two colours by WCAG 2.2, from 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((left, right) => left - right);
  return (high + 0.05) / (low + 0.05);
}

/** `#rrggbb` as three numbers from 0 to 255; undefined if it is anything else. */
export function parseColor(color: string): Rgb | undefined {
  const found = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})$/i.exec(color);
  if (found === null) return undefined;
  const [red = 0, green = 0, blue = 0] = found.slice(1).map((part) => Number.parseInt(part, 16));
  return [red, green, blue];
}

/** Black or white, whichever can be read on a colour. */
export function textOn(accent: Rgb): Rgb {
  return contrast(accent, WHITE) >= READABLE ? WHITE : BLACK;
}

function luminance(color: Rgb): number {
  const [red = 0, green = 0, blue = 0] = color.map((part) => {
    const level = part / 255;
    return level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** A colour as `#rrggbb`. */
export function hex(color: Rgb): string {
  return `#${color.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

/** The contrast that WCAG 2.2 AA asks of text. */
export const READABLE = 4.5;

export const BLACK: Rgb = [0, 0, 0];
export const WHITE: Rgb = [255, 255, 255];

export type Rgb = [red: number, green: number, blue: number];
