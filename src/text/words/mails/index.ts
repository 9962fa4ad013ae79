import { chooseLanguage, type Language, type Spoken } from '../language.ts';
import { ar } from './ar.ts';
import { de } from './de.ts';
import { en, type MailWords } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';
import { zh } from './zh.ts';

/** The words of mails, by BCP 47 language subtag. */
const mailLanguages: Record<Spoken, MailWords> = { en, de, fr, es, pt, ja, zh, ar };

/** The language of a mail about a form: the form's `locale`, as `chooseLanguage` has it for pages. */
export function chooseMailLanguage(locale = '', acceptLanguage = ''): MailLanguage {
  const language = chooseLanguage(locale, acceptLanguage);
  return { ...language, mail: mailLanguages[language.spoken] };
}

/** A language with the words of mails beside those of the pages. */
export type MailLanguage = Language & { mail: MailWords };
