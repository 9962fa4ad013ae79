// A published form in React components of one's own.
import { type PublicForm, readForm } from 'headlessforms-client/form';
import { useForm } from 'headlessforms-client/react';
import { createRoot } from 'react-dom/client';

// This page is opened as …/?form=form_…, and ?service=https://… says where the service is.
const query = new URLSearchParams(location.search);
const service = query.get('service') ?? 'http://localhost:8080';

function OwnForm({ definition }: { definition: PublicForm }) {
  const form = useForm(definition, { service, localNumbers: true });
  if (form.status === 'submitted')
    return <output>{`${form.successMessage || 'Thank you!'} ${form.submissionId}`}</output>;
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        // Of a date that lacks its year a browser has no value: it says so at the input.
        const inputs = [...event.currentTarget.querySelectorAll('input')];
        if (inputs.some((input) => input.validity.badInput && !input.reportValidity())) return;
        void (form.step < form.steps ? form.next() : form.submit());
      }}
    >
      <h1>{form.name}</h1>
      {form.fields.map(({ id, type, label, options, error }) => (
        <p key={id}>
          <label htmlFor={id}>{label}</label>{' '}
          {type === 'select' ? (
            <select {...form.input(id)}>
              <option value="" />
              {options?.map((option) => (
                <option key={option.value} value={option.value}>
                  {option.label}
                </option>
              ))}
            </select>
          ) : (
            <input type={native.has(type) ? type : 'text'} {...form.input(id)} />
          )}{' '}
          <span id={`${id}-error`}>{error}</span>
        </p>
      ))}
      <p role="alert">{form.problem}</p>
      {form.step > 1 && (
        <button type="button" onClick={form.back}>
          Back
        </button>
      )}
      <button type="submit" disabled={form.status === 'submitting' || form.hostedOnly.length > 0}>
        {form.step < form.steps ? 'Continue' : form.submitLabel || 'Send'}
      </button>
    </form>
  );
}

/** The types of fields that are types of inputs, too. */
const native = new Set(['checkbox', 'date', 'time']);

const root = createRoot(document.getElementById('root') as HTMLElement);
root.render(<OwnForm definition={await readForm(service, query.get('form') ?? '')} />);
