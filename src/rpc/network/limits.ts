import type { DescMethod } from '@bufbuild/protobuf';
import type { UniversalHandlerOptions } from '@connectrpc/connect/protocol';

/**
 * The longest deadline that a call may have, in milliseconds; longer ones are shortened to it. Streams go on as
 * long as their caller likes, as far as a timer goes.
 */
export function maxTimeoutMs({ methodKind }: DescMethod): number {
  return methodKind === 'unary' ? 600_000 : 2_147_483_000;
}

/** How every call from the network is read. */
export const callLimits = {
  /** A caller's unknown fields would become objects that nothing reads. */
  binaryOptions: { readUnknownFields: false },
};

/** The bytes before each message of gRPC, and of Connect's streams: one of flags, four of length. */
export const ENVELOPE_HEAD = 5;

/** How a method is served on the network: its limits, its gate and its interceptors. */
export type ServingOptions = Pick<
  UniversalHandlerOptions,
  'acceptCompression' | 'binaryOptions' | 'interceptors' | 'maxTimeoutMs' | 'readMaxBytes'
> &
  Required<Pick<UniversalHandlerOptions, 'requestGate'>>;
