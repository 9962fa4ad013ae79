/**
 * An email or web address as it is stored: without spaces around it, its domain in ASCII, as the DNS has it:
 * `münchen.de` is `xn--mnchen-3ya.de`. The same code runs in the hosted page, so this file imports nothing.
 */
export function asciiAddress(text: string): string {
  return withDomain(text.trim(), (domain) => {
    const host = `http://${domain}`;
    const isForeign = /[^ -~]/.test(domain) && hostName.test(domain) && URL.canParse(host);
    return isForeign ? new URL(host).hostname : domain;
  });
}

/** An email or web address with another domain; what is neither stays as it is. */
export function withDomain(address: string, change: (domain: string) => string): string {
  return address.replace(domainIn, (_, before: string, domain: string) => `${before}${change(domain)}`);
}

const domainIn = /^(https?:\/\/(?:[^\s/?#@]*@)?|[^\s@]*@)([^\s/?#@:]+)/i;

/** Letters, digits, hyphens and dots, as many as the longest domain has. */
const hostName = /^[\p{L}\p{M}\p{N}.\-\u3002\uff0e\uff61\u00b7\u200c\u200d]{1,253}$/u;
