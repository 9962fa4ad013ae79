import { instantInWords } from '../../domain/text/instant.ts';
import { momentInWords, timeInWords } from '../../text/quantities.ts';

/** Lets times be entered in the person's own time zone, and names it. Without this, and in what is posted, they are in UTC. */
export function enterLocalTimes(root: Element): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('input[data-zone]')) {
    const time = new Date(`${input.value}Z`);
    if (isTime(time)) input.value = minuteOf(time.getTime() - time.getTimezoneOffset() * 60_000);
    const hint = document.getElementById(`${input.id}.hint`);
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    if (hint !== null) hint.textContent = (input.dataset.zone ?? '').replace('{zone}', timeZone);
    // Of half a time the browser has no value, which would take the time away.
    input.form?.addEventListener('submit', (event) => {
      if (input.validity.badInput && !input.reportValidity()) event.preventDefault();
    });
    input.form?.addEventListener('formdata', ({ formData }) => {
      const entered = new Date(input.value);
      if (isTime(entered)) formData.set(input.name, minuteOf(entered.getTime()));
    });
  }
}

function isTime(time: Date): boolean {
  return !Number.isNaN(time.getTime());
}

/** `YYYY-MM-DDTHH:MM`, in UTC. */
function minuteOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 16);
}

/** Shows the times that the page names in the person's own time zone. */
export function showLocalTimes(root: Element): void {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  for (const time of root.querySelectorAll('time')) {
    const { answer, long } = time.dataset;
    const ofAnswer = answer === undefined ? undefined : instantInWords;
    const inWords = ofAnswer ?? (long === undefined ? momentInWords : timeInWords);
    time.textContent = inWords(new Date(time.dateTime), document.documentElement.lang, timeZone);
  }
}
