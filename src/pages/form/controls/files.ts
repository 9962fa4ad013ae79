import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html, html } from '../../../text/html.ts';
import { fill } from '../../../text/words/language.ts';
import { sizeInWords } from '../hints.ts';
import { type ControlView, common } from './control-view.ts';

/** Lists what was uploaded already below the control, each file with a box that removes it. */
export function files(field: Field, view: ControlView): Html {
  const disabled = !view.visible;
  const uploaded = view.texts.filter((text) => text !== '');
  return html`<input${common(field, view)}${attributes({
    type: 'file',
    accept: field.accept?.join(','),
    multiple: (field.maxFiles ?? 1) > 1,
    'data-max-bytes': field.maxBytes,
    'data-too-large': fill(view.language.words.fileTooLarge, {
      size: sizeInWords(field.maxBytes ?? 0, view.language.tag),
    }),
    'data-refused': view.language.words.fileRefused,
    'data-max-files': field.maxFiles,
  })}>
<ul class="files">${uploaded.map((id) => {
    const name = view.fileNames.get(id) ?? view.language.words.uploadedFile;
    return html`<li><input${attributes({ type: 'hidden', name: field.id, value: id, disabled })}>
<input${attributes({ type: 'hidden', name: `_name.${id}`, value: name, disabled })}><span class="name">${name}</span>
<label class="choice"><input${attributes({
      type: 'checkbox',
      name: '_remove',
      value: id,
      'aria-label': fill(view.language.words.removeFile, { file: name }),
      disabled,
    })}> ${view.language.words.remove}</label></li>`;
  })}</ul>`;
}
