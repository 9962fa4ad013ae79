// A page of any origin that shows a published form with markup of its own: one step at a time, with conditions, what is
// wrong in the reader's language, and a draft that survives a reload.
import { createForm, type FieldState, readForm } from 'headlessforms-client/form';

// This page is opened as …/?form=form_…, and ?service=https://… says where the service is.
const query = new URLSearchParams(location.search);
const service = query.get('service') ?? 'http://localhost:8080';
const form = createForm(await readForm(service, query.get('form') ?? ''), { service });

const heading = find<HTMLElement>('h1');
const page = find<HTMLFormElement>('form');
const fields = find<HTMLElement>('#fields');
const problem = find<HTMLElement>('#problem');
const back = find<HTMLButtonElement>('#back');
const send = find<HTMLButtonElement>('#send');
const output = find<HTMLOutputElement>('output');

page.addEventListener('submit', (event) => {
  event.preventDefault();
  void (form.state.step < form.state.steps ? form.next() : form.submit());
});
back.addEventListener('click', () => form.back());
form.subscribe(show);
show();

function show(): void {
  const { name, step, steps, status, hostedOnly, submissionId, successMessage } = form.state;
  heading.textContent = name;
  page.hidden = status === 'submitted';
  output.value = status === 'submitted' ? `${successMessage || 'Thank you!'} ${submissionId}` : '';
  problem.textContent =
    hostedOnly.length > 0 ? `Only our own page can ask for: ${hostedOnly.join(', ')}` : form.state.problem;
  back.hidden = step === 1;
  send.textContent = step < steps ? 'Continue' : form.state.submitLabel || 'Send';
  send.disabled = status === 'submitting' || hostedOnly.length > 0;
  // What is there stays, so that the person can go on typing.
  const shown = form.state.fields.map(
    (field) => document.getElementById(`field-${field.id}`) ?? created(field),
  );
  if (
    shown.some((each, index) => fields.children[index] !== each) ||
    fields.children.length !== shown.length
  ) {
    fields.replaceChildren(...shown);
  }
  for (const field of form.state.fields) update(field);
}

function created({ id, type, label, options }: FieldState): HTMLElement {
  const row = document.createElement('p');
  row.id = `field-${id}`;
  const name = row.appendChild(document.createElement('label'));
  name.textContent = `${label} `;
  const control = row.appendChild(controlFor(type));
  name.htmlFor = control.id = id;
  if (control instanceof HTMLSelectElement) {
    control.append(
      new Option('', ''),
      ...(options ?? []).map((option) => new Option(option.label, option.value)),
    );
  }
  control.setAttribute('aria-describedby', `${id}-error`);
  control.addEventListener('input', () => {
    if (control instanceof HTMLInputElement && type === 'checkbox') form.set(id, control.checked);
    else if (control instanceof HTMLInputElement && control.files) void upload(id, control.files);
    else form.setText(id, control.value);
  });
  row.appendChild(document.createElement('span')).id = `${id}-error`;
  return row;
}

function controlFor(type: string) {
  if (type === 'select' || type === 'radio') return document.createElement('select');
  if (type === 'textarea') return document.createElement('textarea');
  const input = document.createElement('input');
  input.type = type === 'checkbox' || type === 'file' ? type : 'text';
  return input;
}

async function upload(id: string, files: FileList): Promise<void> {
  for (const file of files) await form.upload(id, file);
}

function update({ id, type, text, value, error = '' }: FieldState): void {
  const control = document.getElementById(id) as HTMLInputElement;
  if (type === 'checkbox') control.checked = value === true;
  else if (type !== 'file' && control.value !== text) control.value = text;
  control.setAttribute('aria-invalid', String(error !== ''));
  find(`#${id}-error`).textContent = error;
}

/** What the page has; ids of fields are fit for selectors. */
function find<Found extends Element>(selector: string): Found {
  const found = document.querySelector<Found>(selector);
  if (found === null) throw new Error(`The page has no ${selector}`);
  return found;
}
