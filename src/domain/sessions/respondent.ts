import { createHmac, timingSafeEqual } from 'node:crypto';
import { mailboxOf } from '../addresses/email-address.ts';
import { DAY_MS } from '../limits/limits.ts';
import { deriveKey, type SecretKey } from '../secrets/secret-key.ts';

/**
 * The code of six digits that is emailed to a respondent. It follows from the id of its row, so that an email which is
 * sent again has the same code, and no row holds it.
 */
export function respondentCode(key: SecretKey, id: string): string {
  const mac = createHmac('sha256', deriveKey(key, 'respondent-code')).update(id).digest();
  return String(mac.readUIntBE(0, 6) % 10 ** CODE_DIGITS).padStart(CODE_DIGITS, '0');
}

/** Whether a person gave the code of a row. People copy it with spaces. */
export function isRespondentCode(keys: readonly SecretKey[], id: string, given: string): boolean {
  const digits = Buffer.from(given.replaceAll(/\s/g, ''));
  return keys.some((key) => {
    const code = Buffer.from(respondentCode(key, id));
    return digits.length === code.length && timingSafeEqual(digits, code);
  });
}

/** What code emails to a respondent count against in a day, asked for from a network that `askedFrom` names. */
export function codeAllowances(email: string, askedFrom: string) {
  const holder = mailboxOf(email);
  return [
    { holder, kind: 'code', limit: CODES_A_DAY },
    { holder, kind: `code ${askedFrom}`, limit: CODES_A_DAY / 2 },
  ];
}

/** What code emails of a form's own page count against in a day. */
export function codeAllowanceOfForm(formId: string) {
  return { holder: formId, kind: 'code', limit: CODES_A_DAY_AND_FORM };
}

export const CODE_DIGITS = 6;

/** How long a code works. */
export const CODE_MS = 10 * 60 * 1000;

/** How often a code can be tried: of 3 codes, 15 in 1,000,000 are guessed. */
export const CODE_TRIES = 5;

/** How many codes are emailed for one session. */
export const CODES_A_SESSION = 3;

/** How long a browser that gave a code may see a form's own page: as long as a visitor's session accepts answers. */
export const FORM_VISIT_MS = 7 * DAY_MS;

/** To one mailbox over the whole service. One network causes no more than half of them. */
const CODES_A_DAY = 10;

const CODES_A_DAY_AND_FORM = 500;

/** A person whose address is known for certain. `verifiedAt` is ISO 8601. */
export type VerifiedRespondent = { method: 'email_code'; email: string; verifiedAt: string };
