import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { WebhookEvent } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { engines } from '../../support/database.ts';
import { definitionMessage } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { servicesOn, startServices, type TestServices } from '../../support/services.ts';

const url = 'https://example.com/hook';
const events = [WebhookEvent.SUBMISSION_CREATED];
const delivery = definitionMessage({ delivery: { channel: { case: 'webhook', value: { url } } } }).delivery;

describe.each(engines)('Webhooks of a project on %s', (engine) => {
  it('are as many as the setting says, also when several processes make them at once', async () => {
    await using services = await startServices(engine, { settings: { maxWebhooks: 3 } });
    const other = await servicesOn(services.database, { settings: { maxWebhooks: 3 } });

    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => {
        const { webhooks } = index % 2 === 0 ? services : other;
        return webhooks.createWebhook({ url, events }, services.owner);
      }),
    );

    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    const { violations, message } = await expectFailure(create(services), Reason.INVALID);
    expect([violations, message]).toEqual([['url: too_big'], 'url: A project has at most 3 webhooks']);
    const elsewhere = await services.givenCaller(['*'], 'other');
    await services.webhooks.createWebhook({ url, events }, elsewhere);
    const [first] = (await services.webhooks.listWebhooks({}, services.owner)).webhooks;
    await services.webhooks.deleteWebhook({ webhookId: first?.id ?? '' }, services.owner);
    await create(services);
    await other.close();
  });

  it('listen to one form ten at most, those of all forms included', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const another = await services.givenFormOf();
    for (let count = 0; count < 6; count += 1) await create(services, formId);
    for (let count = 0; count < 4; count += 1) await create(services);

    const bound = await expectFailure(create(services, formId), Reason.INVALID);
    const ofAll = await expectFailure(create(services), Reason.INVALID);

    expect(bound.violations).toEqual(['url: too_big']);
    expect(ofAll.message).toContain('At most 10 webhooks listen to one form, those of all forms included');
    await create(services, another);
  });

  it('leave no room to those of forms made without a key, and the other way round', async () => {
    await using services = await startServices(engine, { settings: { maxWebhooks: 1 } });
    const strangers = await services.givenDraft(undefined, { delivery });
    const owners = await services.givenDraft(services.key, { delivery });
    const activate = ({ id, token }: { id: string; token: string }) =>
      services.forms.activateForm({ formId: id, activationToken: token, email: 'owner@example.com' });
    await activate(strangers);
    await activate(owners);

    const further = await services.givenDraft(undefined, { delivery });
    const refused = await expectFailure(activate(further), Reason.INVALID);
    const mailed = await services.givenForm(services.key);
    const published = services.forms.publishFormVersion(
      { formId: mailed.id, definition: definitionMessage({ delivery }) },
      services.owner,
    );

    expect(refused.violations).toEqual(['definition.delivery.webhook.url: too_big']);
    expect(refused.message).toContain('A project has at most 1 webhooks of forms made without a key');
    expect((await expectFailure(published, Reason.INVALID)).violations).toEqual([
      'definition.delivery.webhook.url: too_big',
    ]);
    await services.database.execute(`update webhooks set active = false where keyless`);
    await activate(further);
  });
});

function create(services: TestServices, formId = '') {
  return services.webhooks.createWebhook({ url, events, formId }, services.owner);
}
