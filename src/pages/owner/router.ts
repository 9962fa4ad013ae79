import { Router } from 'express';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { showCharts } from './charts.ts';
import { confirmForm, showForms } from './forms.ts';
import { type HandleOwner, type OwnerPageOptions, openPage, ownerPage } from './handler.ts';
import {
  addRecipient,
  closeForm,
  offerForm,
  removeRecipient,
  reopenForm,
  setMails,
  showSettings,
} from './settings.ts';
import { askForLink, endSession, followSignInLink, showSignInLink, signOut } from './sign-in.ts';
import { askToDelete, deleteSubmission, sendMailAgain, sendOwnedFile, showSubmission } from './submission.ts';
import { exportSubmissions, searchSubmissions, showSubmissions } from './submissions.ts';

/** The pages below `/owner`. What GET shows changes nothing; what changes something is posted. */
export function createOwnerPages(options: OwnerPageOptions): Router {
  const router = Router();
  const page = (handle: HandleOwner) => ownerPage(options, handle);
  const refuseMethod = openPage(options, async () => {
    throw failed(Reason.METHOD, 'The path does not know this method');
  });

  router.route('/owner').get(page(showForms)).all(refuseMethod);
  router
    .route('/owner/sign-in')
    .post(openPage(options, askForLink(options)))
    .all(refuseMethod);
  router
    .route('/owner/sign-in/:token')
    .get(openPage(options, showSignInLink(options)))
    .post(openPage(options, followSignInLink(options)))
    .all(refuseMethod);
  router
    .route('/owner/sign-out')
    .post(page(signOut(options)))
    .all(refuseMethod);
  router.route('/owner/sessions/end').post(page(endSession)).all(refuseMethod);
  router.route('/owner/forms/:id').get(page(showSubmissions)).all(refuseMethod);
  router.route('/owner/forms/:id/search').post(page(searchSubmissions)).all(refuseMethod);
  router.route('/owner/forms/:id/export').post(page(exportSubmissions)).all(refuseMethod);
  router.route('/owner/forms/:id/confirm').post(page(confirmForm)).all(refuseMethod);
  router.route('/owner/forms/:id/charts').get(page(showCharts)).all(refuseMethod);
  router.route('/owner/forms/:id/settings').get(page(showSettings)).all(refuseMethod);
  router.route('/owner/forms/:id/close').post(page(closeForm)).all(refuseMethod);
  router.route('/owner/forms/:id/reopen').post(page(reopenForm)).all(refuseMethod);
  router.route('/owner/forms/:id/mails').post(page(setMails)).all(refuseMethod);
  router.route('/owner/forms/:id/recipients').post(page(addRecipient)).all(refuseMethod);
  router.route('/owner/forms/:id/recipients/remove').post(page(removeRecipient)).all(refuseMethod);
  router.route('/owner/forms/:id/hand-over').post(page(offerForm)).all(refuseMethod);
  router.route('/owner/submissions/:id').get(page(showSubmission)).all(refuseMethod);
  router
    .route('/owner/submissions/:id/delete')
    .get(page(askToDelete))
    .post(page(deleteSubmission))
    .all(refuseMethod);
  router.route('/owner/submissions/:id/replay').post(page(sendMailAgain)).all(refuseMethod);
  router.route('/owner/files/:id').get(page(sendOwnedFile)).all(refuseMethod);
  return router;
}
