import type { Field } from '../../../domain/definition/definition.ts';
import {
  type AddressPart,
  addressParts,
  countryCodes,
  countryName,
  partNames,
} from '../../../domain/fields/address.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import type { Language, Words } from '../../../text/words.ts';
import type { ControlView } from './control-view.ts';

/** An input for each part of an address, which browsers can fill in; the country is chosen from a list. */
export function address(field: Field, view: ControlView): Html {
  const { id } = field;
  const { words } = view.language;
  const whose = /^(billing|shipping)/i.exec(id)?.[1]?.toLowerCase();
  return html`<div class="address">${partNames.map((part, index) => {
    const { required, maxLength } = addressParts[part];
    const { label, autocomplete } = addressWords[part];
    const text = view.parts.get(part)?.at(-1) ?? '';
    const shared = attributes({
      class: `control ${part.replace('_', '-')}`,
      id: `${id}.${index}`,
      name: `${id}.${part}`,
      autocomplete: [whose, autocomplete].filter((word) => word !== undefined).join(' '),
      'aria-invalid': view.problemParts?.includes(part) ? 'true' : undefined,
      'aria-describedby': view.problemParts?.includes(part) ? `${id}.error` : undefined,
      disabled: !view.visible,
    });
    const mark = required
      ? field.required &&
        html` <span class="mark" aria-hidden="true">*</span><span class="sr"> (${words.required})</span>`
      : html` <span class="note">(${words.optional})</span>`;
    return html`<div class="part"><label for="${id}.${index}">${words[label]}${mark}</label>${
      part === 'country'
        ? html`<select${shared}><option value="">${words.choose}</option>${countriesOf(view.language).map(
            ({ code, name }) =>
              html`<option${attributes({ value: code, selected: code === text })}>${name}</option>`,
          )}</select>`
        : html`<input${shared}${attributes({ type: 'text', value: text, maxlength: maxLength, ...view.language.theirs })}>`
    }</div>
`;
  })}</div>`;
}

/** All countries by their names in the language of our own words, in its order of the alphabet. */
function countriesOf({ spoken }: Language): readonly Country[] {
  const known = countries.get(spoken);
  if (known !== undefined) return known;
  const { compare } = new Intl.Collator(spoken);
  const made = countryCodes
    .map((code) => ({ code, name: countryName(code, spoken) }))
    .sort((left, right) => compare(left.name, right.name));
  countries.set(spoken, made);
  return made;
}

/** By language; we have few. */
const countries = new Map<string, readonly Country[]>();

/** What people call each part of an address, and browsers. */
export const addressWords: Record<AddressPart, { label: keyof Words; autocomplete: string }> = {
  line1: { label: 'addressLine1', autocomplete: 'address-line1' },
  line2: { label: 'addressLine2', autocomplete: 'address-line2' },
  city: { label: 'addressCity', autocomplete: 'address-level2' },
  region: { label: 'addressRegion', autocomplete: 'address-level1' },
  postal_code: { label: 'addressPostalCode', autocomplete: 'postal-code' },
  country: { label: 'addressCountry', autocomplete: 'country' },
};

type Country = { code: string; name: string };
