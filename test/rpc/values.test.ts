import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { type DeliveryStatus, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { expectFailure } from '../support/failures.ts';
import { protocols, startService, type TestService } from '../support/server.ts';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  const fields = [
    { id: 'age', type: 'number' },
    { id: 'campaign', type: 'hidden' },
  ];
  formId = (await service.givenPublishedForm({ fields })).id;
});
afterAll(() => service[Symbol.asyncDispose]());

describe.each(protocols)('by %s', (protocol) => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    'numbers that JSON can’t hold are refused in all that is kept: %d',
    async (number) => {
      const sessions = service.client(SessionsService, protocol);
      const submissions = service.client(SubmissionsService, protocol);
      const { session } = await sessions.createSession({ subject: { case: 'formId', value: formId } });
      const sessionId = session?.id ?? '';
      const values = { age: number, campaign: number };
      const calls = [
        () => submissions.createSubmission({ formId, answers: values }),
        () => submissions.createSubmission({ formId, answers: values, idempotencyKey: 'once' }),
        () => sessions.createSession({ subject: { case: 'formId', value: formId }, prefill: values }),
        () => sessions.updateSession({ sessionId, prefill: values }),
        () => sessions.submitSession({ sessionId, answers: values }),
      ];

      for (const call of calls) {
        const { violations } = await expectFailure(call(), Reason.INVALID);
        expect(violations).toEqual([
          expect.stringMatching(/age: invalid_type$/),
          expect.stringMatching(/campaign: invalid_type$/),
        ]);
      }
      for (const call of [
        () =>
          sessions.createSession({
            subject: { case: 'formId', value: formId },
            metadata: { deep: [{ order: number }] },
          }),
        () => sessions.updateSession({ sessionId, metadata: { deep: [{ order: number }] } }),
      ]) {
        const { violations } = await expectFailure(call(), Reason.INVALID);
        expect(violations).toEqual(['metadata.deep.0.order: invalid_type']);
      }
    },
  );

  it('numbers that JSON can’t hold are refused in definitions, by name', async () => {
    const forms = service.client(FormsService, protocol);
    const nan = { kind: { case: 'numberValue' as const, value: Number.NaN } };
    const definition = {
      ...contact,
      fields: [
        { id: 'age', type: FormFieldType.NUMBER, step: Number.POSITIVE_INFINITY, min: nan, max: nan },
        { id: 'campaign', type: FormFieldType.HIDDEN, defaultValue: nan },
      ],
    };

    for (const call of [() => forms.createForm({ definition }), () => forms.validateForm({ definition })]) {
      const { violations } = await expectFailure(call(), Reason.INVALID);
      const properties = violations.map((text) => text.split('.').pop());
      expect(new Set(properties)).toEqual(
        new Set([
          'min: invalid_type',
          'max: invalid_type',
          'step: invalid_type',
          'default_value: invalid_type',
        ]),
      );
    }
  });

  it.each([
    ['in the year 0', -62_135_596_801n],
    ['in the year 10000', 253_402_300_800n],
    ['beyond all time', 1n << 60n],
  ])('a form can’t close %s', async (_, seconds) => {
    const settings = { closesAt: { seconds, nanos: 0 } };

    const call = service.client(FormsService, protocol).createForm({ definition: { ...contact, settings } });

    const { violations } = await expectFailure(call, Reason.INVALID);
    expect(violations).toEqual([expect.stringMatching(/closes_at: invalid_date$/)]);
  });

  it('a list by a status that is none is refused, as it is by REST', async () => {
    const status = 77 as DeliveryStatus;
    const { webhook } = await service.client(WebhooksService, protocol).createWebhook({
      url: 'https://example.com/hook',
      events: [1],
    });
    const webhooks = service.client(WebhooksService, protocol);
    const calls = [
      () => webhooks.listFormDeliveries({ formId, status }),
      () => webhooks.listDeliveries({ webhookId: webhook?.id ?? '', status }),
    ];

    for (const call of calls) {
      const { violations } = await expectFailure(call(), Reason.BAD_REQUEST);
      expect(violations).toEqual(['status: invalid_enum_value']);
    }
  });
});

describe('by REST', () => {
  it('a number that is too large for one is refused where it would be kept', async () => {
    const reply = await service.call('POST', `/v1/forms/${formId}/sessions`, '{"metadata":{"order":1e999}}', {
      headers: { 'content-type': 'application/json' },
    });

    expect(reply.status).toBe(422);
    expect(reply.json.error.details).toMatchObject([{ path: 'metadata.order', code: 'invalid_type' }]);
  });

  it.each(['0000-12-31T23:59:59Z', '0001-01-01T00:00:00+14:00', '9999-12-31T23:59:59-01:00'])(
    'a form can’t close at %s',
    async (closesAt) => {
      const reply = await service.post('/api/forms/create', {
        ...contact,
        ...restOf,
        settings: { closesAt },
      });

      expect(reply.status).toBe(422);
      expect(reply.json.error.details).toMatchObject([{ path: 'settings.closesAt', code: 'invalid_date' }]);
    },
  );
});

const contact = {
  name: 'Contact',
  slug: 'contact',
  fields: [{ id: 'age', type: FormFieldType.NUMBER }],
  delivery: { channel: { case: 'email' as const, value: {} } },
};

const restOf = { fields: [{ id: 'age', type: 'number' }], delivery: { type: 'email' } };
