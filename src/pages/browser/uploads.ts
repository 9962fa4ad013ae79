import { fileSizeInWords } from '../../text/quantities.ts';
import { element } from './element.ts';
import { forgetProblem } from './inputs.ts';
import { keepSession, sessionHeaders } from './saving.ts';

const underWay = new Set<Promise<void>>();

/** Uploads files as soon as they are chosen, shows their progress, and lets a person remove them. */
export function prepareUploads(root: Element, words: BrowserWords, changed: Changed): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('[data-type=file] input[type=file]')) {
    const list = input.parentElement?.querySelector('ul.files');
    if (!list) continue;
    prepareKept(list, words, changed);
    input.ondragover = () => input.classList.add('over');
    input.ondragleave = input.ondrop = () => input.classList.remove('over');
    input.onchange = () => {
      const field = input.closest('[data-field]');
      if (field !== null) forgetProblem(field);
      for (const row of list.querySelectorAll('li:has(.error)')) row.remove();
      for (const file of input.files ?? []) {
        if (input.getAttribute('data-max-files') === '1') list.replaceChildren();
        track(upload(input, file, list, words, changed));
      }
      // The post must not contain the uploaded files again.
      input.value = '';
    };
  }
}

/** Turns the boxes that remove the files of a list into buttons. */
export function prepareKept(list: Element, words: BrowserWords, changed: Changed): void {
  for (const row of list.querySelectorAll('li')) {
    const name = row.querySelector('.name')?.textContent ?? '';
    row.querySelector('label')?.replaceWith(removal(row, name, words, changed));
  }
}

/** Counts work among the uploads that are under way. */
export function track(work: Promise<void>): void {
  underWay.add(work);
  void work.finally(() => underWay.delete(work));
}

/** Settles when no upload is under way; undefined if none is. */
export function uploadsUnderWay(): Promise<unknown> | undefined {
  return underWay.size === 0 ? undefined : Promise.all(underWay);
}

/** Says of files that could not be uploaded before the page was loaded anew that it could not keep them. */
export function showUnsent(
  root: Element,
  files: readonly [field: string, name: string][],
  words: BrowserWords,
): void {
  for (const [field, name] of files) {
    const textContent = `${words('upload-failed').replace('{file}', name)} ${words('choose-again')}`;
    const row = element('li');
    row.append(element('span', { className: 'error', textContent }));
    row.dataset.unsent = name;
    root.querySelector(`[data-field="${field}"][data-type=file] ul.files`)?.append(row);
  }
}

async function upload(
  input: HTMLInputElement,
  file: File,
  list: Element,
  words: BrowserWords,
  changed: Changed,
): Promise<void> {
  const row = list.appendChild(element('li'));
  const uploaded = await uploadFile({ field: input.name, limits: input, row, words }, file);
  if (uploaded === undefined) return;
  keptRow(row, input.name, uploaded);
  row.append(removal(row, uploaded.filename, words, changed));
  changed();
}

/** Uploads a file and shows in `row` how far it is, or why it failed: then there is none. */
export async function uploadFile(
  { field, limits, row, words }: Uploading,
  file: File,
): Promise<Uploaded | undefined> {
  const text = row.appendChild(element('span'));
  const bar = row.appendChild(element('progress', { max: 100 }));
  const show = (percent: number) => {
    bar.value = percent;
    text.textContent = words('uploading').replace('{file}', file.name).replace('{percent}', String(percent));
    bar.setAttribute('aria-label', text.textContent);
  };
  show(0);
  try {
    if (file.size === 0) throw new Error('too_small');
    if (file.size > Number(limits.getAttribute('data-max-bytes'))) throw new Error('too_big');
    return await send(field, file, show);
  } catch (error) {
    const code = error instanceof Error ? error.message : '';
    const attributes: Record<string, string> = { too_big: 'data-too-large', too_small: 'data-empty' };
    const reason = code === '' ? null : limits.getAttribute(attributes[code] ?? 'data-refused');
    text.className = 'error';
    text.setAttribute('role', 'alert');
    text.textContent = (reason ?? words('upload-failed')).replace('{file}', file.name);
    if (reason === null) row.dataset.unsent = file.name;
    bar.remove();
    return undefined;
  }
}

/** Makes a row that of an uploaded file: its name and size, and the inputs that carry it. */
export function keptRow(row: Element, field: string, { upload_id: id, filename, size }: Uploaded): void {
  const textContent = fileSizeInWords(size, document.documentElement.lang);
  row.replaceChildren(
    element('input', { type: 'hidden', name: field, value: id }),
    element('input', { type: 'hidden', name: `_name.${id}`, value: filename }),
    element('input', { type: 'hidden', name: `_size.${id}`, value: String(size) }),
    element('span', { className: 'name', textContent: filename }),
    element('span', { className: 'note', textContent }),
  );
}

/** Uses XMLHttpRequest, since `fetch` does not report the progress of an upload. */
function send(field: string, file: File, show: (percent: number) => void): Promise<Uploaded> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ field, filename: file.name });
    const path = document.querySelector('main form')?.getAttribute('data-uploads');
    const own = `${location.pathname.replace(/\/$/, '')}/uploads`;
    request.open('POST', `${path ?? own}?${query}`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    for (const [name, value] of Object.entries(sessionHeaders())) request.setRequestHeader(name, value);
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

function removal(row: Element, name: string, words: BrowserWords, changed: Changed): HTMLElement {
  const button = element('button', { type: 'button', className: 'quiet', textContent: words('remove') });
  button.setAttribute('aria-label', words('remove-file').replace('{file}', name));
  button.onclick = () => {
    row.remove();
    changed();
  };
  return button;
}

export type BrowserWords = (name: string) => string;

/** Called when the files of the form have changed. */
export type Changed = () => void;

/** What is uploaded to: the id of a field, the element that carries its limits, and the row that shows it. */
type Uploading = { field: string; limits: Element; row: HTMLElement; words: BrowserWords };

type Uploaded = { upload_id: string; filename: string; size: number };
