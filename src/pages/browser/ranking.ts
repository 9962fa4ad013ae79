/**
 * Lets a person order the options of rankings without a reload: with the buttons, or by dragging an option by its grip.
 */
export function prepareRankings(root: Element, changed: () => void): void {
  for (const list of root.querySelectorAll<HTMLElement>('ol[data-ranking]')) {
    list.onclick = (event) => {
      const button = event.target instanceof Element ? event.target.closest('button') : null;
      const item = button?.closest('li');
      if (!button || !item) return;
      event.preventDefault();
      if (button.getAttribute('aria-disabled') === 'true') return;
      const up = button.matches(':nth-last-child(2)');
      if (up) item.previousElementSibling?.before(item);
      else item.nextElementSibling?.after(item);
      settle(list, item, changed);
      button.focus();
    };
    list.onpointerdown = (event) => {
      const grip = event.target instanceof Element ? event.target.closest('.grip') : null;
      const item = grip?.closest('li');
      if (grip && item) drag(list, item, grip, event.pointerId, changed);
    };
  }
}

/** Moves an option with the pointer until it is released. */
function drag(list: HTMLElement, item: Element, grip: Element, pointer: number, changed: () => void): void {
  const before = [...list.children];
  grip.setPointerCapture(pointer);
  item.classList.add('dragged');
  list.onpointermove = ({ clientY }) => {
    const [previous, next] = [item.previousElementSibling, item.nextElementSibling];
    if (previous !== null && clientY < middleOf(previous)) previous.before(item);
    else if (next !== null && clientY > middleOf(next)) next.after(item);
  };
  const end = () => {
    list.onpointermove = list.onpointerup = list.onpointercancel = null;
    item.classList.remove('dragged');
    if ([...list.children].some((each, index) => each !== before[index])) settle(list, item, changed);
  };
  list.onpointerup = end;
  list.onpointercancel = end;
}

function middleOf(element: Element): number {
  const { top, height } = element.getBoundingClientRect();
  return top + height / 2;
}

/** Makes the order that the list shows the answer, and says where the option is now. */
function settle(list: HTMLElement, item: Element, changed: () => void): void {
  const items = [...list.children];
  for (const [index, each] of items.entries()) {
    const input = each.querySelector('input');
    if (input !== null) input.name = list.dataset.ranking ?? '';
    const [up, down] = each.querySelectorAll('button');
    up?.setAttribute('aria-disabled', String(index === 0));
    down?.setAttribute('aria-disabled', String(index === items.length - 1));
  }
  const status = document.getElementById('status');
  const option = item.querySelector('.option')?.textContent ?? '';
  const place = { option, n: items.indexOf(item) + 1, count: items.length };
  if (status !== null) {
    status.textContent = Object.entries(place).reduce(
      (text, [name, value]) => text.replace(`{${name}}`, () => String(value)),
      list.dataset.moved ?? '',
    );
  }
  changed();
}
