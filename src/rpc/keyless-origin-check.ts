import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { isLoopback, withOneLoopback } from '../domain/addresses/loopback.ts';
import { failed } from '../domain/errors/failure.ts';

/**
 * Makes the check of calls that need no key only because the settings require none. It throws
 * `ORIGIN_NOT_ALLOWED` for what any web page can make its visitor's browser send: calls from another origin, bodies
 * that need no preflight request, and calls to a name that its owner has pointed at this service.
 *
 * `ownUrls` are the service's addresses as its users see them. Callers that are no browsers pass, if the host that
 * they call is loopback or one of these.
 */
export function createKeylessOriginCheck(ownUrls: readonly string[]): KeylessOriginCheck {
  const own = ownUrls.map((url) => new URL(url));
  const ownOrigins = new Set(own.map(({ origin }) => withOneLoopback(origin)));
  const hosts = new Set(own.map(({ hostname }) => hostname));

  return (header, called) => {
    const url = called === undefined ? undefined : urlOf(called);
    if (called !== undefined && !(url && (hosts.has(url.hostname) || isLoopback(url.hostname)))) {
      throw refused(
        'This host may not be called without an API key: it is neither loopback nor that of BASE_URL or HOSTED_URL',
      );
    }
    const origin = header.get('origin');
    const isForeign =
      origin === null
        ? header.get('sec-fetch-site') === 'cross-site'
        : !ownOrigins.has(withOneLoopback(origin)) &&
          (url === undefined || !isSameHost(urlOf(hostIn(origin)), url));
    if (isForeign) throw refused('Pages of another origin may not call this without an API key');
    if (withoutPreflight.has(mediaTypeIn(header) ?? 'application/json')) {
      throw refused('Calls without an API key need a body of the media type application/json');
    }
  };
}

/** The address that a `Host` header names; undefined if it is none. */
function urlOf(host: string): URL | undefined {
  const text = `http://${host}`;
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(text) ? new URL(text) : undefined;
}

function hostIn(origin: string): string {
  return origin.replace(/^https?:\/\//, '');
}

function isSameHost(one: URL | undefined, other: URL): boolean {
  return one !== undefined && withOneLoopback(one.host) === withOneLoopback(other.host);
}

function mediaTypeIn(header: Headers): string | undefined {
  return header.get('content-type')?.split(';', 1).join().trim().toLowerCase();
}

/** What a page may send anywhere (Fetch, "CORS-safelisted request-header"), and a body without a media type. */
const withoutPreflight = new Set([
  '',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
]);

function refused(message: string) {
  return failed(Reason.ORIGIN_NOT_ALLOWED, message);
}

/** Throws for calls that a web page could have made. `called` is the host; calls inside the process have none. */
export type KeylessOriginCheck = (header: Headers, called: string | undefined) => void;
