import { momentInWords } from '../../text/quantities.ts';

/** Shows the times that the page names in the person's own time zone. */
export function showLocalTimes(root: Element): void {
  for (const time of root.querySelectorAll('time')) {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    time.textContent = momentInWords(new Date(time.dateTime), document.documentElement.lang, timeZone);
  }
}
