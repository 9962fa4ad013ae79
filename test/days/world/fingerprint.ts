/** A statement without what differs from one run of it to the next: numbers, and how many rows there are. */
export function fingerprintOf(sql: string): string {
  const known = fingerprints.get(sql);
  if (known !== undefined) return known;
  const fingerprint = sql
    .replace(/\s+/g, ' ')
    .replace(/'(?:[^']|'')*'/g, "'…'")
    .replace(/\$\d+/g, '$')
    .replace(/\b\d+\b/g, '0')
    .replace(/(\([^()]*\))(?:, ?\([^()]*\))+/g, '$1, …')
    .replace(/(\$(?:::\w+)?)(?:, ?\$(?:::\w+)?)+/g, '$1, …')
    .replace(/('…')(?:, ?'…')+/g, '$1, …')
    .trim();
  fingerprints.set(sql, fingerprint);
  return fingerprint;
}

const fingerprints = new Map<string, string>();
