import { type ChangeEvent, useState, useSyncExternalStore } from 'react';
import { createForm } from './form/create-form.ts';
import type { Form, FormOptions, FormState, PublicForm } from './form/types.ts';

/**
 * A form in a component: its state, what it does, and `input(id)` with what an `input`, `select` or `textarea` takes.
 * The definition and the options of the first render count; give the component a `key` to change them.
 */
export function useForm(definition: PublicForm, options: FormOptions = {}): UsedForm {
  const [form] = useState(() => createForm(definition, options));
  const state = useSyncExternalStore(
    form.subscribe,
    () => form.state,
    () => form.state,
  );
  const input = (id: string): InputProps => {
    const field = state.fields.find((each) => each.id === id);
    const isTick = field?.type === 'checkbox';
    return {
      id,
      name: id,
      ...(isTick ? { checked: field.value === true } : { value: field?.text ?? '' }),
      'aria-invalid': field?.error !== undefined,
      'aria-describedby': field?.error === undefined ? undefined : `${id}-error`,
      onChange: ({ target }) => {
        if (isTick && 'checked' in target) form.set(id, target.checked);
        else form.setText(id, target.value);
      },
    };
  };
  const { set, setText, next, back, upload, check, submit, reset } = form;
  return { ...state, set, setText, next, back, upload, check, submit, reset, input };
}

export type UsedForm = FormState &
  Omit<Form, 'state' | 'subscribe' | 'ready'> & { input: (id: string) => InputProps };

/** The properties of an input. Those of several parts, lists and files need components of your own and `set`. */
export type InputProps = {
  id: string;
  name: string;
  value?: string;
  checked?: boolean;
  'aria-invalid': boolean;
  'aria-describedby': string | undefined;
  onChange: (event: ChangeEvent<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>) => void;
};
