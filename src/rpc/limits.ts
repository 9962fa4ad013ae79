import type { UniversalHandlerOptions } from '@connectrpc/connect/protocol';

/** What every call from the network may ask for. Times in milliseconds. */
export const callLimits = {
  /** The longest time-out that a caller may set: an export of millions takes minutes. */
  maxTimeoutMs: 600_000,
  /** A caller's unknown fields would become objects that nothing reads. */
  binaryOptions: { readUnknownFields: false },
};

/** What protocols put around a message: the head of an envelope. */
export const WIRE_OVERHEAD = 5;

/** How a method is served on the network: its limits, its gate and its interceptors. */
export type ServingOptions = Pick<
  UniversalHandlerOptions,
  'acceptCompression' | 'binaryOptions' | 'interceptors' | 'maxTimeoutMs' | 'readMaxBytes'
> &
  Required<Pick<UniversalHandlerOptions, 'requestGate'>>;
