/**
 * Reads where an S3-compatible store lies: `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/FOLDER]`, with
 * `?region=` (default `us-east-1`) and `?tls=false` for one on the same machine. What is special in a
 * URL is percent-encoded in the key and the secret.
 *
 * Throws an `Error` that says what was expected, and never quotes the text: it holds a secret.
 */
export function parseS3Url(text: string): S3Location {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const [bucket = '', ...folders] = url?.pathname.replace(/^\/|\/$/g, '').split('/') ?? [];
  const options = [...(url?.searchParams ?? [])];
  const known = options.every(([name, value]) => optionPatterns.get(name)?.test(value) === true);
  if (
    url?.protocol !== 's3:' ||
    url.hostname === '' ||
    url.username === '' ||
    url.password === '' ||
    !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) ||
    !folders.every((folder) => /^[\w.-]+$/.test(folder) && !/^\.+$/.test(folder)) ||
    !known
  ) {
    throw new Error(`expected ${EXPECTED}`);
  }
  const scheme = url.searchParams.get('tls') === 'false' ? 'http' : 'https';
  return {
    address: `${scheme}://${url.host}/${[bucket, ...folders].join('/')}`,
    region: url.searchParams.get('region') ?? 'us-east-1',
    accessKeyId: decoded(url.username),
    secretAccessKey: decoded(url.password),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`expected ${EXPECTED}`);
  }
}

const EXPECTED =
  's3://KEY:SECRET@host[:port]/bucket[/folder][?region=…&tls=false], key and secret percent-encoded';

const optionPatterns = new Map([
  ['region', /^[a-z0-9-]{1,64}$/],
  ['tls', /^(true|false)$/],
]);

/** Where the objects lie and who asks for them. */
export type S3Location = {
  /** Bucket and folder included, without a slash at the end. */
  address: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
};
