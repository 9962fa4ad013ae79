/** Whether a text is an `https` address without credentials and spaces, to send a browser to. */
export function isHttpsUrl(text: string): boolean {
  if (/\s/.test(text) || !URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return protocol === 'https:' && username === '' && password === '';
}
