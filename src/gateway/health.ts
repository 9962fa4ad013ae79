import { create, type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/grpc/health/v1/health_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../domain/errors/failure.ts';
import { policies } from '../domain/methods.ts';
import { sendJson } from '../http/reply.ts';
import { customRoute, done, type Route, tagged } from './route.ts';

/** Whether the process serves, and whether it can do its work. */
export const healthRoutes: Route[] = tagged('Health', [
  customRoute('get', '/health', undefined, {
    name: 'health',
    summary: 'Whether the process serves',
    reply: done.reply,
    async handle({ response }) {
      sendJson(response, 200, { ok: true });
    },
  }),
  customRoute('get', '/ready', Health.method.check, {
    name: 'ready',
    summary:
      'Whether the service can do its work; 503 while the database is out of reach or stores nothing, the disk is almost full, or before a stop',
    reply: z.object({
      ok: z.literal(true),
      database: z.literal('up'),
      disk: z.enum(['enough', 'low']).describe('`low`: files are refused.'),
      log: z.enum(['written', 'dropping']).describe('`dropping`: lines of the log are lost.'),
    }),
    async handle(context) {
      const serves = async (service: string) =>
        (await context.call(Health.method.check, { service })).status === ServingStatus.SERVING;
      const isServing = await serves('');
      const disk = (await serves('disk')) ? 'enough' : 'low';
      if (isServing) {
        const log = (await serves('log')) ? 'written' : 'dropping';
        return sendJson(context.response, 200, { ok: true, database: 'up', disk, log });
      }
      const why =
        disk === 'low'
          ? 'The disk is almost full: nothing new is stored'
          : 'The database is out of reach or stores nothing, or the service stops';
      throw failed(Reason.UNAVAILABLE, why);
    },
  }),
]);

/**
 * The contract as a `google.protobuf.FileDescriptorSet`, from which clients can be generated: the public protos
 * and all that they import, each file after those it imports, without comments.
 */
export function describeProtos(): Uint8Array {
  const found = new Set<DescFile>();
  for (const { parent } of policies.keys()) {
    if (parent.typeName.startsWith('headlessforms.v1.')) addWithImports(parent.file, found);
  }
  return toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [...found].map(({ proto }) => proto) }),
  );
}

function addWithImports(file: DescFile, found: Set<DescFile>): void {
  if (found.has(file)) return;
  for (const imported of file.dependencies) addWithImports(imported, found);
  found.add(file);
}
