import {
  Code,
  ConnectError,
  createContextValues,
  createServiceImplSpec,
  type ServiceImpl,
} from '@connectrpc/connect';
import { pino } from 'pino';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { standardBounds } from '../../src/admission/bounds.ts';
import { withFailure } from '../../src/domain/errors/failure.ts';
import { createMethodCalls } from '../../src/rpc/method-calls.ts';
import { createRpcHandler, type RpcHandler } from '../../src/rpc/network/server.ts';
import type { Served } from '../../src/rpc/registry.ts';
import { startListeners } from './listeners.ts';

/**
 * Serves a Health service of the test's own on HTTP/1.1 and HTTP/2, without the interceptors of the
 * real services; `change` is served instead of what it names. With a `refusal` every call is refused so, as those that
 * may not wait.
 */
export async function startRpcServer(
  implementation: Partial<ServiceImpl<typeof Health>> | Check,
  { refusal, ...change }: Partial<Served> & { refusal?: ConnectError } = {},
) {
  const logged: string[] = [];
  const log = pino({}, { write: (line) => logged.push(line) });
  const given = typeof implementation === 'function' ? { check: implementation } : implementation;
  const spec = createServiceImplSpec<typeof Health>(Health, given);
  const handler = createRpcHandler({
    served: {
      methods: Object.values(spec.methods),
      calls: createMethodCalls([spec], []),
      interceptors: [],
      gate: async () => undefined,
      callLog: { fail: (_call, error) => withFailure(error instanceof ConnectError ? error : internal()) },
      ...change,
    },
    contextValues: createContextValues,
    fallback: (_request, response) => response.destroy(),
    allowedOrigins: [],
    log,
  });
  const refuse: RpcHandler = (request, response) => handler(request, response, refusal);
  const listeners = await startListeners({
    http: handler,
    grpc: handler,
    refuse,
    ...(refusal !== undefined && { bounds: nobody }),
    log,
  });
  return {
    ...listeners,
    /** The lines of the server's log. */
    logged,
  };
}

/** Every request without a key is refused. */
const nobody = {
  ...standardBounds,
  client: { ...standardBounds.client, underWay: 0, waiting: { requests: 0, headerBytes: 0 } },
};

function internal(): ConnectError {
  return new ConnectError('internal error', Code.Internal);
}

type Check = NonNullable<ServiceImpl<typeof Health>['check']>;
