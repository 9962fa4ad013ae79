import { forgetProblem } from './typing.ts';
import { keepSession, visitHeaders } from './visits.ts';

const underWay = new Set<Promise<void>>();

/** Uploads files as soon as they are chosen, shows their progress, and lets a person remove them. */
export function prepareUploads(root: Element, words: Words, changed: () => void): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('input[type=file]')) {
    const list = input.parentElement?.querySelector('ul.files');
    if (!list) continue;
    for (const row of list.querySelectorAll('li')) {
      const name = row.querySelector<HTMLInputElement>('input[name^="_name."]')?.value ?? '';
      row.querySelector('label')?.replaceWith(removal(row, name, words, changed));
    }
    input.ondragover = () => input.classList.add('over');
    input.ondragleave = input.ondrop = () => input.classList.remove('over');
    input.onchange = () => {
      const field = input.closest('[data-field]');
      if (field !== null) forgetProblem(field);
      for (const row of list.querySelectorAll('li:has(.error)')) row.remove();
      for (const file of input.files ?? []) {
        if (input.getAttribute('data-max-files') === '1') list.replaceChildren();
        const work = upload(input, file, list, words, changed);
        underWay.add(work);
        void work.finally(() => underWay.delete(work));
      }
      // The post must not contain the uploaded files again.
      input.value = '';
    };
  }
}

/** Settles when no upload is under way; undefined if none is. */
export function uploadsUnderWay(): Promise<unknown> | undefined {
  return underWay.size === 0 ? undefined : Promise.all(underWay);
}

async function upload(
  input: HTMLInputElement,
  file: File,
  list: Element,
  words: Words,
  changed: () => void,
): Promise<void> {
  const row = list.appendChild(document.createElement('li'));
  const text = row.appendChild(document.createElement('span'));
  const bar = row.appendChild(document.createElement('progress'));
  bar.max = 100;
  const show = (percent: number) => {
    bar.value = percent;
    text.textContent = words('uploading').replace('{file}', file.name).replace('{percent}', String(percent));
    bar.setAttribute('aria-label', text.textContent);
  };
  show(0);
  try {
    if (file.size > Number(input.getAttribute('data-max-bytes'))) throw new Error('too_big');
    const { upload_id: id, filename, size } = await send(input.name, file, show);
    const name = document.createElement('span');
    name.className = 'name';
    name.textContent = filename;
    const note = document.createElement('span');
    note.className = 'note';
    note.textContent = sizeInWords(size);
    row.replaceChildren(
      hidden(input.name, id),
      hidden(`_name.${id}`, filename),
      name,
      note,
      removal(row, filename, words, changed),
    );
    changed();
  } catch (error) {
    const code = error instanceof Error ? error.message : '';
    const reason =
      code === '' ? null : input.getAttribute(code === 'too_big' ? 'data-too-large' : 'data-refused');
    const why = reason === null ? '' : ` ${reason}`;
    text.className = 'error';
    text.setAttribute('role', 'alert');
    text.textContent = words('upload-failed').replace('{file}', file.name) + why;
    bar.remove();
  }
}

/** Uses XMLHttpRequest, since `fetch` does not report the progress of an upload. */
function send(field: string, file: File, show: (percent: number) => void): Promise<Uploaded> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ field, filename: file.name });
    request.open('POST', `${location.pathname.replace(/\/$/, '')}/uploads?${query}`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    for (const [name, value] of Object.entries(visitHeaders())) request.setRequestHeader(name, value);
    request.responseType = 'json';
    request.upload.onprogress = ({ loaded, total }) => show(Math.floor((loaded / total) * 100));
    request.onerror = () => reject(new Error());
    request.onload = () => {
      const { response, status } = request;
      keepSession(response?.session_id);
      if (status === 201) resolve(response.upload);
      else reject(new Error(response?.error?.details?.[0]?.code));
    };
    request.send(file);
  });
}

function removal(row: Element, name: string, words: Words, changed: () => void): HTMLElement {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'quiet';
  button.textContent = words('remove');
  button.setAttribute('aria-label', words('remove-file').replace('{file}', name));
  button.onclick = () => {
    row.remove();
    changed();
  };
  return button;
}

/** `1.9 MB`, in the language of the page. */
function sizeInWords(bytes: number): string {
  const [size, unit] = bytes < 1024 * 1024 ? [Math.ceil(bytes / 1024), 'kB'] : [bytes / 1024 / 1024, 'MB'];
  const { lang } = document.documentElement;
  return `${size.toLocaleString(lang, { maximumFractionDigits: 1, numberingSystem: 'latn' })} ${unit}`;
}

function hidden(name: string, value: string): HTMLInputElement {
  const input = document.createElement('input');
  input.type = 'hidden';
  input.name = name;
  input.value = value;
  return input;
}

type Words = (name: string) => string;

type Uploaded = { upload_id: string; filename: string; size: number };
