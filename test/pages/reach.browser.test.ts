import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { givenOwnerSession } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { everyType } from './every-type.ts';

describe.skipIf(noBrowser)('the pages', () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  it.each(['en', 'ar'])(
    'for visitors fit 320 px and text of twice the size, show the focus, and don’t move if asked to, in %s',
    async (locale) => {
      const fields = everyType.map((field, index) => ({ ...field, page: index < 14 ? 1 : 2 }));
      const form = await service.givenPublishedForm({ fields, settings: { review: true, locale } });
      const forward = 'button[value=forward]';

      const page = await browser.open(`/f/${form.id}`);
      await expectFits(page, 'form');
      await page.click(forward);
      await page.waitForSelector('.summary:focus');
      await expectFits(page, 'errors');
      await page.fill('[name=name]', 'Ada');
      await page.fill('[name=notes]', 'a');
      await page.check('[name=laptop][value=true]');
      await page.check('[name=consent]');
      await page.check('[name=track][value=eng]');
      await page.check('[name=languages][value=en]');
      await page.click(forward);
      await page.waitForSelector('[name=mood]');
      await page.waitForSelector('h1:focus');
      await expectFits(page, 'second step');
      await page.check('[name=mood][value="7"]');
      await page.click(forward);
      await page.waitForSelector('dl');
      await expectFits(page, 'review');
      await page.click(forward);
      await page.waitForSelector('.copy');
      await expectFits(page, 'thanks');
      await browser.expectNoProblems();
    },
  );

  it('show that a list opens, in forced colours, too', async () => {
    const options = [{ label: 'Sales', value: 'sales' }];
    const form = await service.givenPublishedForm({ fields: [{ id: 'topic', type: 'select', options }] });
    const page = await browser.open(`/f/${form.id}`, { forcedColors: 'active' });

    // Forced colours leave out the gradients that the arrow is made of otherwise.
    expect(await page.evaluate(`getComputedStyle(document.querySelector('select')).appearance`)).toBe('auto');
    await browser.expectNoProblems();
  });

  it.each([
    ['light, on a desk', {}, 1280],
    ['dark and from right to left, on a phone', { colorScheme: 'dark', locale: 'ar' }, 360],
    ['forced colours and long words', { forcedColors: 'active', locale: 'de' }, 872],
  ] as const)('for owners do so, too, without an accessibility problem: %s', async (_name, looks, width) => {
    const address = `${crypto.randomUUID()}@example.com`;
    const draft = await service.givenDraft({ fields: everyType.slice(0, 13) });
    const page = await browser.open(draft.activate_url, looks);
    await expectFits(page, 'activation');
    await page.fill('#email', address);
    await page.click('main form button');
    await page.waitForSelector('code');
    await expectFits(page, 'activated');
    const answers = { name: 'Ada', notes: 'x', laptop: true, consent: true, track: 'eng' };
    const submit = () => service.post(`/api/forms/${draft.id}/submissions`, { answers });
    const [submitted] = [await submit(), await submit(), await submit()];
    const other = await service.givenPublishedForm({ name: 'Another form' });
    await page.goto(new URL('/owner', service.url).href);
    await expectFits(page, 'sign in');
    const session = await givenOwnerSession(service, address, draft.id, other.id);
    await page.context().addCookies([{ name: 'owner', value: session, url: page.url() }]);

    for (const path of [
      '',
      `/forms/${draft.id}`,
      `/forms/${draft.id}/charts`,
      `/forms/${draft.id}/share`,
      `/forms/${draft.id}/texts`,
      `/forms/${draft.id}/settings`,
      `/forms/${draft.id}/delete`,
      `/submissions/${submitted.json.submission_id}`,
      `/submissions/${submitted.json.submission_id}/delete`,
    ]) {
      const response = await page.goto(new URL(`/owner${path}`, service.url).href);
      expect([path, response?.status()]).toEqual([path, 200]);
      await expectFits(page, path);
      await page.setViewportSize({ width, height: 740 });
      expect([path, await browser.audit(page)]).toEqual([path, []]);
    }
    await browser.expectNoProblems();
  });
});

