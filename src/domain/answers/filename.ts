/**
 * A file's name made safe to save under, to show, and to put in a header.
 *
 * Only the last part of a path stays; control, direction-changing and reserved characters become
 * `_`; no name is hidden, reserved by Windows, or longer than 150 characters (its ending stays).
 * A name of which nothing is left is `file`.
 */
export function safeFilename(name: string): string {
  const base = name.toWellFormed().normalize('NFC').split(/[/\\]/).at(-1) ?? '';
  const clean = base
    .replace(unsafe, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[\s.]+|[\s.]+$/g, '');
  if (clean === '') return 'file';
  return shortened(windowsDevice.test(clean) ? `_${clean}` : clean);
}

function shortened(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_CHARACTERS) return name;
  const [ending = ''] = /\.[A-Za-z0-9]{1,10}$/.exec(name) ?? [];
  return characters.slice(0, MAX_CHARACTERS - ending.length).join('') + ending;
}

/** At four bytes a character, still below the 255 bytes (less a folder's own marks) that disks take. */
const MAX_CHARACTERS = 150;

/** Controls, invisible and direction-changing characters, the replacement character, and what disks or shells reserve. */
const unsafe = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\uFFFD<>:"|?*]/gu;

const windowsDevice = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
