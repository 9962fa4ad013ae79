import type { DescMethod } from '@bufbuild/protobuf';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';

/** How much a request message of an RPC may hold, whatever the protocol; a JSON body by REST is one, too. */
export function limitsOf(method: DescMethod): MessageLimits {
  return limits.get(method) ?? { readMaxBytes: MAX_MESSAGE_BYTES, maxNodes: MAX_NODES };
}

/** The interface's size of a JSON body, section 8 of its limits. */
const MAX_MESSAGE_BYTES = 256 * 1024;

/** A file of 10 MiB with its envelope, in base64 as Connect's JSON has it. */
const MAX_UPLOAD_BYTES = 14 * 1024 * 1024;

/** JSON values in answers, prefill and metadata: far above a form of 100 fields. */
const MAX_NODES = 10_000;

/** A definition of 256 KiB with as many short options as fit. */
const MAX_DEFINITION_NODES = 50_000;

const definition = { readMaxBytes: MAX_MESSAGE_BYTES, maxNodes: MAX_DEFINITION_NODES };
const limits = new Map<DescMethod, MessageLimits>([
  [UploadsService.method.createUpload, { readMaxBytes: MAX_UPLOAD_BYTES, maxNodes: MAX_NODES }],
  [FormsService.method.createForm, definition],
  [FormsService.method.validateForm, definition],
  [FormsService.method.publishFormVersion, definition],
]);

export type MessageLimits = {
  /** Bytes of the message, and of what arrives for it, compressed or not. */
  readMaxBytes: number;
  /** JSON values, or as many messages as hold them. */
  maxNodes: number;
};
