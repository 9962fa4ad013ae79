import { clone, type DescMessage, type Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Idempotency } from '@bufbuild/protobuf/wkt';
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { AuditService } from '../../../gen/headlessforms/v1/audit_pb.js';
import { FailureSchema } from '../../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../../gen/headlessforms/v1/keys_pb.js';
import { SessionsService } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';

/** Clients of all services, by Connect, for Node and browsers. Calls that are safe to repeat are repeated. */
export function createFormsClient({ baseUrl, apiKey, attempts, ...options }: ClientOptions): FormsClient {
  const authorize: Interceptor = (next) => (request) => {
    if (apiKey !== undefined) request.header.set('authorization', `Bearer ${apiKey}`);
    return next(request);
  };
  const interceptors = [retryCalls({ ...(attempts !== undefined && { attempts }) }), authorize];
  const transport = createConnectTransport({ baseUrl, interceptors, ...options });
  return {
    transport,
    forms: createClient(FormsService, transport),
    submissions: createClient(SubmissionsService, transport),
    sessions: createClient(SessionsService, transport),
    webhooks: createClient(WebhooksService, transport),
    uploads: createClient(UploadsService, transport),
    keys: createClient(KeysService, transport),
    audit: createClient(AuditService, transport),
  };
}

/**
 * An interceptor that repeats calls which a lost connection or a busy service has failed, with growing waits or as the
 * service asks. It gives each call that takes an `idempotency_key` one, so that it is done once; calls that are
 * neither idempotent nor take a key are made once.
 */
export function retryCalls({ attempts = 5 } = {}): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return next(request);
    const message = withKey(request.method.input, request.message);
    const isRepeatable =
      request.method.idempotency !== Idempotency.IDEMPOTENCY_UNKNOWN || message !== undefined;
    const call = message === undefined ? request : { ...request, message };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await next(call);
      } catch (error) {
        const wait = waitAfter(error, attempt);
        if (!isRepeatable || attempt >= attempts || wait === undefined || request.signal.aborted) throw error;
        await sleep(wait, request.signal);
      }
    }
  };
}

/** The message with an idempotency key; undefined if it takes none. */
function withKey(schema: DescMessage, message: Message): Message | undefined {
  if (schema.field.idempotencyKey === undefined) return undefined;
  const keyed = clone(schema, message) as Message & { idempotencyKey: string };
  if (keyed.idempotencyKey === '') keyed.idempotencyKey = crypto.randomUUID();
  return keyed;
}

/** Milliseconds to wait before a call is repeated; undefined if repeating it does not help. */
function waitAfter(thrown: unknown, attempt: number): number | undefined {
  const error = ConnectError.from(thrown);
  const [failure] = error.findDetails(FailureSchema);
  // The service gives each failure a detail. Connect's transports for Node call a cut connection `Aborted` over HTTP/1,
  // and `Canceled` over HTTP/2.
  const isLost =
    failure === undefined &&
    ([Code.Unavailable, Code.Aborted, Code.Canceled].includes(error.code) ||
      error.cause instanceof TypeError);
  if (failure?.retryable !== true && !isLost) return undefined;
  const asked = Number(failure?.retryAfter?.seconds ?? 0) * 1000;
  if (asked > MAX_WAIT_MS) return undefined;
  return Math.max(asked, Math.min(FIRST_WAIT_MS * 2 ** attempt, MAX_WAIT_MS)) * (1 + Math.random() / 5);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

const FIRST_WAIT_MS = 100;
const MAX_WAIT_MS = 30_000;

export type ClientOptions = {
  /** The address of the service, such as `https://forms.example.com`. */
  baseUrl: string;
  /** `hfs_…`; calls that need no key do without. */
  apiKey?: string;
  /** How often a call is made at most, 5 by default. */
  attempts?: number;
  /** Makes the requests; default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
};

export type FormsClient = {
  transport: Transport;
  forms: Client<typeof FormsService>;
  submissions: Client<typeof SubmissionsService>;
  sessions: Client<typeof SessionsService>;
  webhooks: Client<typeof WebhooksService>;
  uploads: Client<typeof UploadsService>;
  keys: Client<typeof KeysService>;
  audit: Client<typeof AuditService>;
};
