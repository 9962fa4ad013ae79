/** Whether the host of a URL is this machine; names under `localhost` never leave it (RFC 6761, section 6.3). */
export function isLoopback(hostname: string): boolean {
  return /^(.+\.)?localhost$|^127\.\d+\.\d+\.\d+$|^\[::1\]$/.test(hostname);
}

/**
 * A host or an origin with one name for loopback, to compare by: clients and browsers use `localhost`, `127.0.0.1` and
 * `[::1]` for the same service. Another port is another service still.
 */
export function withOneLoopback(hostOrOrigin: string): string {
  return hostOrOrigin.replace(/^(https?:\/\/)?(?:127\.0\.0\.1|\[::1\])(?=:\d+$|$)/, '$1localhost');
}
