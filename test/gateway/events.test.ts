import { expect, it } from 'vitest';
import { emittedEvents } from '../../src/domain/events/index.ts';
import { checkEvent } from '../support/openapi.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService } from '../support/server.ts';

it('sends what the API description promises of each event', async () => {
  await using service = await startService();
  await using receiver = await startReceiver();
  const form = await service.givenPublishedForm({ settings: { allowPartial: true, allowCorrection: true } });
  const events = [
    'submission.created',
    'session.expired',
    'session.cancelled',
    'session.declined',
    'submission.deleted',
    'submission.replaced',
    'session.notified',
  ];
  const { json } = await service.post('/v1/webhooks', { url: receiver.url, events, form_id: form.id });
  const open = async (body: object) =>
    (await service.post(`/v1/forms/${form.id}/sessions`, body)).json.session.id;

  await open({ notify: { webhook_id: json.webhook.id, message: 'Please' } });
  const expiring = await open({ expires_in: 1, metadata: { n: 1 } });
  await service.patch(`/v1/sessions/${expiring}`, { answers: { message: 'Hello' } });
  await service.post(`/v1/sessions/${await open({})}/cancel`);
  const declining = await open({ allow_decline: true, callback: { url: receiver.url } });
  await service.post(`/v1/sessions/${declining}/decline`, { reason: 'Not now' });
  await service.post(`/v1/webhooks/${json.webhook.id}/test`);
  const deleted = await service.post(`/api/forms/${form.id}/submissions`, {
    answers: { email: 'ada@example.com' },
  });
  const post = (page: string, cookie = '') =>
    service.call('POST', page, 'email=ann%40example.com&_step=1&_action=submit', {
      key: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: service.url, cookie },
    });
  const { text, headers } = await post(`/f/${await open({})}`);
  const [, correctable = ''] = /href="[^"]*(f\/sub_\w+)"/.exec(text) ?? [];
  await post(`/${correctable}`, headers.getSetCookie()[0]?.split(';')[0]);

  const sent = [...emittedEvents, 'session.ended', 'session.notified'];
  // The correction is completed, too. An event of what is deleted would otherwise be dropped with it.
  await receiver.expectRequests(sent.length);
  await service.call('DELETE', `/v1/submissions/${deleted.json.submission_id}`);

  const received = await receiver.expectRequests(sent.length + 1);
  for (const { body } of received) checkEvent(body);
  expect(new Set(received.map(({ body }) => JSON.parse(body).event))).toEqual(new Set(sent));
});
