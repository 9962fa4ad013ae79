import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { NotificationSchema, SessionSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { from, shape } from '../../src/http/shape.ts';

const remindAfter = [{ seconds: 60n }, { seconds: 120n }];

it('makes nested messages, lists and durations as the schema has them', () => {
  const notified = shape(NotificationSchema, '', { remind_after: z.array(z.number()), failed: z.boolean() });
  const session = shape(SessionSchema, '', {
    ok: z.literal(true),
    id: z.string(),
    respondent: z.object({ email: z.string() }).exactOptional(),
    notify: { ...notified, source: 'notification', schema: notified.schema.exactOptional() },
  });

  const reply = session.of(
    create(SessionSchema, {
      id: 'sess_1',
      respondent: { email: 'ada@example.com' },
      notification: { remindAfter, failed: true },
    }),
  );

  expect(reply).toEqual({
    ok: true,
    id: 'sess_1',
    respondent: { email: 'ada@example.com' },
    notify: { remind_after: [60, 120], failed: true },
  });
});

it('leaves out what is empty where the schema allows that, and else keeps it', () => {
  const notified = shape(NotificationSchema, '', {
    remind_after: z.array(z.number()),
    email: z.string().exactOptional(),
    error: from('error', z.string().nullable()),
    sent_at: z.string().nullable(),
    failed: z.boolean(),
  });

  const reply = notified.of(create(NotificationSchema));

  expect(JSON.parse(JSON.stringify(reply))).toEqual({
    remind_after: [],
    error: null,
    sent_at: null,
    failed: false,
  });
});

it('refuses a property that the message has no field for', () => {
  expect(() => shape(SessionSchema, '', { nobody: z.string() })).toThrow('has no field for nobody');
});
