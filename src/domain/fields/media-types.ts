import database from 'mime-db/db.json' with { type: 'json' };
import { custom, type Violation } from '../errors/violations.ts';
import known from './media-types.json' with { type: 'json' };

// What checks answers runs in browsers too, which need not have all this: no type of field imports it.

/** Whether a field's `accept` takes a file; none at all takes everything. */
export function acceptsFile(
  accept: readonly string[] | undefined,
  contentType: string,
  filename: string,
): boolean {
  if (accept === undefined || accept.length === 0) return true;
  return accept.some((entry) => fitsFile(entry, contentType, filename));
}

/** What is wrong with a field's `accept`: entries that no file is ever found to fit. */
export function acceptProblems({ accept = [] }: { accept?: readonly string[] }, path: string): Violation[] {
  return accept.flatMap((entry, index) => {
    const fault = acceptFault(entry);
    return fault === undefined ? [] : [custom(`${path}.accept.${index}`, fault)];
  });
}

/**
 * Whether an entry of a field's `accept` fits a file, whose type is that of its content: by any name of the type, by
 * any ending that its files have, or by the ending of its own. No bytes mark texts, whose endings tell their types.
 */
function fitsFile(entry: string, contentType: string, filename: string): boolean {
  const wanted = commonName(entry.trim().toLowerCase());
  const name = filename.toLowerCase();
  if (wanted === '*/*' || wanted === contentType || (wanted.startsWith('.') && name.endsWith(wanted)))
    return true;
  const ending = name.slice(name.lastIndexOf('.') + 1);
  const isText = contentType === 'application/json' || contentType.startsWith('text/');
  const alike = isText ? textTypes.filter((type) => endingsOf(type).includes(ending)) : [];
  // WebM and MP4 files with sound alone are told apart by their content, but people name them by either type.
  const types = [contentType, contentType.replace(/^audio\/(?=(?:webm|mp4)$)/, 'video/'), ...alike];
  if (wanted.endsWith('/*')) return types.some((type) => type.startsWith(wanted.slice(0, -1)));
  const endings = types.filter((type) => !anything.includes(type)).flatMap(endingsOf);
  return !anything.includes(wanted) && endingsOf(wanted).some((each) => endings.includes(each));
}

/** What is wrong with an entry of `accept` that no file is ever found to fit; undefined if one can be. */
function acceptFault(entry: string): string | undefined {
  const wanted = commonName(entry.trim().toLowerCase());
  if (wanted.startsWith('.') || wanted === '*/*' || anything.includes(wanted)) return undefined;
  const [group = ''] = /^.*\//.exec(wanted) ?? [];
  const known = [...recognized, ...textTypes].filter((type) => type.startsWith(group));
  if (known.includes(wanted) || (wanted === `${group}*` && known.length > 0)) return undefined;
  const { extensions } = mediaTypes[wanted] ?? {};
  const alike = extensions === undefined ? textEndings.union(recognizedEndings) : recognizedEndings;
  if (endingsOf(wanted).some((ending) => alike.has(ending))) return undefined;
  const names = known.slice(0, MAX_NAMED).join(', ');
  return `No file is found to be ${wanted}. Known are: ${names || `none of ${group}*`}`;
}

/** The name that forms ask for of a type that has several. */
export function commonName(type: string): string {
  return commonNames[type] ?? type;
}

/** The registered types of files, by their endings: `.csv` is `text/csv`. */
export function typesWithEndings(endings: string): Record<string, string> {
  const registered = Object.entries(mediaTypes).filter(([, { source }]) => source === 'iana');
  const typeOf = (wanted: string) => registered.find(([, { extensions }]) => extensions?.includes(wanted));
  return Object.fromEntries(endings.split(' ').map((ending) => [`.${ending}`, typeOf(ending)?.[0] ?? '']));
}

/** Types that mime-db has no ending for are commonly called by it: `image/jpg`, `application/x-zip`. */
function endingsOf(type: string): readonly string[] {
  const [, named = ''] = /(?:^\.|\/(?:x-)?)([^-./+]+)$/.exec(type) ?? [];
  return mediaTypes[type]?.extensions ?? (named === '' ? [] : [named]);
}

const mediaTypes: Readonly<Record<string, MediaType>> = database;
const { recognized } = known;
const commonNames: Readonly<Record<string, string>> = known.commonNames;

/** As many types as fit into an error. */
const MAX_NAMED = 40;

/** What is named so when nothing better is known. */
const NO_TYPE = 'application/octet-stream';
const anything = ['text/plain', NO_TYPE];

const recognizedEndings = new Set(recognized.flatMap(endingsOf));
const textTypes = Object.entries(mediaTypes).flatMap(([type, { compressible, extensions = [] }]) => {
  const isText = compressible === true || /^text\/|[+/](?:json|xml|yaml|sql)$/.test(type);
  return isText && type !== NO_TYPE && !extensions.some((ending) => recognizedEndings.has(ending))
    ? [type]
    : [];
});

/** Those of files that are texts. */
export const textEndings = new Set(textTypes.flatMap(endingsOf));

type MediaType = { source?: string; extensions?: readonly string[]; compressible?: boolean };
