import { type EventType, eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import type { NewEvent } from '../../store/events.ts';
import type { Form } from '../../store/forms/forms.ts';

/** Events about a form that no webhook receives: the delivery loop makes mails of them. */
export const formEvents = {
  activated: (form: Named, at: Date, address: string) =>
    newEvent(form, at, 'form.activated', eventTypes['form.activated'].body({ address })),

  ownerChangeRequested: (form: Named, at: Date, address: string) =>
    newEvent(form, at, 'owner.change_requested', eventTypes['owner.change_requested'].body({ address })),

  recipientsAdded: (form: Named, at: Date, addresses: string[]) =>
    newEvent(form, at, 'recipients.added', eventTypes['recipients.added'].body({ addresses })),
};

function newEvent(form: Named, createdAt: Date, type: EventType, body: string): NewEvent {
  return {
    id: newId('evt', createdAt.getTime()),
    projectId: form.projectId,
    formId: form.id,
    type,
    body,
    createdAt,
  };
}

type Named = Pick<Form, 'id' | 'projectId'>;
