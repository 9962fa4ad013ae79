import type { HandlerContext } from '@connectrpc/connect';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { INSTALLATION, type NewEntry, type Uncalled } from '../../domain/audit.ts';
import { requestIdFrom } from '../../domain/ids.ts';
import { policyOf } from '../../domain/methods.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import { pseudonymOf, type SecretKey } from '../../domain/secrets/secret-key.ts';
import { factsOf } from '../../rpc/context.ts';
import type { AuditWriter } from '../../store/audit/audit-writer.ts';
import type { Transaction } from '../../store/database/database.ts';

/** Makes what services record calls with. Who called, from where, and what for is read from the call. */
export function createAudit({ writer, secretKey, now }: AuditOptions): Audit {
  function entryOf(call: AuditedCall, about: About, stored: 'with the change' | 'soon'): NewEntry {
    const audited = policyOf(call.method).audit;
    const actions = audited.stored === stored ? audited.actions : [];
    const action = about.action ?? actions[0];
    if (action === undefined || !actions.includes(action)) {
      throw new TypeError(`${call.method.name} is not recorded as ${action ?? 'anything'}`);
    }
    const { caller, clientAddress: address } = factsOf(call);
    return {
      projectId: about.projectId ?? caller?.projectId ?? INSTALLATION,
      createdAt: new Date(now()),
      actor: about.owner === undefined ? actorOf(call) : ownerName(secretKey, about.owner),
      action,
      resource: about.resource ?? about.formId ?? null,
      formId: about.formId ?? null,
      detail: about.detail ?? null,
      count: about.count ?? 1,
      clientAddress: address === 'unknown' ? null : networkOf(address),
      requestId: requestIdFrom(call.requestHeader.get('x-request-id')),
    };
  }

  function actorOf(call: AuditedCall): string {
    const { owner, caller } = factsOf(call);
    if (owner !== undefined) return ownerName(secretKey, owner.address);
    if (caller?.keyId === undefined) return 'anonymous';
    return caller.byToken ? caller.keyId : `key:${caller.keyId}`;
  }

  return {
    change: (tx, call, about) => writer.store(tx, entryOf(call, about, 'with the change')),
    note: (call, about) => writer.note(entryOf(call, about, 'soon')),
  };
}

/** How entries name a session, whose id lets people fill it. */
export function sessionName(sessionId: string): string {
  return `sha256:${hashSecret(sessionId)}`;
}

/** How entries name an owner: the same for the same address as long as SECRET_KEY is the same. */
function ownerName(secretKey: SecretKey, address: string): string {
  return `owner:${pseudonymOf(secretKey, 'audit-owner', address)}`;
}

/**
 * What a call was about. Without `projectId` it goes into the log of the key's project, or without a key of the
 * installation; without `action` it is the first of its RPC. `owner` is the address of an owner whose session it begins.
 */
export type About = Partial<Omit<Uncalled, 'at' | 'actor'>> & { owner?: string };

export type Audit = {
  /** Records a change in its transaction. */
  change(tx: Transaction, call: AuditedCall, about: About): Promise<void>;
  /** Records what is to be stored soon. */
  note(call: AuditedCall, about: About): void;
};

type AuditedCall = Pick<HandlerContext, 'method' | 'values' | 'requestHeader'>;

type AuditOptions = { writer: AuditWriter; secretKey: SecretKey; now: () => number };
