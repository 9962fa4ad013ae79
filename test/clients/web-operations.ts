import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web';
import type { Given } from './given.ts';
import { everyOperation } from './operations.ts';

/** The script of a page: everything by a protocol that browsers have. */
export function everyWebOperation(protocol: string, baseUrl: string, key: string, given: Given) {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${key}`);
    return next(request);
  };
  const options = { baseUrl, interceptors: [authorize], useHttpGet: protocol === 'connect-get' };
  const transport =
    protocol === 'grpc-web' ? createGrpcWebTransport(options) : createConnectTransport(options);
  return everyOperation(transport, given);
}
