/** What browsers are told to fill into a text field, by its id: the word of HTML's `autocomplete`. */
export function autofillOf(fieldId: string): string | undefined {
  const id = fieldId.toLowerCase().replace(/[_-]/g, '');
  return Object.entries(ids).find(([, named]) => named.split(' ').includes(id))?.[0];
}

/** Whether a text field asks for the name of a person, by its id. */
export function asksName(fieldId: string): boolean {
  return ['name', 'given-name', 'family-name'].includes(autofillOf(fieldId) ?? '');
}

const ids = {
  name: 'name fullname yourname',
  'given-name': 'firstname givenname',
  'family-name': 'lastname familyname surname',
  organization: 'company organization organisation',
  'organization-title': 'jobtitle',
  'street-address': 'street address',
  'postal-code': 'zip zipcode postcode postalcode',
  'address-level2': 'city',
  'country-name': 'country',
};
