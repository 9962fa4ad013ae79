import type { ServiceImpl } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  MailLinkPurpose,
  type MailService,
  StopScope as StopScopeMessage,
} from '../../../gen/headlessforms/v1/mail_pb.js';
import type { AuditAction } from '../../domain/audit.ts';
import { failed } from '../../domain/errors/failure.ts';
import { type MailLink, readMailLink, SIGN_IN_MAILS } from '../../domain/links.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { releaseWaitingMail } from '../../store/deliveries/delivery-removal.ts';
import { findAnyForm } from '../../store/forms/forms.ts';
import {
  confirmRecipient,
  findStoppedScope,
  type StopScope,
  startMail,
  stopMail,
} from '../../store/mail/mail.ts';
import { confirmOwner } from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';

/** Describes and follows mailed links. The token in the link is the credential. */
export function mailService({
  database,
  verifyingKeys,
  now,
  notifyWorkers,
  audit,
}: ServiceContext): ServiceImpl<typeof MailService> {
  return {
    async getMailLink({ token }) {
      return describe(database, linkOf(token));
    },

    async followMailLink({ token, stopScope }, call) {
      const link = linkOf(token);
      const about = { ...(await formOf(link.formId)), action: actions[link.purpose] };
      await database.transaction(async (tx) => {
        await follow(tx, link, stopScope);
        await audit.change(tx, call, about);
      });
      notifyWorkers();
      return describe(database, link);
    },

    async startMail({ token }, call) {
      const link = linkOf(token);
      if (link.purpose !== 'stop') throw wrongLink();
      const about = await formOf(link.formId);
      await database.transaction(async (tx) => {
        await startMail(tx, link);
        await audit.change(tx, call, about);
      });
      const { address, formName } = await describe(database, link);
      return { address, formName };
    },
  };

  /** What the audit log names; nothing where a link is about no form, or one that is gone. */
  async function formOf(formId: string): Promise<{ projectId?: string; formId?: string }> {
    const form = await findAnyForm(database, formId);
    return form === null ? {} : { projectId: form.projectId, formId };
  }

  function linkOf(token: string): MailLink {
    const result = readMailLink(verifyingKeys, token, now());
    if (result.ok) return result.link;
    throw wrongLink(result.reason === 'expired' ? 'The link has expired' : undefined);
  }
}

function wrongLink(message = 'The link is not right') {
  return failed(Reason.INVALID_TOKEN, message, { nextCall: NextCall.NONE });
}

async function follow(tx: Transaction, link: MailLink, stopScope: StopScopeMessage): Promise<void> {
  const { purpose, formId, address } = link;
  switch (purpose) {
    case 'confirm-owner':
    case 'change-owner':
      if (!(await confirmOwner(tx, formId, address))) {
        throw failed(Reason.INVALID_TOKEN, 'The form has or awaits another owner now', {
          nextCall: NextCall.NONE,
        });
      }
      return releaseWaitingMail(tx, { formId, address });
    case 'confirm-recipient':
      return confirmRecipient(tx, { formId, address });
    case 'stop':
      return stopMail(tx, { address, formId, scope: scopeOf(stopScope) });
    default:
      return purpose satisfies never;
  }
}

/** If the form has been removed, its name is empty. */
async function describe(db: Queries, { purpose, formId, address }: MailLink) {
  const form = await findAnyForm(db, formId);
  const stopped = purpose === 'stop' ? await findStoppedScope(db, { address, formId }) : null;
  return {
    purpose: purposes[purpose],
    address,
    formName: form?.name ?? '',
    stopped: stopped === null ? StopScopeMessage.UNSPECIFIED : scopes[stopped],
    aboutSignIn: formId === SIGN_IN_MAILS,
  };
}

function scopeOf(scope: StopScopeMessage): StopScope {
  if (scope === StopScopeMessage.EVERYTHING) return 'everything';
  return scope === StopScopeMessage.ALL ? 'all' : 'form';
}

const scopes: Record<StopScope, StopScopeMessage> = {
  form: StopScopeMessage.FORM,
  all: StopScopeMessage.ALL,
  everything: StopScopeMessage.EVERYTHING,
};

const actions: Record<MailLink['purpose'], AuditAction> = {
  'confirm-owner': 'form.owner_confirmed',
  'change-owner': 'form.owner_confirmed',
  'confirm-recipient': 'form.recipient_confirmed',
  stop: 'form.mails_stopped',
};

const purposes: Record<MailLink['purpose'], MailLinkPurpose> = {
  'confirm-owner': MailLinkPurpose.CONFIRM_OWNER,
  'change-owner': MailLinkPurpose.CHANGE_OWNER,
  'confirm-recipient': MailLinkPurpose.CONFIRM_RECIPIENT,
  stop: MailLinkPurpose.STOP,
};
