/** A mail as its reader sees it: soft line breaks and encoded characters of quoted-printable decoded. */
export function decodeMail(raw: string): string {
  return raw
    .replaceAll(/base64\r?\n\r?\n([\w+/=\r\n]+)/g, (_, encoded: string) =>
      Buffer.from(encoded, 'base64').toString('utf8'),
    )
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/(?:=[0-9A-F]{2})+/g, (encoded) =>
      Buffer.from(encoded.replaceAll('=', ''), 'hex').toString('utf8'),
    );
}

/** What a mailed link is about, as anybody can read in it. */
export function linkClaim(token: string): { formId: string; address: string } | undefined {
  const [, value] = /^(?:confirm-owner|change-owner|confirm-recipient|stop)\.([\w-]+)\./.exec(token) ?? [];
  if (value === undefined) return undefined;
  try {
    const [formId, address] = JSON.parse(Buffer.from(value, 'base64url').toString('utf8'));
    return { formId: String(formId), address: String(address) };
  } catch {
    return undefined;
  }
}
