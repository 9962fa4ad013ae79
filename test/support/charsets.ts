/** The bytes of a text in a charset, read off what a decoder makes of all sequences of one and two bytes. */
export function bytesIn(charset: string, text: string): Buffer {
  if (charset === 'utf-8') return Buffer.from(text);
  const decoder = new TextDecoder(charset);
  const bytesOf = new Map<string, number[]>();
  const learn = (...bytes: number[]) => {
    const read = decoder.decode(Uint8Array.from(bytes));
    if ([...read].length === 1 && !bytesOf.has(read)) bytesOf.set(read, bytes);
  };
  for (let first = 0; first < 256; first += 1) learn(first);
  for (let first = 0x81; first < 0xff; first += 1) {
    for (let second = 0x40; second < 0xff; second += 1) learn(first, second);
  }
  return Buffer.from(
    [...text].flatMap((character) => {
      const bytes = bytesOf.get(character);
      if (bytes === undefined) throw new Error(`${charset} has no ${character}`);
      return bytes;
    }),
  );
}

/** Each byte as `%XX`. */
export function percentEncoded(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

/** A post in parts, as a browser writes it. */
export function partsBody(parts: readonly PostedPart[]): { body: Buffer; headers: Record<string, string> } {
  const chunks = parts.flatMap(({ name, value, filename, type }) => [
    Buffer.from(`--x\r\ncontent-disposition: form-data; name="${name}"`),
    ...(filename === undefined ? [] : [Buffer.from('; filename="'), filename, Buffer.from('"')]),
    Buffer.from(`${type === undefined ? '' : `\r\ncontent-type: ${type}`}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return {
    body: Buffer.concat([...chunks, Buffer.from('--x--\r\n')]),
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  };
}

export type PostedPart = { name: string; value: Buffer | string; filename?: Buffer; type?: string };

/** What people write, in the charsets that their pages have. */
export const textsByCharset: readonly (readonly [charset: string, text: string])[] = [
  ['utf-8', 'Ångström 日本 😀'],
  ['windows-1252', 'Smörgås – “Œuvre” 5 € Ÿ'],
  ['iso-8859-1', 'Smörgås, 5 €'],
  ['iso-8859-2', 'Zażółć gęślą jaźń'],
  ['iso-8859-15', 'Œuvre, 5 €'],
  ['windows-1251', 'Привет, мир'],
  ['koi8-r', 'Привет, мир'],
  ['windows-1256', 'مرحبا'],
  ['windows-874', 'ภาษาไทย'],
  ['shift_jis', 'ソースの表は十分です。予定'],
  ['euc-jp', '日本語のページ'],
  ['gbk', '中文表单'],
  ['big5', '繁體中文功能'],
  ['euc-kr', '한국어 페이지'],
];
