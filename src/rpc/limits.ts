import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';

/** What calls from the network may ask for. Times in milliseconds, sizes in bytes. */
export const callLimits = {
  acceptCompression: [compressionGzip, compressionBrotli],
  /** The longest time-out that a caller may set: an export of millions takes minutes. */
  maxTimeoutMs: 600_000,
  /** A file of 10 MiB with its envelope, in base64 as Connect's JSON has it. */
  readMaxBytes: 14 * 1024 * 1024,
};
