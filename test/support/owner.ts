import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { signInToken } from '../../src/domain/links.ts';
import type { TestService } from './server.ts';

/**
 * Signs an address in as a mailed link does, and makes it the confirmed owner of these forms. Returns the credential
 * of its session.
 */
export async function givenOwnerSession(
  service: TestService,
  address: string,
  ...formIds: string[]
): Promise<string> {
  await service.database.execute(
    'update forms set owner_email = $1, owner_confirmed_at = now() where id = any($2)',
    [address, formIds],
  );
  const owners = service.client(OwnersService, 'connect', null);
  const { sessionToken } = await owners.signIn({ token: signInToken(secretKey, address, Date.now()) });
  return sessionToken;
}

/** The `SECRET_KEY` of services in tests. */
const secretKey = Buffer.from('ab'.repeat(32), 'hex');
