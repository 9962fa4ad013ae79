import {
  type ConnectRouter,
  createContextValues,
  createServiceImplSpec,
  type ServiceImpl,
} from '@connectrpc/connect';
import { compressionGzip } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { limitsOf } from '../../src/domain/limits/message-limits.ts';
import { createMethodCalls } from '../../src/rpc/method-calls.ts';
import { callLimits, maxTimeoutMs } from '../../src/rpc/network/limits.ts';
import { createRpcHandler } from '../../src/rpc/network/server.ts';
import { answerUnary } from '../../src/rpc/network/unary.ts';
import { startListeners } from './listeners.ts';

/**
 * Serves a Health service of the test's own on HTTP/1.1 and HTTP/2, without the interceptors of the
 * real services; `change` may do more to the router. With `unaryByConnect` all is left to Connect's handlers.
 */
export async function startRpcServer(
  check: Check,
  change: (router: ConnectRouter) => void = () => undefined,
  { unaryByConnect = false } = {},
) {
  const logged: string[] = [];
  const log = pino({}, { write: (line) => logged.push(line) });
  const spec = createServiceImplSpec<typeof Health>(Health, { check });
  const handler = createRpcHandler({
    routes(router) {
      const options = {
        ...callLimits,
        maxTimeoutMs: maxTimeoutMs(Health.method.check),
        ...limitsOf(Health.method.check),
        ...ungated,
      };
      router.service(Health, { check }, options);
      if (!unaryByConnect) answerUnary(router, createMethodCalls([spec], []), () => options);
      change(router);
    },
    contextValues: createContextValues,
    fallback: (_request, response) => response.destroy(),
    allowedOrigins: [],
    log,
  });
  const listeners = await startListeners({ http: handler, grpc: handler, log });
  return {
    ...listeners,
    /** The lines of the server's log. */
    logged,
  };
}

const ungated = { acceptCompression: [compressionGzip], interceptors: [], requestGate: () => undefined };

type Check = NonNullable<ServiceImpl<typeof Health>['check']>;
