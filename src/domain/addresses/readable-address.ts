import { domainToASCII, domainToUnicode } from 'node:url';
import { withDomain } from './ascii-address.ts';

/**
 * An email or web address as people read it: an international domain in its own script, if that leads back to the
 * same domain and no part mixes scripts, whose letters could be taken for others.
 */
export function readableAddress(address: string): string {
  return withDomain(address, (domain) => {
    if (!/(?:^|\.)xn--/i.test(domain)) return domain;
    const shown = domainToUnicode(domain);
    const isSame = domainToASCII(shown) === domain.toLowerCase();
    return isSame && shown.split('.').every((label) => ofOneScript.test(label)) ? shown : domain;
  });
}

/** Japanese and Korean are written in several, which are not taken for each other. */
const ofOneScript =
  /^(?:[\p{scx=Latn}\d-]+|[\p{scx=Grek}\d-]+|[\p{scx=Cyrl}\d-]+|[\p{scx=Armn}\d-]+|[\p{scx=Hebr}\d-]+|[\p{scx=Arab}\d-]+|[\p{scx=Deva}\d-]+|[\p{scx=Beng}\d-]+|[\p{scx=Taml}\d-]+|[\p{scx=Thai}\d-]+|[\p{scx=Geor}\d-]+|[\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\d-]+|[\p{scx=Hang}\p{scx=Hani}\d-]+)$/u;
