export { createForm } from './form/create-form.ts';
export { readForm, ServiceError } from './form/service.ts';
export type {
  Answer,
  Choice,
  FieldState,
  Form,
  FormOptions,
  FormState,
  PublicField,
  PublicForm,
  Verdict,
  Violation,
} from './form/types.ts';
