import type { Request } from 'express';

/** The value of a cookie that the browser has sent; undefined if there is none, or it is no text. */
export function cookieOf({ headers }: Request, name: string): string | undefined {
  for (const part of (headers.cookie ?? '').split(';')) {
    const [key = '', ...value] = part.trim().split('=');
    if (key === name) return decoded(value.join('='));
  }
  return undefined;
}

/** The path of the service's public address and what follows it, as cookies are limited to it. */
export function cookiePath(address: string, path: string): string {
  return `${new URL(address).pathname.replace(/\/$/, '')}${path}`;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
