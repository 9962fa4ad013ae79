/**
 * Why a connection failed, in words for the log of deliveries. Built from the error's code alone: its
 * message can hold addresses of the network the service runs in.
 */
export function faultInWords(error: unknown): string {
  const code = codeOf(error);
  return (
    (code === undefined ? undefined : words.get(code)) ??
    `The connection failed${code === undefined ? '' : ` (${code})`}.`
  );
}

/** The code of an error, or of the first that it gathers. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause);
}

const words = new Map([
  ['NOT_PUBLIC', 'The host has no public address.'],
  ['ENOTFOUND', 'The host name is not known.'],
  ['ECONNREFUSED', 'The connection was refused.'],
  ['ECONNRESET', 'The connection was reset.'],
  ['UND_ERR_SOCKET', 'The connection was closed before an answer came.'],
  ['UND_ERR_CONNECT_TIMEOUT', 'No connection within 10 s.'],
  ['UND_ERR_HEADERS_TIMEOUT', 'No answer within 10 s.'],
  ['UND_ERR_BODY_TIMEOUT', 'No answer within 10 s.'],
  ['UND_ERR_HEADERS_OVERFLOW', 'The headers of the answer are too large.'],
  ['ETIMEDOUT', 'No connection within 10 s.'],
  ['CERT_HAS_EXPIRED', 'The TLS certificate has expired.'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'The TLS certificate is self-signed.'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'The TLS certificate is for another host.'],
]);
