import type { ServiceImpl } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  MailLinkPurpose,
  type MailService,
  StopScope as StopScopeMessage,
} from '../../../gen/headlessforms/v1/mail_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import type { AuditAction } from '../../domain/audit.ts';
import { enumName, enumValue, type NameIn } from '../../domain/enums.ts';
import { failed } from '../../domain/errors/failure.ts';
import { isId } from '../../domain/ids.ts';
import {
  CONFIRMED_SIGN_IN_MS,
  CORRECTION,
  type MailLink,
  readMailLink,
  SIGN_IN_MAILS,
} from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import type { Queries } from '../../store/database/database.ts';
import { findAnyForm } from '../../store/forms/forms.ts';
import {
  confirmRecipient,
  findStoppedScope,
  listAddedRecipients,
  startMail,
  stopMail,
} from '../../store/mail/mail-recipients.ts';
import { findMailedLink, useMailedLink } from '../../store/mail/mailed-links.ts';
import { findProject } from '../../store/projects/projects.ts';
import type { ServiceContext } from '../context.ts';
import { takeOwnership } from '../owners/owned-form.ts';
import { openOwnerSession } from '../owners/owner-sessions.ts';
import { browserHashOf } from '../request-values.ts';

/** Describes and follows emailed links. The token in the link is the credential. */
export function mailService(context: ServiceContext): ServiceImpl<typeof MailService> {
  const { database, now, notifyWorkers, audit } = context;
  return {
    async getMailLink({ token }) {
      const link = linkOf(context, token);
      if (link.purpose !== 'stop') await refuseUnusable(database, token);
      const isTaken = link.purpose === 'change-owner';
      const recipients = isTaken ? await listAddedRecipients(database, link.formId) : [];
      return {
        ...(await describe(database, link)),
        recipients: recipients.map(({ address }) => address),
      };
    },

    async followMailLink({ token, stopScope, keepRecipients, signIn, browser, formerSessionToken }, call) {
      const link = linkOf(context, token);
      const { purpose, formId, address } = link;
      if (purpose === CORRECTION) throw wrongLink('The page of the submission follows this link');
      const about = { ...(await formOf(formId)), action: actions[purpose] };
      const session = await database.transaction(async (tx) => {
        const sent = await findMailedLink(tx, hashSecret(token));
        if (purpose !== 'stop' && !(await useMailedLink(tx, hashSecret(token)))) {
          await refuseUnusable(tx, token);
        }
        let isChanged = true;
        if (purpose === 'stop')
          isChanged = await stopMail(tx, {
            address,
            formId,
            scope: enumName(StopScopeMessage, stopScope) ?? 'form',
          });
        else if (purpose === 'confirm-recipient') await confirmRecipient(tx, { formId, address });
        else if (!(await takeOwnership(tx, context, { formId, address, keepRecipients }))) {
          throw wrongLink('The form has or awaits another owner now');
        }
        if (isChanged) await audit.change(tx, call, about);
        if (!signIn || !isOfOwner(purpose) || !signsIn(sent, browser)) return {};
        return openOwnerSession(tx, context, call, {
          address: addressKey(address),
          stay: false,
          formerSessionToken,
        });
      });
      context.forms.forget(formId);
      notifyWorkers();
      return { ...(await describe(database, link)), formId, ...session };
    },

    async startMail({ token }, call) {
      const link = linkOf(context, token);
      if (link.purpose !== 'stop') throw wrongLink();
      const about = await formOf(link.formId);
      await database.transaction(async (tx) => {
        if (await startMail(tx, link)) await audit.change(tx, call, about);
      });
      const { address, formName } = await describe(database, link);
      return { address, formName };
    },
  };

  /** Whether a link also signs in: for an hour, and in no other browser than the one that asked for it, if one did. */
  function signsIn(sent: { browserHash: string | null; createdAt: Date } | null, browser: string): boolean {
    if (sent === null || now() - sent.createdAt.getTime() > CONFIRMED_SIGN_IN_MS) return false;
    return sent.browserHash === null || sent.browserHash === browserHashOf(browser);
  }

  /** What the audit log names; nothing where a link is about no form, or one that is gone. */
  async function formOf(formId: string): Promise<{ projectId?: string; formId?: string }> {
    if (isId('prj', formId)) return { projectId: formId };
    const form = await findAnyForm(database, formId);
    return form === null ? {} : { projectId: form.projectId, formId };
  }
}

/** What the token of a link stands for. Throws INVALID_TOKEN. */
export function linkOf({ verifyingKeys, now }: ServiceContext, token: string): MailLink {
  const result = readMailLink(verifyingKeys, token, now());
  if (result.ok) return result.link;
  throw wrongLink(result.reason === 'expired' ? 'The link has expired' : undefined);
}

export function wrongLink(message = 'The link is not valid') {
  return failed(Reason.INVALID_TOKEN, message, { nextCall: NextCall.NONE });
}

/** Whether a link makes or confirms an owner. */
function isOfOwner(purpose: MailLink['purpose']): boolean {
  return purpose === 'confirm-owner' || purpose === 'change-owner';
}

/** Throws unless a link was given out, and not used or voided since. */
export async function refuseUnusable(db: Queries, token: string): Promise<void> {
  const link = await findMailedLink(db, hashSecret(token));
  if (link === null) throw wrongLink();
  if (link.usedAt !== null) {
    throw failed(Reason.TOKEN_USED, 'The link has been used', { nextCall: NextCall.NONE });
  }
}

/**
 * Links of questions are about the project that asks. If the form or the project has been removed, its name is empty.
 */
async function describe(db: Queries, { purpose, formId, address }: MailLink) {
  const { name = '' } = (await (isId('prj', formId) ? findProject : findAnyForm)(db, formId)) ?? {};
  const stopped = purpose === 'stop' ? await findStoppedScope(db, { address, formId }) : null;
  return {
    purpose: enumValue(MailLinkPurpose, purpose.replace('-', '_') as NameIn<typeof MailLinkPurpose>),
    address,
    formName: name,
    stopped: enumValue(StopScopeMessage, stopped ?? undefined),
    aboutSignIn: formId === SIGN_IN_MAILS,
  };
}

const actions: Record<Exclude<MailLink['purpose'], typeof CORRECTION>, AuditAction> = {
  'confirm-owner': 'form.owner_confirmed',
  'change-owner': 'form.owner_confirmed',
  'confirm-recipient': 'form.recipient_confirmed',
  stop: 'form.mails_stopped',
};
