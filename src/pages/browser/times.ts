import { momentInWords, timeInWords } from '../../text/quantities.ts';

/** Shows the times that the page names in the person's own time zone. */
export function showLocalTimes(root: Element): void {
  for (const time of root.querySelectorAll('time')) {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const inWords = time.dataset.long === undefined ? momentInWords : timeInWords;
    time.textContent = inWords(new Date(time.dateTime), document.documentElement.lang, timeZone);
  }
}
