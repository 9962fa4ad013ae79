import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web';
import { retryCalls } from '../../packages/client/src/client.ts';
import type { Given } from './given.ts';
import { everyOperation } from './operations.ts';

/** The script of a page: everything by a protocol that browsers have. `lossyUrl` loses replies. */
export function everyWebOperation(
  protocol: string,
  baseUrl: string,
  lossyUrl: string,
  key: string,
  given: Given,
) {
  const authorize: Interceptor = (next) => (request) => {
    // A call may bring another credential.
    if (!request.header.has('authorization')) request.header.set('authorization', `Bearer ${key}`);
    return next(request);
  };
  const transportTo = (url: string, ...interceptors: Interceptor[]) => {
    const options = { baseUrl: url, interceptors, useHttpGet: protocol === 'connect-get' };
    return protocol === 'grpc-web' ? createGrpcWebTransport(options) : createConnectTransport(options);
  };
  return everyOperation(
    transportTo(baseUrl, authorize),
    transportTo(lossyUrl, retryCalls(), authorize),
    given,
  );
}
