import { newId } from '../../domain/ids.ts';
import type { NewEvent } from '../../store/events.ts';
import type { Form } from '../../store/forms.ts';

/**
 * Events about a form that no webhook receives: the delivery loop makes mails of them. Their body is
 * the JSON of whom to write to.
 */
export const formEvents = {
  /** The form was published by this address, which is now asked to confirm that it owns it. */
  activated: (form: Form, at: Date, address: string) => event(form, at, 'form.activated', { address }),

  /** This address is asked whether it takes the form over. */
  ownerChangeRequested: (form: Form, at: Date, address: string) =>
    event(form, at, 'owner.change_requested', { address }),

  /** These addresses are asked whether they want the form's submissions. */
  recipientsAdded: (form: Form, at: Date, addresses: string[]) =>
    event(form, at, 'recipients.added', { addresses }),
};

function event(form: Form, createdAt: Date, type: string, payload: object): NewEvent {
  return {
    id: newId('evt', createdAt.getTime()),
    projectId: form.projectId,
    formId: form.id,
    type,
    body: JSON.stringify(payload),
    createdAt,
  };
}
