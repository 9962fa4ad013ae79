/**
 * Why something outside could not be called, by the codes of Node, undici, nodemailer and OpenSSL. Built of codes and
 * reasons alone: messages can have addresses of the network that the service runs in.
 */
export function connectionCause(error: unknown): ConnectionCause {
  const failure = innermost(error);
  const { code = '', message = '', reason = code } = failure;
  // All that undici says of an interim answer (100 Continue) for which it did not ask.
  const interim = message === 'bad response' && '100 Continue';
  const misread = code === 'HPE' ? message.slice(message.indexOf('(') + 1, -1) : interim;
  if (misread)
    return { code, says: `The receiver answered, but not in HTTP: ${misread}`, advice: OTHER_PROTOCOL };
  const isTls = code === 'EPROTO' || code.startsWith('ERR_SSL_');
  if (isTls) return { code, says: `TLS failed: ${reason}`, advice: OTHER_PROTOCOL };
  const unknown = code === '' ? 'The connection failed' : `The connection failed (${code})`;
  const [says, advice] = causes.get(code) ?? [unknown];
  return { code, says, ...(advice && { advice }) };
}

/** The error that has the code: the first one that was aggregated, or a cause. */
function innermost(error: unknown): CodedError {
  if (!(error instanceof Error)) return {};
  if (error instanceof AggregateError && error.errors.length > 0) return innermost(error.errors[0]);
  const { code, originalCode = code, cause, message, reason }: CodedError & { originalCode?: string } = error;
  // nodemailer puts a code of its own in place of the system's, which it keeps as `originalCode`. Errors of undici's
  // parser have no code of the system.
  if (error.name === 'HTTPParserError') return { code: 'HPE', message };
  return typeof originalCode === 'string' ? { code: originalCode, message, reason } : innermost(cause);
}

const OTHER_PROTOCOL = 'Check scheme and port: something else may listen there.';
const NEW_CERTIFICATE = 'The certificate has to be renewed or replaced there.';
const UNREACHED = 'Check host and port, and what lies between: firewalls, routes, proxies.';

const causes = new Map<string, [says: string, advice?: string]>([
  ['NOT_PUBLIC', ['The host has no public address']],
  ['ENOTFOUND', ['The host name is not known', 'Check how it is written.']],
  ['ESERVFAIL', ['The name servers of the host fail', 'Check the records of its name, and DNSSEC.']],
  ['EAI_AGAIN', ['No name server answers', 'Check the name servers of this machine.']],
  ['ECONNREFUSED', ['The connection was refused', 'Check that it runs, and its host and port.']],
  ['EHOSTUNREACH', ['The host is out of reach', UNREACHED]],
  ['ENETUNREACH', ['The network is out of reach', UNREACHED]],
  ['ETIMEDOUT', ['No connection in time', UNREACHED]],
  ['UND_ERR_CONNECT_TIMEOUT', ['No connection within 10 s', UNREACHED]],
  ['UND_ERR_HEADERS_TIMEOUT', ['No answer within 10 s']],
  ['UND_ERR_BODY_TIMEOUT', ['No answer within 10 s']],
  ['ECONNRESET', ['The connection was reset']],
  ['UND_ERR_SOCKET', ['The connection was closed before an answer came']],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', ['The Content-Length of the answer does not fit']],
  ['UND_ERR_HEADERS_OVERFLOW', ['The headers of the answer are too large']],
  ['ETLS', ['TLS failed', OTHER_PROTOCOL]],
  ['CERT_HAS_EXPIRED', ['The TLS certificate has expired', NEW_CERTIFICATE]],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', ['The TLS certificate is self-signed', NEW_CERTIFICATE]],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', ['The TLS certificate comes without its issuer’s', NEW_CERTIFICATE]],
  ['ERR_TLS_CERT_ALTNAME_INVALID', ['The TLS certificate is for another host', NEW_CERTIFICATE]],
]);

type CodedError = { code?: string; message?: string; reason?: string | undefined; cause?: unknown };

/** `says` is for whoever sees what came of it, without a full stop; `advice` for whoever can mend it. */
export type ConnectionCause = { code: string; says: string; advice?: string };
