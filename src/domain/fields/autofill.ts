/** What browsers are told to fill into a text field, by its id: the word of HTML's `autocomplete`. */
export function autofillOf(fieldId: string): string | undefined {
  return words.get(fieldId.toLowerCase().replace(/[_-]/g, ''));
}

/** Whether a text field asks for the name of a person, by its id. */
export function asksName(fieldId: string): boolean {
  const word = autofillOf(fieldId);
  return word === 'name' || word === 'given-name' || word === 'family-name';
}

const words = new Map([
  ['name', 'name'],
  ['fullname', 'name'],
  ['yourname', 'name'],
  ['firstname', 'given-name'],
  ['givenname', 'given-name'],
  ['lastname', 'family-name'],
  ['familyname', 'family-name'],
  ['surname', 'family-name'],
  ['company', 'organization'],
  ['organization', 'organization'],
  ['organisation', 'organization'],
  ['jobtitle', 'organization-title'],
  ['street', 'street-address'],
  ['address', 'street-address'],
  ['zip', 'postal-code'],
  ['zipcode', 'postal-code'],
  ['postcode', 'postal-code'],
  ['postalcode', 'postal-code'],
  ['city', 'address-level2'],
  ['country', 'country-name'],
]);
