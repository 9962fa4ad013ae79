import type { Field } from '../../../domain/definition/definition.ts';
import {
  MAX_SIGNATURE_BYTES,
  MAX_SIGNATURE_LENGTH,
  SIGNATURE_TYPE,
  takesWay,
} from '../../../domain/fields/signature.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { type ControlView, described, identity } from './control-view.ts';
import { keptFiles, uploadWords } from './files.ts';

/**
 * An input for one's name, and where the field takes a drawing an area for it, which the script shows. Without the
 * script, a field that takes nothing but a drawing asks for a picture; with it, what is typed there is drawn.
 */
export function signature(field: Field, view: ControlView): Html {
  const { words } = view.language;
  const typed = takesWay(field, 'typed');
  if (!takesWay(field, 'drawn')) return nameInput(field, view);
  return html`<div${attributes({
    class: 'signature',
    'data-signature': field.id,
    ...uploadWords(field, MAX_SIGNATURE_BYTES, view),
  })}><div class="pad" hidden><p class="note" id="${field.id}.pad">${words.signatureDraw}</p>
<canvas role="img" aria-labelledby="${field.id}.pad"></canvas>
<button class="quiet small" type="button">${words.signatureClear}</button></div>
${keptFiles(field, view, words.signatureDrawn)}
${typed ? nameInput(field, view) : pictureInput(field, view)}</div>`;
}

function nameInput(field: Field, view: ControlView): Html {
  return labelled(field, view, view.language.words.signatureType, {
    name: `${field.id}.text`,
    type: 'text',
    autocomplete: 'name',
    maxlength: MAX_SIGNATURE_LENGTH,
    placeholder: field.placeholder,
    value: view.parts.get('text')?.at(-1) ?? '',
  });
}

function pictureInput(field: Field, view: ControlView): Html {
  const { signatureFile, signatureType } = view.language.words;
  return labelled(field, view, signatureFile, {
    type: 'file',
    accept: SIGNATURE_TYPE,
    'data-type-label': signatureType,
  });
}

function labelled(
  field: Field,
  view: ControlView,
  label: string,
  own: Record<string, string | number | undefined>,
): Html {
  return html`<div class="part"><label for="${field.id}.0">${label}</label><input${attributes({
    class: 'control',
    ...identity(field, view),
    ...view.language.theirs,
    ...described({ describedBy: view.problem && `${field.id}.error`, problem: view.problem }),
    ...own,
  })}></div>`;
}
