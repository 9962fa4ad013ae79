import en from '../../../../src/text/words/en.json' with { type: 'json' };

/** The words of what is wrong with answers, in one language. The build leaves the others out. */
export type Words = (typeof en)['page'];

/** English comes with the form. The others are loaded when they are needed. */
export const english: Words = en.page;

const others: Record<string, () => Promise<{ default: { page: Words } }>> = {
  ar: () => import('../../../../src/text/words/ar.json', { with: { type: 'json' } }),
  de: () => import('../../../../src/text/words/de.json', { with: { type: 'json' } }),
  es: () => import('../../../../src/text/words/es.json', { with: { type: 'json' } }),
  fr: () => import('../../../../src/text/words/fr.json', { with: { type: 'json' } }),
  ja: () => import('../../../../src/text/words/ja.json', { with: { type: 'json' } }),
  pt: () => import('../../../../src/text/words/pt.json', { with: { type: 'json' } }),
  zh: () => import('../../../../src/text/words/zh.json', { with: { type: 'json' } }),
};

/** Loads the words of the first of these languages that there are; undefined: English is the best. */
export async function loadWords(tags: readonly string[]): Promise<Words | undefined> {
  const spoken = tags.map((tag) => tag.split('-', 1)[0]?.toLowerCase() ?? '');
  const first = spoken.find((tag) => tag === 'en' || Object.hasOwn(others, tag)) ?? 'en';
  const { page } = (await others[first]?.())?.default ?? {};
  return page;
}
