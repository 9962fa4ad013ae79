import { type RequestHandler, Router } from 'express';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { showCharts } from './charts.ts';
import { confirmForm, showForms } from './forms.ts';
import { type HandleOpen, type HandleOwner, type OwnerPageOptions, openPage, ownerPage } from './handler.ts';
import {
  askToDeleteForm,
  closeForm,
  offerForm,
  postDeletion,
  postOfferWithdrawal,
  postRecipient,
  postRecipientRemoval,
  reopenForm,
  setMails,
  showSettings,
} from './settings.ts';
import { showShare } from './share.ts';
import { askForLink, followSignInLink, postSessionEnd, showSignInLink, signOut } from './sign-in.ts';
import { askToDelete, deleteSubmission, sendMailAgain, sendOwnedFile, showSubmission } from './submission.ts';
import { chooseColumns, postExport, postRead, postSearch, showSubmissions } from './submissions.ts';
import { postTexts, showTexts } from './texts.ts';

/** The pages below `/owner`. What GET shows changes nothing; what changes something is posted. */
export function createOwnerPages(options: OwnerPageOptions): Router {
  const router = Router();
  const refuseMethod = openPage(options, async () => {
    throw failed(Reason.METHOD, 'The path does not know this method');
  });
  const serve = (path: string, handlers: { get?: RequestHandler; post?: RequestHandler }) => {
    const route = router.route(path);
    if (handlers.get) route.get(handlers.get);
    if (handlers.post) route.post(handlers.post);
    route.all(refuseMethod);
  };
  const page = (handle: HandleOwner) => ownerPage(options, handle);
  const open = (handle: HandleOpen) => openPage(options, handle);

  serve('/owner', { get: page(showForms) });
  serve('/owner/sign-in', { post: open(askForLink) });
  serve('/owner/sign-in/:token', {
    get: open(showSignInLink),
    post: open(followSignInLink),
  });
  serve('/owner/sign-out', { post: page(signOut) });
  serve('/owner/sessions/end', { post: page(postSessionEnd) });
  serve('/owner/forms/:id', { get: page(showSubmissions) });
  serve('/owner/forms/:id/search', { post: page(postSearch) });
  serve('/owner/forms/:id/columns', { post: page(chooseColumns) });
  serve('/owner/forms/:id/read', { post: page(postRead) });
  serve('/owner/forms/:id/export', { post: page(postExport) });
  serve('/owner/forms/:id/confirm', { post: page(confirmForm) });
  serve('/owner/forms/:id/charts', { get: page(showCharts) });
  serve('/owner/forms/:id/share', { get: page(showShare) });
  serve('/owner/forms/:id/settings', { get: page(showSettings) });
  serve('/owner/forms/:id/close', { post: page(closeForm) });
  serve('/owner/forms/:id/reopen', { post: page(reopenForm) });
  serve('/owner/forms/:id/mails', { post: page(setMails) });
  serve('/owner/forms/:id/recipients', { post: page(postRecipient) });
  serve('/owner/forms/:id/recipients/remove', { post: page(postRecipientRemoval) });
  serve('/owner/forms/:id/hand-over', { post: page(offerForm) });
  serve('/owner/forms/:id/hand-over/withdraw', { post: page(postOfferWithdrawal) });
  serve('/owner/forms/:id/texts', { get: page(showTexts), post: page(postTexts) });
  serve('/owner/forms/:id/delete', { get: page(askToDeleteForm), post: page(postDeletion) });
  serve('/owner/submissions/:id', { get: page(showSubmission) });
  serve('/owner/submissions/:id/delete', { get: page(askToDelete), post: page(deleteSubmission) });
  serve('/owner/submissions/:id/replay', { post: page(sendMailAgain) });
  serve('/owner/files/:id', { get: page(sendOwnedFile) });
  return router;
}
