import type { Interceptor } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { holds } from '../../domain/scopes.ts';
import { type Access, accessOf } from './access.ts';
import { type Caller, callerKey, clientAddressKey } from './context.ts';
import { failed } from './errors.ts';
import type { KeyReader } from './key-reader.ts';

/**
 * Finds out who calls, from the `authorization` header, and lets nobody pass who may not.
 *
 * Another scheme than `Bearer` counts as no key: on public routes it belongs to somebody else.
 */
export function identifyCallers({ keys, requireApiKey }: IdentifyOptions): Interceptor {
  return (next) => async (req) => {
    const access = accessFor(req);
    const text = bearerOf(req.header.get('authorization'));
    if (text !== undefined) {
      const caller = await keys.find(text, req.contextValues.get(clientAddressKey));
      if (caller === undefined)
        throw failed(Reason.INVALID_KEY, 'The API key is unknown, expired or revoked');
      checkScope(caller, access);
      req.contextValues.set(callerKey, caller);
    } else if (access.key === 'required') {
      if (access.openWithoutKeys !== true || requireApiKey) {
        throw failed(Reason.MISSING_KEY, 'This call needs an API key: send Authorization: Bearer <key>');
      }
      req.contextValues.set(callerKey, await keys.withoutKey());
    }
    return next(req);
  };
}

/** What holds for this request: the RPC's access, or that of its managed form. */
function accessFor(req: AnyRequest): Access {
  const access = accessOf(req.method);
  if (access.managed === undefined || req.stream) return access;
  return 'managed' in req.message && req.message.managed === true ? access.managed : access;
}

function checkScope(caller: Caller, { key, scope }: Access): void {
  if (key === 'none' || scope === undefined || holds(caller.scopes, scope)) return;
  throw failed(Reason.INSUFFICIENT_SCOPE, `The API key lacks the scope ${scope}`, { requiredScope: scope });
}

/** The key that an `authorization` header holds; undefined without one, empty if it holds none. */
export function bearerOf(header: string | null): string | undefined {
  const match = header === null ? null : bearer.exec(header);
  return match === null ? undefined : (match[1] ?? '');
}

const bearer = /^bearer(?: +(.*))?$/i;

type AnyRequest = Parameters<ReturnType<Interceptor>>[0];

export type IdentifyOptions = { keys: KeyReader; requireApiKey: boolean };
