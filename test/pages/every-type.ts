const one = { label: 'One', value: '1' };
const two = { label: 'Two', value: '2' };
const three = { label: 'Three', value: '3' };
const long = { label: 'The one with the long name', value: '4' };

/** A field of every type that a person fills. */
export const everyType = [
  { id: 'name', type: 'text', required: true, placeholder: 'Ada Lovelace', maxLength: 80 },
  { id: 'notes', type: 'textarea', description: 'Several lines', required: true },
  { id: 'email', type: 'email' },
  { id: 'site', type: 'url' },
  { id: 'phone', type: 'phone' },
  { id: 'age', type: 'number', min: 1, max: 120, step: 1 },
  { id: 'laptop', type: 'boolean', required: true },
  { id: 'consent', type: 'checkbox', required: true, description: 'All of the terms' },
  { id: 'day', type: 'date', min: '2026-12-01' },
  { id: 'at', type: 'time' },
  { id: 'call', type: 'datetime' },
  {
    id: 'diet',
    type: 'select',
    options: [
      { label: 'None', value: 'none' },
      { label: 'Vegan', value: 'vegan' },
    ],
  },
  {
    id: 'track',
    type: 'radio',
    required: true,
    options: [
      { label: 'Design', value: 'des' },
      { label: 'Engineering', value: 'eng' },
    ],
  },
  {
    id: 'languages',
    type: 'multi_select',
    minItems: 1,
    options: [
      { label: 'English', value: 'en' },
      { label: 'German', value: 'de' },
    ],
  },
  { id: 'cv', type: 'file' },
  { id: 'about', type: 'statement', description: 'The last questions' },
  { id: 'mood', type: 'rating', required: true, max: 10 },
  { id: 'again', type: 'scale', min: 0, max: 10, minLabel: 'Never', maxLabel: 'Any time' },
  { id: 'order', type: 'ranking', options: [one, two, three] },
  { id: 'grid', type: 'matrix', rows: [one, two], options: [one, two, three] },
  { id: 'boxes', type: 'matrix', rows: [one, two], options: [one, long], multiple: true },
  { id: 'home', type: 'address' },
  { id: 'sign', type: 'signature' },
  { id: 'initials', type: 'signature', accept: ['typed'] },
  { id: 'colour', type: 'radio', options: [one, two], allowOther: true },
  { id: 'fruit', type: 'select', options: [one, two], allowOther: true },
  { id: 'pets', type: 'multi_select', options: [one, two], allowOther: true },
];

/** What a person presses in each control of `everyType`; in en-US the month comes first. */
export const keystrokes: [selector: string, keys: string[]][] = [
  ['[name=name]', [...'Ada']],
  ['[name=notes]', ['a', 'Enter', 'b']],
  ['[name=email]', [...'a@b.co']],
  ['[name=site]', [...'http://a.b']],
  ['[name=phone]', [...'+4930123456']],
  ['[name=age]', ['7']],
  ['[name=laptop][value=true]', ['Space']],
  ['[name=consent]', ['Space']],
  ['[name=day]', [...'12242026']],
  ['[name=at]', [...'1030A']],
  ['[name=call]', [...'122420261030A']],
  ['[name=diet]', ['v']],
  ['[name=track][value=des]', ['Space', 'ArrowDown']],
  ['[name=languages][value=en]', ['Space', 'Tab', 'Space']],
  ['[name=mood][value="4"]', ['Space', 'ArrowRight']],
  ['[name=again][value="0"]', ['Space']],
  ['[name="grid.1"][value="1"]', ['Space', 'ArrowRight', 'Tab', 'Space']],
  ['[name="boxes.2"][value="4"]', ['Space']],
  ['[name="home.line1"]', [...'1 St']],
  ['[name="home.city"]', [...'Bern']],
  ['[name="home.country"]', ['S', 'w', 'i']],
  ['[name="sign.text"]', [...'Ada']],
  ['[name="initials.text"]', [...'AL']],
  ['[name=colour][data-other]', ['Space', 'Tab', ...'Red']],
  ['[name="pets.other"]', [...'Owl']],
  ['[data-ranking=order] li:first-child button:last-child', ['Enter']],
];
