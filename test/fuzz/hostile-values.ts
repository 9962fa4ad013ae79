/** Values that have broken parsers, validators, templates or databases before. */
const hostileValues: unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_VALUE,
  1e308,
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'x\udc00y',
  '\u202eevil',
  '\r\nBcc: victim@example.com',
  '<script>alert(1)</script>',
  "'; drop table submissions; --",
  '{{7*7}}',
  '../../etc/passwd',
  '=cmd|calc',
  '9'.repeat(400),
  'a'.repeat(20_000),
  '2026-02-30',
  'http://169.254.169.254/latest/meta-data',
  'https://user:pass@example.com/',
  'javascript:alert(1)',
  [],
  [[[[[[]]]]]],
  [null, 1, 'a', {}],
  {},
  { constructor: { prototype: { polluted: true } } },
  JSON.parse('{"__proto__": {"polluted": true}, "toString": 1, "hasOwnProperty": null}'),
  { length: 1e9 },
  nested(40, []),
  nested(200, {}),
  Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`key${index}`, index])),
];

/** Bodies that are no JSON, no UTF-8, or JSON that parsers disagree about. */
export const hostileBodies: (string | Buffer)[] = [
  '',
  ' ',
  'null',
  'true',
  '0',
  '""',
  '[]',
  '{',
  '{"a":',
  '{"name": "cut off',
  '{"a":1,"a":{"b":2}}',
  '{"answers":{},"answers":{"email":"a@b.co"}}',
  '{"a":1e999}',
  '{"a":-0.0000000000000000000000000000000000001e-999}',
  `{"a":${'9'.repeat(5000)}}`,
  "{'a':1}",
  '{"a":NaN}',
  '{"a":undefined}',
  '{"a":1}{"b":2}',
  '\ufeff{"a":1}',
  '{"\\u0000":1}',
  '{"\\ud800":"\\udfff"}',
  '{"__proto__":1,"constructor":2,"prototype":3}',
  '['.repeat(100_000),
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
  `${'['.repeat(33)}${']'.repeat(33)}`,
  Buffer.from([0xff, 0xfe, 0x00, 0x41]),
  Buffer.from('{"a":"\xc3\x28"}', 'latin1'),
  Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00]),
  `{"a":"${'x'.repeat(300_000)}"}`,
  'a=1&b=2',
  '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1',
];

export const hostileIds = [
  'form_',
  'form_00000000000000000000000000',
  'sess_x',
  '%00',
  '%ff%fe',
  '%2e%2e%2f',
  '__proto__',
  'constructor',
  '%F0%9F%92%A9',
  'a'.repeat(3000),
  "'%20or%201=1--",
  '%',
  '%zz',
];

export const hostileQueries = [
  '?limit=abc&offset=-1',
  '?limit=1e9&offset=1e99',
  '?limit[]=1&limit[x]=2',
  '?limit=1&limit=2',
  '?cursor=%00',
  '?cursor=AAAA&status=spam&source=%ff',
  '?created_after=yesterday&created_before=2026-13-45',
  '?created_after=%2B275760-09-13T00:00:00.001Z',
  '?session_id=sess_%00&status=__proto__',
  '?__proto__[x]=1&constructor=2',
  '?token=%00',
  `?token=${'t'.repeat(5000)}`,
  '?format=../../x',
  `?${'a=1&'.repeat(2000)}`,
];

export const hostileHeaders: Record<string, string>[] = [
  {},
  { 'content-type': 'text/plain' },
  { 'content-type': 'application/json; charset=utf-7' },
  { 'content-type': 'application/xml' },
  { 'content-type': 'multipart/form-data' },
  { 'content-type': 'multipart/form-data; boundary=x' },
  { 'content-type': 'application/x-www-form-urlencoded' },
  { 'content-type': ';;;' },
  { 'content-encoding': 'gzip' },
  { 'content-encoding': 'zstd, br, nothing' },
  { authorization: 'Bearer' },
  { authorization: 'Bearer hfs_%00' },
  { authorization: `Bearer ${'x'.repeat(5000)}` },
  { authorization: 'Basic dXNlcjpwYXNz' },
  { accept: 'text/html' },
  { accept: ';q=2,,,' },
  { origin: 'null' },
  { origin: 'https://evil.example\u00ff' },
  { 'idempotency-key': 'k'.repeat(400) },
  { 'idempotency-key': ' ' },
  { 'x-forwarded-for': '::1, not-an-address' },
  { 'x-http-method-override': 'DELETE' },
  { range: 'bytes=0-1' },
  { 'x-request-id': 'a\u00ffb' },
  { expect: '200-ok' },
];

/** A copy of `value` with one place of it, chosen by `random`, replaced by a hostile value. */
export function spoiled(value: unknown, random: () => number): unknown {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (entries.length === 0 || random() < 0.15) return pick(hostileValues, random);
  const [key, inner] = pick(entries, random);
  if (random() < 0.1)
    return { ...(value as object), [String(pick(['__proto__', 'x', '', '\u0000'], random))]: inner };
  const replaced = spoiled(inner, random);
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === key ? replaced : item));
  return { ...(value as object), [key]: replaced };
}

export function pick<T>(list: readonly T[], random: () => number): T {
  const item = list[Math.floor(random() * list.length)];
  if (item === undefined && list.length === 0) throw new RangeError('Nothing to pick from');
  return item as T;
}

/** The same sequence of numbers in [0, 1) for the same seed (mulberry32), so that a failure can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function nested(depth: number, innermost: unknown): unknown {
  let value = innermost;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? { a: value } : [value];
  return value;
}
