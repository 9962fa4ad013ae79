/**
 * Puts `https://` before a web address that a person typed without: `example.com` means that. What looks like none
 * stays as it is. The same code runs in the hosted page, so this file imports nothing.
 */
export function withScheme(text: string): string {
  const typed = text.trim();
  return bareAddress.test(typed) ? `https://${typed}` : text;
}

const bareAddress = /^[\p{L}\p{N}][^\s/?#@:]*\.[^\s/?#@:.]{2,}\.?(?::\d{1,5})?(?:[/?#]\S*)?$/u;
