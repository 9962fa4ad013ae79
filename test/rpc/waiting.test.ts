import { Code, createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect, it } from 'vitest';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../src/domain/errors/failure.ts';
import { failureOf } from '../support/failures.ts';
import { startRpcServer } from '../support/rpc-server.ts';

it('refuses calls that may not wait by every protocol, with one answer and streams', async () => {
  const refusal = failed(Reason.RATE_LIMITED, 'Too many wait');
  await using server = await startRpcServer(() => expect.unreachable(), { refusal });
  const transports = [
    createConnectTransport({ baseUrl: server.url, httpVersion: '1.1' }),
    createConnectTransport({ baseUrl: server.grpcUrl, httpVersion: '2' }),
    createGrpcWebTransport({ baseUrl: server.url, httpVersion: '1.1' }),
    createGrpcTransport({ baseUrl: server.grpcUrl }),
  ];

  const failures = await Promise.all(
    transports.flatMap((transport) => {
      const health = createClient(Health, transport);
      return [health.check({}), health.watch({})[Symbol.asyncIterator]().next()].map(failureOf);
    }),
  );

  expect(failures).toHaveLength(8);
  for (const failure of failures) {
    expect(failure).toMatchObject({ code: Code.ResourceExhausted, reason: 'RATE_LIMITED', retryAfter: 1 });
  }
});
