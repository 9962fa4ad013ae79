import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { policies } from '../../../src/domain/methods.ts';
import { pseudonymOf } from '../../../src/domain/secrets/secret-key.ts';
import { ADDRESS, auditedCalls as calls, givenThings } from '../../support/audited-calls.ts';
import { engines, shareOf } from '../../support/database.ts';
import { startServices, type TestServices } from '../../support/services.ts';

it('names every RPC of which the log has something, and gives a reason for all others', () => {
  const audited = [...policies].filter(([, { audit }]) => audit.stored !== 'never');

  expect(Object.keys(calls).toSorted()).toEqual(
    audited.map(([{ parent, localName }]) => `${parent.name}.${localName}`).toSorted(),
  );
});

describe.each(engines)('the audit log on %s', (engine) => {
  let rpc: TestServices;
  let keyId: string;
  /** For calls that change nothing. */
  let things: Awaited<ReturnType<typeof givenThings>>;

  beforeAll(async () => {
    rpc = await startServices(engine);
    const { keys } = await rpc.keys.listKeys({}, rpc.owner);
    keyId = keys.find(({ last4 }) => last4 === rpc.key.slice(-4))?.id ?? '';
    things = await givenThings(rpc);
  });
  afterAll(() => rpc[Symbol.asyncDispose]());

  it.each(shareOf(Object.entries(calls), engine))(
    'has who called %s, about what and from where',
    async (name, call) => {
      const given = isRead(name) ? things : await givenThings(rpc);
      const requestId = crypto.randomUUID();
      const headers = { 'x-request-id': requestId, 'x-forwarded-for': '2001:db8:1:2:3::4' };
      const owner = createClient(OwnersService, rpc.as(given.ownerToken, headers));

      const expected = [await call({ ...given, rpc, headers, owner, to: rpc.as(rpc.key, headers) })].flat();

      await rpc.auditWriter.flush();
      const rows = await rpc.database.select(
        `select actor, action, resource, form_id, detail, count, client_address, request_id from audit_entries
       where request_id = $1 order by id`,
        [requestId],
      );
      const actors = {
        key: `key:${keyId}`,
        owner: `owner:${pseudonymOf(rpc.secretKey, 'audit-owner', ADDRESS)}`,
        anonymous: 'anonymous',
      };
      expect(rows).toEqual(
        expected.map(({ by, ...entry }) => ({
          ...entry,
          actor: actors[by],
          client_address: '2001:db8:1:2::/64',
          request_id: requestId,
        })),
      );
      expect(JSON.stringify(rows)).not.toMatch(/example\.com|sess_/);
    },
  );
});

/** Of what a key reads: other calls end the session of the owner. */
function isRead(name: string): boolean {
  return !name.startsWith('OwnersService') && /\.(get|list|watch|export)/.test(name);
}
