/**
 * A command that makes a form, for people to paste into a terminal. `key` is the text of an API key, if one is to be
 * sent.
 */
export function firstCommand(url: string, key?: string): string {
  const definition = {
    name: 'Contact',
    slug: 'contact',
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'message', type: 'textarea' },
    ],
    delivery: { type: 'email' },
  };
  const headers = [
    ...(key === undefined ? [] : [`-H 'Authorization: Bearer ${key}'`]),
    "-H 'Content-Type: application/json'",
  ];
  return `curl ${url}/api/forms/create ${headers.join(' ')} -d '${JSON.stringify(definition)}'`;
}
