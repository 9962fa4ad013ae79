import { z } from 'zod';
import { HealthCheckResponse_ServingStatus as ServingStatus } from '../../gen/grpc/health/v1/health_pb.js';
import { Refusal } from './errors.ts';
import { callOptions, sendJson } from './reply.ts';
import type { Route } from './route.ts';
import { okReply } from './schemas/common.ts';

const tag = 'Health';

/** Whether the process serves, and whether it can do its work. */
export const healthRoutes: Route[] = [
  {
    method: 'get',
    path: '/health',
    operation: {
      name: 'health',
      tag,
      summary: 'Whether the process serves',
      access: 'public',
      reply: okReply,
    },
    async handle({ response }) {
      sendJson(response, 200, { ok: true });
    },
  },
  {
    method: 'get',
    path: '/ready',
    operation: {
      name: 'ready',
      tag,
      summary: 'Whether the service can do its work; 503 while the database is out of reach',
      access: 'public',
      reply: z.object({ ok: z.literal(true), database: z.literal('up') }),
    },
    async handle({ clients, request, response }) {
      const { status } = await clients.health.check({}, callOptions(request, response));
      if (status === ServingStatus.SERVING) return sendJson(response, 200, { ok: true, database: 'up' });
      throw new Refusal('unavailable', 'The database is out of reach', { headers: { 'retry-after': '1' } });
    },
  },
];
