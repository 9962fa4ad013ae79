import { Html } from '../text/html.ts';

/**
 * A picture above the title of a page that says how something stands. Readers of the page get the same from its words.
 */
export function icon(name: IconName): Html {
  const marks: Record<IconName, string> = {
    done: '<path d="M15 24.5l6.5 6.5L33.5 18"/>',
    clock: '<path d="M24 14v11l7 5"/>',
    closed: '<path d="M17 22h14v11H17zM20 22v-4a4 4 0 0 1 8 0v4"/>',
    unknown: '<path d="M19 20a5 5 0 1 1 7 4.6c-1.4.8-2 1.7-2 3.4M24 33v.1"/>',
    problem: '<path d="M24 14v13M24 33v.1"/>',
  };
  return new Html(
    `<svg class="icon ${name}" viewBox="0 0 48 48" width="48" height="48" aria-hidden="true"><circle cx="24" cy="24" r="24"/>${marks[name]}</svg>`,
  );
}

export type IconName = 'done' | 'clock' | 'closed' | 'unknown' | 'problem';
