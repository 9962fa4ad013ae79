import { plainSigns } from '../text/typed-signs.ts';

/**
 * A telephone number as it is stored, with the brackets, spaces and hyphens that it came with, in ASCII: `ext. 12` and
 * `x12` become `;ext=12`. The same code runs in the hosted page, so this file imports nothing that is not as small.
 */
export function foldPhone(text: string): string {
  if (text.length > MAX_PASTED) return text;
  return plainSigns(text).trim().replace(extension, ';ext=$1');
}

const extension = / ?[,;]? ?(?:ext(?:ension)?[.:=]?|x\.?) ?(\d{1,10})$/i;

/** More than any number with everything that an app puts around it. */
const MAX_PASTED = 200;
