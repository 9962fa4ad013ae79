/**
 * A token, or another text that ends in a code over what stands before it, with one character of the code changed.
 * The last characters of base64 hold bits that nothing reads, and one put in by chance what was there already: this
 * character is none of the last, and always another one.
 */
export function forged(token: string): string {
  const at = token.length - 10;
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}
