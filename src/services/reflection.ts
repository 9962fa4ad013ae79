import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import {
  create,
  createRegistry,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import {
  type ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../../gen/grpc/reflection/v1/reflection_pb.js';

/**
 * The reflection protocol of gRPC, of `services`: tools such as grpcurl learn from it what can be called, without
 * the proto files.
 */
export function reflectionService(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
  const files = filesOf(services.map(({ file }) => file));
  const registry = createRegistry(...files.values());
  const bytes = new Map<DescFile, Uint8Array>();

  /** The file, and after it what it imports but what has been sent. */
  function unsent(file: DescFile, sent: Set<DescFile>): Uint8Array[] {
    if (sent.has(file)) return [];
    sent.add(file);
    const imported = file.dependencies.flatMap((dependency) => unsent(dependency, sent));
    const encoded = bytes.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
    bytes.set(file, encoded);
    return [encoded, ...imported];
  }

  function answer({ messageRequest }: ServerReflectionRequest, sent: Set<DescFile>): ReflectionAnswer {
    const sendFile = (file: DescFile | undefined): ReflectionAnswer => {
      if (file === undefined) return notFound;
      // Asked for again, it is sent again; what it imports is not.
      sent.delete(file);
      return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: unsent(file, sent) } };
    };
    switch (messageRequest.case) {
      case 'fileByFilename':
        return sendFile(files.get(messageRequest.value));
      case 'fileContainingSymbol':
        return sendFile(fileOf(messageRequest.value, registry));
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = messageRequest.value;
        const extendee = registry.getMessage(containingType);
        return sendFile(extendee && registry.getExtensionFor(extendee, extensionNumber)?.file);
      }
      case 'allExtensionNumbersOfType': {
        const { value: baseTypeName } = messageRequest;
        if (registry.getMessage(baseTypeName) === undefined) return notFound;
        const extensionNumber = [...registry].flatMap((type) =>
          type.kind === 'extension' && type.extendee.typeName === baseTypeName ? [type.number] : [],
        );
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName, extensionNumber } };
      }
      case 'listServices':
        return {
          case: 'listServicesResponse',
          value: { service: services.map(({ typeName: name }) => ({ name })) },
        };
      case undefined:
        throw new ConnectError('Expected one of the requests', Code.InvalidArgument);
      default:
        return messageRequest satisfies never;
    }
  }

  return {
    async *serverReflectionInfo(requests) {
      const sent = new Set<DescFile>();
      for await (const request of requests) {
        const { host: validHost } = request;
        const messageResponse = answer(request, sent);
        yield create(ServerReflectionResponseSchema, {
          validHost,
          originalRequest: request,
          messageResponse,
        });
        // Anybody may ask thousands of times in one frame.
        await yieldToEventLoop();
      }
    },
  };
}

/** The files, and all that they import, by their names in imports. */
function filesOf(roots: readonly DescFile[], found = new Map<string, DescFile>()): Map<string, DescFile> {
  for (const file of roots) {
    if (found.has(file.proto.name)) continue;
    found.set(file.proto.name, file);
    filesOf(file.dependencies, found);
  }
  return found;
}

/** The file that declares a type, or the method, field or value of one. */
function fileOf(symbol: string, registry: Registry): DescFile | undefined {
  const type = registry.get(symbol);
  if (type !== undefined) return type.file;
  const dot = symbol.lastIndexOf('.');
  const [parent, name] = [registry.get(symbol.slice(0, dot)), symbol.slice(dot + 1)];
  const isPart =
    (parent?.kind === 'service' && parent.methods.some((method) => method.name === name)) ||
    (parent?.kind === 'message' && parent.members.some((member) => member.name === name));
  return isPart ? parent.file : undefined;
}

const notFound: ReflectionAnswer = {
  case: 'errorResponse',
  value: { errorCode: Code.NotFound, errorMessage: 'There is no such file, type or extension' },
};

type Response = MessageInitShape<typeof ServerReflectionResponseSchema>;
type ReflectionAnswer = NonNullable<Exclude<Response, ServerReflectionResponse>['messageResponse']>;
