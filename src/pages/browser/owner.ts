import './copying.ts';
import { enterLocalTimes, showLocalTimes } from './times.ts';

showLocalTimes(document.body);
enterLocalTimes(document.body);
keepTimeZone();

/** Tells the service in which zone the owner's days begin. A page that counts days is loaded anew if it did not know. */
function keepTimeZone(): void {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const cookie = `owner-zone=${encodeURIComponent(timeZone)}`;
  const isKnown = () => document.cookie.split('; ').includes(cookie);
  if (isKnown()) return;
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not there over plain http
  document.cookie = `${cookie}; path=${new URL('../..', import.meta.url).pathname}; max-age=31536000; samesite=lax`;
  if (isKnown() && document.querySelector('[data-days]') !== null) location.reload();
}
