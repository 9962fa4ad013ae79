import type { DescMethod } from '@bufbuild/protobuf';
import { FormsService } from '../../../gen/forms/v1/forms_pb.js';
import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';

/**
 * How much a request message of an RPC may hold, whatever the protocol; a JSON body by REST is one, too. `keyless`
 * callers have no key.
 */
export function limitsOf(method: DescMethod, { keyless = false } = {}): MessageLimits {
  return (keyless && keylessLimits.get(method)) || (limits.get(method) ?? standard);
}

/** The interface's size of a JSON body, section 8 of its limits. */
export const MAX_MESSAGE_BYTES = 256 * 1024;

/** The same for a form that is made without a key, and for answers to one. */
export const MAX_KEYLESS_BYTES = 64 * 1024;

/** A file of 10 MiB with its envelope. */
const MAX_UPLOAD_BYTES = 11 * 1024 * 1024;

/** A file in JSON is in base64, which takes ten times as long to read: 25 ms for this. */
const MAX_UPLOAD_JSON_BYTES = 2 * 1024 * 1024;

/** JSON values in answers, prefill and metadata: far above a form of 100 fields. */
const MAX_NODES = 10_000;

/** A definition of 256 KiB with as many short options as fit. */
const MAX_DEFINITION_NODES = 50_000;

const standard = { readMaxBytes: MAX_MESSAGE_BYTES, jsonMaxBytes: MAX_MESSAGE_BYTES, maxNodes: MAX_NODES };
const definition = { ...standard, maxNodes: MAX_DEFINITION_NODES };
const limits = new Map<DescMethod, MessageLimits>([
  [
    UploadsService.method.createUpload,
    { readMaxBytes: MAX_UPLOAD_BYTES, jsonMaxBytes: MAX_UPLOAD_JSON_BYTES, maxNodes: MAX_NODES },
  ],
  [FormsService.method.createForm, definition],
  [FormsService.method.validateForm, definition],
  [FormsService.method.publishFormVersion, definition],
]);

const keylessDefinition = {
  readMaxBytes: MAX_KEYLESS_BYTES,
  jsonMaxBytes: MAX_KEYLESS_BYTES,
  maxNodes: MAX_NODES,
};
const keylessLimits = new Map<DescMethod, MessageLimits>([
  [FormsService.method.createForm, keylessDefinition],
  [FormsService.method.validateForm, keylessDefinition],
]);

export type MessageLimits = {
  /** Bytes of the message, and of what arrives for it, compressed or not. */
  readMaxBytes: number;
  /** The same where it is JSON. */
  jsonMaxBytes: number;
  /** JSON values, or as many messages as hold them. */
  maxNodes: number;
};