async function expectFits(page: Page, state: string): Promise<void> {
  const problems: unknown[] = [];
  for (const [width, rootSize] of [
    [320, '100%'],
    [1000, '200%'],
    [872, '100%'],
  ] as const) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(`document.documentElement.style.fontSize = '${rootSize}'`);
    const outside = (await page.evaluate(outsideOfPage)) as string[];
    problems.push(...outside.map((what) => `${what} does not fit ${width} px at ${rootSize}`));
  }
  await page.evaluate(`document.documentElement.style.fontSize = ''`);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  problems.push(...((await page.evaluate(moving)) as string[]));
  await page.emulateMedia({ reducedMotion: null });
  problems.push(...(await stopsWithoutRing(page)));
  expect({ [state]: problems }).toEqual({ [state]: [] });
}

/** What goes beyond the page, or beyond what it is in, but for what scrolls or is for screen readers. */
const outsideOfPage = `[...document.querySelectorAll('main *')].filter((element) => {
  if (element.closest('.scroll, .sr, code, [hidden], svg, option')) return false;
  const box = element.getBoundingClientRect();
  const parent = element.closest('form, main').getBoundingClientRect();
  return box.width > 0 && (box.right > parent.right + 1 || box.left < parent.left - 1);
}).map(({ tagName, className, id }) => [tagName, className, id].join(' ')).slice(0, 5)`;

const moving = `[...document.querySelectorAll('*')].filter((element) => {
  const { transitionDuration, animationName, animationDuration } = getComputedStyle(element);
  const longest = Math.max(...transitionDuration.split(',').map(parseFloat));
  return longest > 0.02 || (animationName !== 'none' && parseFloat(animationDuration) > 0.02);
}).map(({ tagName, className }) => tagName + ' ' + className + ' moves').slice(0, 5)`;

/**
 * Goes through the page by the Tab key; gives the stops that do not show that they have the focus, or are not in view.
 */
async function stopsWithoutRing(page: Page): Promise<string[]> {
  await page.evaluate(followStops);
  for (let pressed = 0; pressed < MAX_STOPS; pressed += STOPS_AT_ONCE) {
    for (let stop = 0; stop < STOPS_AT_ONCE; stop += 1) await page.keyboard.press('Tab');
    const problems = (await page.evaluate('stops.end()')) as string[] | undefined;
    if (problems !== undefined) return problems;
  }
  return ['The focus does not leave the page'];
}

const MAX_STOPS = 100;
const STOPS_AT_ONCE = 10;

/** Looks at each element that the focus is on when the key is pressed again, until it is on none. */
const followStops = `(() => {
  document.activeElement?.blur();
  window.stops?.forget();
  const problems = [];
  let pressed = 0;
  let hasLeft = false;
  const look = () => {
    const element = document.activeElement;
    if (pressed === 0 || hasLeft) return;
    hasLeft = element === null || element === document.body;
    if (hasLeft) return;
    const ringed = [element, element.closest('label')].some((each) => {
      const { outlineStyle, outlineWidth } = each === null ? {} : getComputedStyle(each);
      return outlineStyle !== undefined && outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
    });
    const { top, bottom } = element.getBoundingClientRect();
    const name = [element.tagName, element.name, element.className].join(' ');
    if (!ringed) problems.push(name + ' has no ring');
    if (bottom <= 0 || top >= innerHeight) problems.push(name + ' is out of view');
  };
  const onKey = ({ key }) => {
    if (key !== 'Tab') return;
    look();
    pressed += 1;
  };
  addEventListener('keydown', onKey, true);
  window.stops = {
    end: () => (look(), hasLeft ? problems : undefined),
    forget: () => removeEventListener('keydown', onKey, true),
  };
})()`;
