import { required, unrecognized, type Violation, wrongType } from '../errors/violations.ts';
import { isObject, type Json, type JsonObject, ownValue } from '../json/json.ts';
import { isBlank } from '../text/typed-signs.ts';
import { type AnswerCheck, type FieldTypeRules, inputsOfParts } from './field-type.ts';
import { plainTextProblems, readText } from './text.ts';

/** The parts of an address in the order in which people write them, with the most characters of each. */
export const addressParts = {
  line1: { maxLength: 200, required: true },
  line2: { maxLength: 200, required: false },
  city: { maxLength: 100, required: true },
  region: { maxLength: 100, required: false },
  postal_code: { maxLength: 20, required: false },
  country: { maxLength: 2, required: true },
} as const;

/** The ISO 3166-1 codes of countries. */
export const countryCodes: readonly string[] = (
  'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT ' +
  'BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ' +
  'ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT ' +
  'HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS ' +
  'LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI ' +
  'NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG ' +
  'SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG ' +
  'UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW'
).split(' ');

/** A postal address: its lines, city and country, and where there are such, region and postal code. */
export const address: FieldTypeRules<object> = {
  attributes: {},
  check: () => checkAddress,
  answerType: () => 'Address',
  jsonSchema: () => addressSchema({ type: 'string', enum: [...countryCodes] }),
  sample: () => ({ line1: '1 Example Street', city: 'Exampleton', postal_code: '12345', country: 'US' }),
  inWords: (answer, _field, locale) => inWords(isObject(answer) ? answer : {}, locale),
  readInput: (_values, _field, part) => readParts(part),
  parts: () => partNames,
  toInputs: inputsOfParts,
  control: 'address',
  kind: 'parts',
  // The codes of all countries are many words for what every model knows.
  agentSchema: () => addressSchema({ type: 'string', description: 'ISO 3166-1 alpha-2' }),
};

const checkAddress: AnswerCheck = (answer, path) => {
  if (!isObject(answer)) return [wrongType(path, 'object', answer)];
  const unknown = Object.keys(answer).filter((key) => !Object.hasOwn(addressParts, key));
  return [
    ...partNames.flatMap((part) => {
      const value = ownValue(answer, part);
      return partProblems(part, value, `${path}.${part}`);
    }),
    ...unrecognized(path, unknown, partNames),
  ];
};

function partProblems(part: AddressPart, value: unknown, path: string): Violation[] {
  const { maxLength, required: needed } = addressParts[part];
  if (value === undefined || (value === '' && needed)) return needed ? [required(path)] : [];
  if (typeof value !== 'string') return [wrongType(path, 'string', value)];
  if (part === 'country') {
    const message = 'Must be an ISO 3166-1 code of a country, such as US';
    return countries.has(value) ? [] : [{ path, code: 'invalid_enum_value', message }];
  }
  return plainTextProblems(value, path, maxLength);
}

function addressSchema(country: JsonObject): JsonObject {
  const parts = Object.fromEntries(partNames.map((part) => [part, partSchema(part)]));
  return {
    type: 'object',
    properties: { ...parts, country },
    required: partNames.filter((part) => addressParts[part].required),
    additionalProperties: false,
  };
}

function partSchema(part: AddressPart): JsonObject {
  const { maxLength, required: needed } = addressParts[part];
  return { type: 'string', ...(needed && { minLength: 1 }), maxLength };
}

/** As on an envelope, in lines; the country by its name. */
function inWords(answer: Record<string, unknown>, locale: string): string {
  const text = (part: AddressPart) => {
    const value = ownValue(answer, part);
    return typeof value === 'string' ? value : '';
  };
  const city = [[text('postal_code'), text('city')], [text('region')]].map((parts) => joined(parts, ' '));
  const lines = [text('line1'), text('line2'), joined(city, ', '), countryName(text('country'), locale)];
  return joined(lines, '\n');
}

function joined(parts: string[], sign: string): string {
  return parts.filter((part) => part !== '').join(sign);
}

/** The name of a country in the language of a tag; what is no code reads as it is. */
export function countryName(code: string, locale: string): string {
  return countries.has(code) ? (new Intl.DisplayNames(locale, { type: 'region' }).of(code) ?? code) : code;
}

/** Empty parts are left out; without any, there is no answer. */
function readParts(part: (name: string) => readonly string[]): Json {
  const texts = partNames.flatMap((name): [string, string][] => {
    const text = readText(part(name)).trim();
    return isBlank(text) ? [] : [[name, text]];
  });
  return texts.length === 0 ? null : Object.fromEntries(texts);
}

/** The names of the parts of an address. */
export const partNames = ['line1', 'line2', 'city', 'region', 'postal_code', 'country'] as const;

const countries = new Set(countryCodes);

export type AddressPart = keyof typeof addressParts;
