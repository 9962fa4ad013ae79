import { createClient, type Transport } from '@connectrpc/connect';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { SessionsService } from '../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/forms/v1/webhooks_pb.js';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';

/** A client of each service that the gateway calls, all over one transport. */
export function createClients(transport: Transport) {
  return {
    forms: createClient(FormsService, transport),
    health: createClient(Health, transport),
    keys: createClient(KeysService, transport),
    sessions: createClient(SessionsService, transport),
    submissions: createClient(SubmissionsService, transport),
    uploads: createClient(UploadsService, transport),
    webhooks: createClient(WebhooksService, transport),
  };
}

export type Clients = ReturnType<typeof createClients>;
