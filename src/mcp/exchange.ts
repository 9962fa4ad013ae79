import type { DescMethod } from '@bufbuild/protobuf';
import type { Call } from '../http/call.ts';

/** What a tool gets for one request. */
export type Exchange = {
  /** Calls an RPC as the caller of the request. All calls of one request count as one where rates are limited. */
  call: Call;
  /** Whether the caller may call an RPC, by the authorization table. */
  mayCall: (rpc: DescMethod) => boolean;
  /** The caller's key; empty for calls without one, where none is required. */
  keyId: string;
  sealer: Sealer;
  /** The address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether webhooks may go to private addresses, as in development. */
  allowPrivateUrls: boolean;
  /** Logs a fault of this process, and returns the id of the request, which the log has too. */
  logFault: (error: unknown) => string;
};

/** Makes text that only this service can read and make. `open` throws for any other. */
export type Sealer = { seal: (text: string) => string; open: (sealed: string) => string };
