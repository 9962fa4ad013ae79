import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { create, createFileRegistry, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { Code, createHandlerContext } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js';
import {
  ServerReflection,
  ServerReflectionRequestSchema,
} from '../../gen/grpc/reflection/v1/reflection_pb.js';
import { reflectionService } from '../../src/services/reflection.ts';
import { failureOf } from '../support/failures.ts';
import { protocols, startService, type TestService } from '../support/server.ts';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

describe('reflection', () => {
  it('tells tools all they need to call', async () => {
    const curl = ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', '--reflect-protocol', 'grpc-v1'];
    const key = `authorization: Bearer ${service.key}`;

    const { stdout } = await promisify(execFile)(
      'buf',
      curl.concat('-H', key, '-d', '{}', `${service.grpcUrl}/headlessforms.v1.FormsService/ListForms`),
    );

    expect(JSON.parse(stdout)).toEqual({});
  });

  it('lets others have their turn between the answers of a stream, whose requests may come all at once', async () => {
    const request = create(ServerReflectionRequestSchema, {
      messageRequest: { case: 'listServices', value: '' },
    });
    async function* requests() {
      for (let count = 0; count < 50; count += 1) yield request;
    }
    const context = createHandlerContext({
      service: ServerReflection,
      method: ServerReflection.method.serverReflectionInfo,
      protocolName: 'grpc',
      requestMethod: 'POST',
      url: service.grpcUrl,
    });
    let turns = 0;
    let answers = 0;
    const count = () => {
      turns += 1;
      if (answers < 50) setImmediate(count);
    };
    setImmediate(count);

    for await (const _ of reflectionService([Health]).serverReflectionInfo(requests(), context)) answers += 1;

    expect(turns).toBeGreaterThanOrEqual(49);
  });

  it('lists every service, with files that describe it whole', async () => {
    const [listed] = await ask({ case: 'listServices', value: '*' });
    const names = listed?.case === 'listServicesResponse' ? listed.value.service.map(({ name }) => name) : [];
    const answers = await ask(...names.map((value) => ({ case: 'fileContainingSymbol' as const, value })));
    const sent = answers.map((answer) =>
      answer?.case === 'fileDescriptorResponse'
        ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
        : [],
    );
    const byName = new Map(sent.flat().map((proto) => [proto.name, proto]));

    expect(names).toContain('headlessforms.v1.SubmissionsService');
    expect(names).toContain('grpc.health.v1.Health');
    expect(names.filter((name) => name.startsWith('headlessforms.internal.'))).toEqual([]);
    const file = [...byName.values()].reduce(
      (ordered, proto) => withImports(proto, byName, ordered),
      new Set<FileDescriptorProto>(),
    );
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...file] }));
    for (const name of names) expect(registry.getService(name)?.methods.length).toBeGreaterThan(0);
  });

  it('finds files by name, method, field and extension, and says what it does not find', async () => {
    const answers = await ask(
      { case: 'fileByFilename', value: 'headlessforms/v1/forms.proto' },
      { case: 'fileContainingSymbol', value: 'headlessforms.v1.FormsService.GetForm' },
      { case: 'fileContainingSymbol', value: 'headlessforms.v1.Form.slug' },
      { case: 'allExtensionNumbersOfType', value: 'headlessforms.v1.Form' },
      { case: 'fileByFilename', value: 'headlessforms/v1/forms' },
      { case: 'fileContainingSymbol', value: 'headlessforms.v1.FormsService.Nothing' },
      { case: 'fileContainingSymbol', value: '' },
      {
        case: 'fileContainingExtension',
        value: { containingType: 'headlessforms.v1.Form', extensionNumber: 1 },
      },
      { case: 'allExtensionNumbersOfType', value: 'nothing' },
    );

    const kinds = answers.map((answer) =>
      answer?.case === 'errorResponse' ? answer.value.errorCode : answer?.case,
    );
    const file = 'fileDescriptorResponse';
    expect(kinds).toEqual([
      file,
      file,
      file,
      'allExtensionNumbersResponse',
      ...Array<Code>(5).fill(Code.NotFound),
    ]);
  });

  it('refuses a request that asks for nothing', async () => {
    expect(await failureOf(ask({ case: undefined }))).toMatchObject({ code: Code.InvalidArgument });
  });

  async function ask(...questions: Question[]) {
    const client = service.client(ServerReflection, 'grpc', null);
    async function* requests() {
      for (const messageRequest of questions) yield { messageRequest };
    }
    const answers = [];
    for await (const { messageResponse } of client.serverReflectionInfo(requests())) {
      answers.push(messageResponse);
    }
    return answers;
  }
});

describe.each(protocols)('health by %s', (protocol) => {
  it('is known of every service, and of no other', async () => {
    const health = service.client(Health, protocol, null);

    const known = ['', 'disk', 'headlessforms.v1.FormsService', 'grpc.health.v1.Health'];
    const answers = await Promise.all(known.map((name) => health.check({ service: name })));
    const failure = await failureOf(health.check({ service: 'headlessforms.v1.Nothing' }));

    expect(answers.map(({ status }) => status)).toEqual(known.map(() => Status.SERVING));
    expect([failure.code, failure.reason]).toEqual([Code.NotFound, 'NOT_FOUND']);
  });

  it('is said at once to who watches it', async () => {
    const health = service.client(Health, protocol, null);
    const first = async (name: string) => {
      const stop = new AbortController();
      const answers = health.watch({ service: name }, { signal: stop.signal })[Symbol.asyncIterator]();
      const { value } = await answers.next();
      stop.abort();
      return value?.status;
    };

    expect([await first(''), await first('headlessforms.v1.FormsService'), await first('nothing')]).toEqual([
      Status.SERVING,
      Status.SERVING,
      Status.SERVICE_UNKNOWN,
    ]);
  });
});

describe('health', () => {
  it('is watched by a hundred of one address', async () => {
    // Of its own: the watches of other tests may not have ended yet.
    await using service = await startService();
    const health = service.client(Health, 'grpc', null);
    const stop = new AbortController();
    const watches = Array.from({ length: 100 }, () =>
      health.watch({}, { signal: stop.signal })[Symbol.asyncIterator](),
    );
    await Promise.all(watches.map((watch) => watch.next()));
    const other = service.client(Health, 'connect', null).watch({})[Symbol.asyncIterator]();

    const failure = await failureOf(other.next());
    stop.abort();

    expect([failure.code, failure.reason]).toEqual([Code.ResourceExhausted, 'RATE_LIMITED']);
  });

  it('is NOT_SERVING for who watches when the service stops', async () => {
    await using stopping = await startService();
    const health = stopping.client(Health, 'grpc', null);
    const answers: Status[] = [];
    const ended = (async () => {
      for await (const { status } of health.watch({})) {
        answers.push(status);
        if (status === Status.SERVING) void stopping[Symbol.asyncDispose]();
      }
    })();

    await ended;

    expect(answers).toEqual([Status.SERVING, Status.NOT_SERVING]);
  });
});

/** Adds a file after those that it imports, as a set of descriptors has them. */
function withImports(
  proto: FileDescriptorProto,
  byName: Map<string, FileDescriptorProto>,
  ordered: Set<FileDescriptorProto>,
): Set<FileDescriptorProto> {
  for (const name of proto.dependency) {
    const imported = byName.get(name);
    if (imported !== undefined) withImports(imported, byName, ordered);
  }
  return ordered.add(proto);
}

type Question = MessageInitShape<typeof ServerReflectionRequestSchema>['messageRequest'] & {};
