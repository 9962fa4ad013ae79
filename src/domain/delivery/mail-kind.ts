import * as pb from '../../../gen/forms/v1/webhooks_pb.js';

/** What mails there are, by the name that is stored with them and that REST shows, as messages name them. */
const mailKinds = {
  owner: pb.MailKind.OWNER,
  notice: pb.MailKind.NOTICE,
  autoresponse: pb.MailKind.AUTORESPONSE,
  confirmation: pb.MailKind.CONFIRMATION,
  recipient_confirmation: pb.MailKind.RECIPIENT_CONFIRMATION,
  owner_change: pb.MailKind.OWNER_CHANGE,
  webhook_off: pb.MailKind.WEBHOOK_OFF,
  demo: pb.MailKind.DEMO,
  sign_in: pb.MailKind.SIGN_IN,
} as const;

/** The kind of a stored mail; unspecified if only another version knows it. */
export function mailKindOf(name: string): pb.MailKind {
  return isMailKind(name) ? mailKinds[name] : pb.MailKind.UNSPECIFIED;
}

/** The name of the kind that a message has; empty for none, or one of a newer service. */
export function mailKindNameOf(kind: pb.MailKind): string {
  return Object.keys(mailKinds).find((name) => mailKindOf(name) === kind) ?? '';
}

function isMailKind(name: string): name is MailKind {
  return Object.hasOwn(mailKinds, name);
}

export type MailKind = keyof typeof mailKinds;
