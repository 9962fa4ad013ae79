// What a page of any origin can do without a key: check answers as a person types, submit them, show what is wrong.
import { ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { FailureSchema, type Violation } from './gen/headlessforms/v1/errors_pb.js';
import { SubmissionsService } from './gen/headlessforms/v1/submissions_pb.js';

// This page is opened as …/?form=form_…, and ?service=https://… says where the service is.
const query = new URLSearchParams(location.search);
const formId = query.get('form') ?? '';
const baseUrl = query.get('service') ?? 'http://localhost:8080';
const submissions = createClient(SubmissionsService, createConnectTransport({ baseUrl, useHttpGet: true }));

const form = document.querySelector('form') as HTMLFormElement;
const output = document.querySelector('output') as HTMLOutputElement;
const list = document.querySelector('#violations') as HTMLUListElement;

form.addEventListener('change', () => void check());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void submit();
});

async function check(): Promise<void> {
  const { violations } = await submissions.checkAnswers({ formId, answers: answersIn(form) });
  show(violations);
}

async function submit(): Promise<void> {
  try {
    const { submissionId } = await submissions.createSubmission({ formId, answers: answersIn(form) });
    show([]);
    output.value = `Thank you! ${submissionId}`;
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    show(error.findDetails(FailureSchema)[0]?.violations ?? []);
    output.value = error.rawMessage;
  }
}

/** What is filled in: an answer that is not given is left out. */
function answersIn(form: HTMLFormElement): Record<string, string> {
  const given = [...new FormData(form)].filter(([, value]) => typeof value === 'string' && value !== '');
  return Object.fromEntries(given) as Record<string, string>;
}

function show(violations: Violation[]): void {
  output.value = '';
  list.replaceChildren(
    ...violations.map(({ path, message }) => {
      const item = document.createElement('li');
      item.textContent = `${path}: ${message}`;
      return item;
    }),
  );
}
