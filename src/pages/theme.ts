import { type Theme, ThemeMode } from '../../gen/headlessforms/v1/definition_pb.js';

/** The mode of a theme as the stylesheet names it. */
export function modeOf(theme: Theme | undefined): 'light' | 'dark' | 'auto' {
  if (theme?.mode === ThemeMode.LIGHT) return 'light';
  return theme?.mode === ThemeMode.DARK ? 'dark' : 'auto';
}

/** The logo if it is a picture that a page may show, else undefined. */
export function logoOf(theme: Theme | undefined): string | undefined {
  const logo = theme?.logo ?? '';
  return /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$/.test(logo) ? logo : undefined;
}

/**
 * The style rules of an accent colour, empty if there is none.
 *
 * Buttons have the very colour, with whichever of black and white stands out more on it. Where it is text, a line or
 * a mark on the page, it is moved towards black on the light page, and towards white on the dark one, until it can be
 * read. Whatever an author picks, the contrast is that of WCAG 2.2 AA.
 */
export function accentStyle(theme: Theme | undefined): string {
  const color = parse(theme?.accentColor ?? '');
  if (color === undefined) return '';
  const [light, dark] = [towards(color, BLACK, LIGHT_PAGE), towards(color, WHITE, DARK_PAGE)];
  return `:root{--accent:${hex(color)};--on-accent:${hex(onTopOf(color))};--accent-text:light-dark(${hex(light)},${hex(dark)})}`;
}

/** The contrast of two colours by WCAG 2.2, from 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((left, right) => left - right);
  return (high + 0.05) / (low + 0.05);
}

/** `#rrggbb` as three numbers from 0 to 255; undefined if it is anything else. */
export function parse(color: string): Rgb | undefined {
  const found = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})$/i.exec(color);
  if (found === null) return undefined;
  const [red = 0, green = 0, blue = 0] = found.slice(1).map((part) => Number.parseInt(part, 16));
  return [red, green, blue];
}

function onTopOf(accent: Rgb): Rgb {
  return contrast(accent, WHITE) >= READABLE ? WHITE : BLACK;
}

function towards(color: Rgb, goal: Rgb, page: Rgb): Rgb {
  let moved = color;
  for (let share = 0; share <= 1 && contrast(moved, page) < READABLE; share += STEP) {
    const mix = (index: 0 | 1 | 2) => Math.round(color[index] + (goal[index] - color[index]) * share);
    moved = [mix(0), mix(1), mix(2)];
  }
  return contrast(moved, page) < READABLE ? goal : moved;
}

function luminance(color: Rgb): number {
  const [red = 0, green = 0, blue = 0] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function hex(color: Rgb): string {
  return `#${color.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

/** The contrast that WCAG 2.2 AA asks of text. */
const READABLE = 4.5;

/** How far a colour is moved at a time. */
const STEP = 0.04;

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

/** The darkest background of the light page, and the lightest one of the dark page, in style.css. */
export const LIGHT_PAGE: Rgb = [0xf4, 0xf5, 0xf7];
export const DARK_PAGE: Rgb = [0x1c, 0x1f, 0x26];

export type Rgb = [red: number, green: number, blue: number];
