import { create, type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';

/**
 * The contract as a `google.protobuf.FileDescriptorSet`, from which clients can be generated: the public protos
 * and all that they import, each file after those it imports, without comments.
 */
export function describeProtos(): Uint8Array {
  const found = new Set<DescFile>();
  for (const { file } of services) addWithImports(file, found);
  return toBinary(
    FileDescriptorSetSchema,
    create(FileDescriptorSetSchema, { file: [...found].map(({ proto }) => proto) }),
  );
}

const services = [
  FormsService,
  SubmissionsService,
  SessionsService,
  UploadsService,
  WebhooksService,
  KeysService,
  AuditService,
  MailService,
  OwnersService,
];

function addWithImports(file: DescFile, found: Set<DescFile>): void {
  for (const imported of file.dependencies) addWithImports(imported, found);
  found.add(file);
}
