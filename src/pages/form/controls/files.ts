import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { fileSizeInWords } from '../../../text/quantities.ts';
import { fill } from '../../../text/words.ts';
import { fileProblems } from '../field-words.ts';
import { type ControlView, common, type KnownFiles } from './control-view.ts';

/** Lists what was uploaded already below the control. */
export function files(field: Field, view: ControlView): Html {
  return html`<input${common(field, view)}${attributes({
    type: 'file',
    accept: field.accept?.join(','),
    multiple: (field.maxFiles ?? 1) > 1,
    ...uploadWords(field, field.maxBytes ?? 0, view),
    'data-max-files': field.maxFiles,
  })}>
${keptFiles(field, view)}`;
}

/** What the script needs to upload a file of at most `maxBytes`. */
export function uploadWords(field: Field, maxBytes: number, { language }: ControlView) {
  const { tooLarge, empty, refused } = fileProblems(field, language);
  return {
    'data-max-bytes': maxBytes,
    'data-too-large': tooLarge,
    'data-empty': empty,
    'data-refused': refused,
  };
}

/** What the page carries of an uploaded file, so that it can be shown again. */
export function knownOf(id: string, known: KnownFiles, disabled = false): Html {
  const { name, size } = known.get(id) ?? {};
  const inputs = [
    { name: `_name.${id}`, value: name },
    { name: `_size.${id}`, value: size },
  ].filter(({ value }) => value !== undefined);
  return html`${inputs.map((input) => html`<input${attributes({ type: 'hidden', ...input, disabled })}>`)}`;
}

/** The files that were uploaded, by their names or by `called`, each with a box that removes it. */
export function keptFiles(field: Field, view: ControlView, called?: string): Html {
  const { language, visible } = view;
  const uploaded = view.texts.filter((text) => text !== '');
  return html`<ul class="files">${uploaded.map((id) => {
    const { name = language.words.uploadedFile, size } = view.files.get(id) ?? {};
    const disabled = !visible;
    return html`<li><input${attributes({ type: 'hidden', name: field.id, value: id, disabled })}>
${knownOf(id, view.files, disabled)}<span class="name">${called ?? name}</span>
${size !== undefined && html`<span class="note">${fileSizeInWords(size, language.tag)}</span>`}
<label class="choice"><input${attributes({
      type: 'checkbox',
      name: '_remove',
      value: id,
      'aria-label': fill(language.words.removeFile, { file: called ?? name }),
      disabled,
    })}> ${language.words.remove}</label></li>`;
  })}</ul>`;
}
