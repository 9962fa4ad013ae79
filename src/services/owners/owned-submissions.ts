import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import type { SubmissionSchema } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { type AnswerInWords, answersInWords } from '../../domain/answers/answer-texts.ts';
import { notFound } from '../../domain/errors/failure.ts';
import { isId } from '../../domain/ids.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { ownerOf } from '../../rpc/context.ts';
import { listSubmissionDeliveries } from '../../store/deliveries/log.ts';
import { markRead, type OwnedForm } from '../../store/owners/owners.ts';
import { cursorOfNewer, findNeighbours, listSubmissions } from '../../store/submissions/submission-pages.ts';
import { findAnySubmission, type ShownSubmission } from '../../store/submissions/submissions.ts';
import { findAnyUpload, listSubmissionUploads } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import { createVersionReader } from '../forms/readable-versions.ts';
import { limitOwnersAtOnce } from '../limits/calls-at-once.ts';
import { pageRequestOf, requireFound } from '../request-values.ts';
import { deleteStored } from '../submissions/erasure.ts';
import { exportForm } from '../submissions/export.ts';
import { submissionRangeOf, submissionToMessage } from '../submissions/submission-proto.ts';
import { readClaimed, uploadToMessage } from '../uploads/uploads.ts';
import { sendAgain } from '../webhooks/deliveries.ts';
import { deliveryToMessage } from '../webhooks/webhook-proto.ts';
import { confirmedForm, requireFreshSignIn } from './owned-form.ts';
import { type Scan, searchOwnedSubmissions } from './search.ts';

/** The RPCs by which owners read and delete submissions. */
export function submissionMethods(context: ServiceContext, scan: Scan) {
  const { database, audit } = context;
  const downloads = limitOwnersAtOnce('downloads', DOWNLOADS);
  return {
    async markOwnedSubmissionsRead({ formId, submissionId }, call) {
      const { id } = await confirmedForm(context, call, formId);
      if (!isId('sub', submissionId)) throw notFound('submission');
      await markRead(database, id, submissionId);
      return {};
    },

    async listOwnedSubmissions(request, call) {
      const form = await confirmedForm(context, call, request.formId);
      const { id, projectId } = form;
      const { limit, cursor } = pageRequestOf(request, 'sub');
      const filter = submissionRangeOf(request.filter);
      const { items, nextCursor } = await listSubmissions(database, id, filter, { limit, cursor });
      audit.note(call, { projectId, formId: id });
      return {
        submissions: await summaries(context, form, items, call),
        nextPageToken: nextCursor ?? '',
        previousPageToken:
          cursor === undefined ? '' : await cursorOfNewer(database, id, filter, { limit, cursor }),
      };
    },

    async searchOwnedSubmissions(request, call) {
      const form = await confirmedForm(context, call, request.formId);
      const range = { form, filter: submissionRangeOf(request.filter), call };
      const found = await searchOwnedSubmissions(context, scan, request, range);
      audit.note(call, { projectId: form.projectId, formId: form.id });
      return { ...found, submissions: await summaries(context, form, found.submissions, call) };
    },

    async getOwnedSubmission({ submissionId }, call) {
      const { submission, form } = await ownedSubmission(context, call, submissionId);
      const [uploads, deliveries, { newer, older }] = await Promise.all([
        listSubmissionUploads(database, submission.id),
        listSubmissionDeliveries(database, submission.id, MAX_DELIVERIES),
        findNeighbours(database, submission),
      ]);
      audit.note(call, { projectId: form.projectId, resource: submissionId, formId: form.id });
      return {
        submission: await inWords(submission, readerFor(context, form, call)),
        files: uploads.map(uploadToMessage),
        deliveries: deliveries.map((delivery) => deliveryToMessage({ delivery, attempts: [] })),
        formName: form.name,
        newerSubmissionId: newer,
        olderSubmissionId: older,
      };
    },

    async replayOwnedDelivery({ submissionId, deliveryId }, call) {
      const { submission, form } = await ownedSubmission(context, call, submissionId);
      const deliveries = await listSubmissionDeliveries(database, submission.id, MAX_DELIVERIES);
      const delivery = deliveries.find(({ id }) => id === deliveryId);
      if (delivery?.channel !== 'mail' || delivery.receiver !== ownerOf(call).address)
        throw notFound('delivery');
      const { id: formId, projectId } = form;
      const about = { projectId, formId, resource: deliveryId };
      return sendAgain(context, delivery, call, about, async () => ({}));
    },

    async deleteOwnedSubmission({ submissionId }, call) {
      requireFreshSignIn(call, context.now());
      const { submission } = await ownedSubmission(context, call, submissionId);
      await deleteStored(context, submission, call);
      return {};
    },

    async *exportOwnedSubmissions({ formId, format, people }, call) {
      const { id, projectId } = await confirmedForm(context, call, formId);
      using _ = downloads.enter(call);
      yield* exportForm(context, { projectId, formId: id, format, ...(people && { people }) }, call);
    },

    async *getOwnedUpload({ uploadId }, call) {
      const upload = await requireFound('upl', uploadId, () => findAnyUpload(database, uploadId));
      const form = await confirmedForm(context, call, upload.formId, 'upload');
      using _ = downloads.enter(call);
      audit.note(call, { projectId: form.projectId, resource: uploadId, formId: upload.formId });
      yield* readClaimed(context, upload);
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

async function ownedSubmission(context: ServiceContext, call: HandlerContext, id: string) {
  const submission = await requireFound('sub', id, () => findAnySubmission(context.database, id));
  return { submission, form: await confirmedForm(context, call, submission.formId, 'submission') };
}

/** Submissions for a list, in which the longer texts are cut. */
function summaries(
  context: ServiceContext,
  form: OwnedForm,
  submissions: ShownSubmission[],
  call: HandlerContext,
) {
  const reader = readerFor(context, form, call);
  return Promise.all(
    submissions.map(async (submission) => {
      const { texts, ...rest } = await inWords(submission, reader);
      return { ...rest, texts: texts.map((text) => ({ ...text, text: cut(text.text) })) };
    }),
  );
}

function readerFor({ forms }: ServiceContext, form: OwnedForm, { requestHeader }: HandlerContext) {
  const preferred = preferredLanguages(requestHeader.get('accept-language') ?? '');
  return { preferred, read: createVersionReader(forms, form.currentVersionId, preferred) };
}

async function inWords(
  submission: ShownSubmission,
  { preferred, read }: ReturnType<typeof readerFor>,
): Promise<InWords> {
  const definition = await read(submission.versionId);
  return {
    submission: submissionToMessage(submission),
    texts: answersInWords(definition, submission.answers, { hiddenToo: true, preferred }),
  };
}

function cut(text: string): string {
  return text.length <= MAX_LISTED_CHARS ? text : `${text.slice(0, MAX_LISTED_CHARS).toWellFormed()}…`;
}

/** What fits into a cell of a table. */
const MAX_LISTED_CHARS = 300;

const MAX_DELIVERIES = 100;

/** Exports and files that are read at once. One whose reader takes nothing holds some MiB for two minutes. */
const DOWNLOADS = { perOwner: 6, perClient: 12, total: 60 };

type InWords = { submission: MessageInitShape<typeof SubmissionSchema>; texts: AnswerInWords[] };
