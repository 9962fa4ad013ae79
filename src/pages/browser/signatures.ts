import { element } from './element.ts';
import { forgetProblem } from './inputs.ts';
import { type BrowserWords, type Changed, keptRow, prepareKept, track, uploadFile } from './uploads.ts';

/**
 * Lets people draw their signatures. A drawing is uploaded as soon as the pen rests; drawing takes the place of a typed
 * name, and typing that of a drawing.
 */
export function prepareSignatures(root: Element, words: BrowserWords, changed: Changed): void {
  for (const frame of root.querySelectorAll<HTMLElement>('[data-signature]')) {
    // What can't be loaded leaves the page as it works without script.
    void prepare(frame, words, changed).catch(() => {});
  }
}

async function prepare(frame: HTMLElement, words: BrowserWords, changed: Changed): Promise<void> {
  const area = frame.querySelector<HTMLElement>('.pad');
  const canvas = frame.querySelector('canvas');
  const list = frame.querySelector('ul.files');
  const input = frame.querySelector<HTMLInputElement>('.part input');
  if (!area || !canvas || !list || !input) return;
  prepareKept(list, words, onRemoved);
  const { default: SignaturePad } = await import('signature_pad');
  const pad = new SignaturePad(canvas, { backgroundColor: PAPER, penColor: INK });
  const drawsName = input.type === 'file';
  let drawing = 0;

  if (drawsName) takeName(input);
  // A picture that was kept can't be shown again: it stands in the list until it is removed.
  area.hidden = list.children.length > 0;
  pad.addEventListener('beginStroke', () => {
    drawing += 1;
    input.value = '';
    forgetProblem(frame.closest('[data-field]') ?? frame);
  });
  pad.addEventListener('endStroke', keepSoon);
  area.querySelector('button')?.addEventListener('click', () => {
    input.value = '';
    discard();
    changed();
  });
  input.addEventListener('input', () => {
    discard();
    if (drawsName && input.value.trim() !== '') keepSoon();
  });
  new ResizeObserver(fit).observe(canvas);

  /** Draws what there is anew in the size of the canvas, in the pixels of the screen. */
  function fit(): void {
    if (canvas === null || canvas.offsetWidth === 0) return;
    const ratio = Math.min(MAX_RATIO, Math.max(1, window.devicePixelRatio));
    canvas.width = canvas.offsetWidth * ratio;
    canvas.height = canvas.offsetHeight * ratio;
    canvas.getContext('2d')?.scale(ratio, ratio);
    pad.fromData(pad.toData());
    if (drawsName && input && canvas) drawName(input, canvas);
  }

  function discard(): void {
    drawing += 1;
    pad.clear();
    list?.replaceChildren();
    if (drawsName && input && canvas) drawName(input, canvas);
  }

  function onRemoved(): void {
    if (area) area.hidden = false;
    discard();
    changed();
  }

  function keepSoon(): void {
    drawing += 1;
    track(keep(drawing));
  }

  async function keep(current: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    if (!canvas || !list || current !== drawing) return;
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve));
    if (blob === null || current !== drawing) return;
    const field = frame.dataset.signature ?? '';
    const row = element('li');
    const uploaded = await uploadFile(
      { field, limits: frame, row, words },
      new File([blob], 'signature.png', { type: blob.type }),
    );
    if (current !== drawing) return;
    list.replaceChildren(row);
    if (uploaded === undefined) return;
    keptRow(row, field, uploaded);
    // The canvas shows it.
    row.hidden = true;
    changed();
  }
}

function drawName({ value }: HTMLInputElement, canvas: HTMLCanvasElement): void {
  const context = canvas.getContext('2d');
  const name = value.trim();
  if (!context || name === '') return;
  context.fillStyle = INK;
  context.font = `italic ${canvas.offsetHeight / 3}px cursive`;
  context.textBaseline = 'middle';
  const margin = canvas.offsetHeight / 8;
  context.fillText(name, margin, canvas.offsetHeight / 2, canvas.offsetWidth - 2 * margin);
}

/** With the script a name that is typed is drawn, in place of choosing a picture. */
function takeName(file: HTMLInputElement): void {
  const label = file.previousElementSibling;
  if (label !== null) label.textContent = file.getAttribute('data-type-label');
  file.type = 'text';
  file.removeAttribute('name');
  file.removeAttribute('accept');
  file.autocomplete = 'name';
  file.maxLength = MAX_NAME;
}

/** Dark on white, whatever the colours of the page: the picture is read elsewhere, too. */
const PAPER = 'rgb(255, 255, 255)';
const INK = 'rgb(16, 24, 64)';

/** Pauses between the strokes of a signature are shorter. */
const REST_MS = 600;

/** More pixels make the picture larger and no clearer. */
const MAX_RATIO = 2;

const MAX_NAME = 200;
