import type { Actors } from './types.ts';

/** One form with a webhook and mails, and one submission to it, long after everything else is quiet. */
export const act: Actors = async (world) => {
  const receiver = world.receivers.open('only');
  const made = await world.call('maker', 'create form', {
    method: 'POST',
    path: '/api/forms/create',
    body: {
      name: 'Contact',
      slug: 'contact',
      fields: [{ id: 'email', type: 'email', required: true }],
      delivery: { type: 'email' },
    },
  });
  const form = made?.json.form;
  await world.call('maker', 'publish', {
    method: 'POST',
    path: form.activate_url,
    body: { email: 'owner@example.com' },
  });
  await world.call('maker', 'add webhook', {
    method: 'POST',
    path: '/v1/webhooks',
    body: { form_id: form.id, url: receiver.url, events: ['submission.created'] },
  });
  await world.sleep(600_000);
  await world.call('visitor', 'submit', {
    method: 'POST',
    path: `/api/forms/${form.id}/submissions`,
    key: null,
    body: { answers: { email: 'visitor@example.com' } },
  });
  await world.sleep(600_000);
};
