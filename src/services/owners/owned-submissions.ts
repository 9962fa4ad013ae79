import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { OwnedSubmissionFilter, OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { type SubmissionSchema, SubmissionStatus } from '../../../gen/forms/v1/submissions_pb.js';
import { type AnswerInWords, answersInWords } from '../../domain/answers/answers-in-words.ts';
import { isId, smallestIdAt } from '../../domain/ids.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { type Owner, ownerOf } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import { listSubmissionDeliveries } from '../../store/deliveries/deliveries.ts';
import { findOwnedForm, type OwnedForm } from '../../store/owners/owners.ts';
import { listSubmissions, type SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import { findAnySubmission, type Submission } from '../../store/submissions/submissions.ts';
import { findAnyUpload, listSubmissionUploads } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import { limitCallsAtOnce } from '../limits/owner-calls.ts';
import { pageRequestOf } from '../request-values.ts';
import { deleteStored } from '../submissions/deletion.ts';
import { exportForm } from '../submissions/export.ts';
import { submissionToMessage } from '../submissions/submission-message.ts';
import { submissionStatusOf } from '../submissions/watch.ts';
import { readClaimed, uploadToMessage } from '../uploads/read-upload.ts';
import { deliveryToMessage } from '../webhooks/webhook-message.ts';
import { confirmedForm, requireConfirmed } from './owned-form.ts';
import type { Scan } from './scan.ts';
import { searchSubmissions } from './search.ts';

/** The RPCs by which owners read and delete submissions. */
export function submissionMethods(context: ServiceContext, scan: Scan): SubmissionMethods {
  const { database, audit } = context;
  const enterDownload = limitCallsAtOnce(DOWNLOADS);
  return {
    async listOwnedSubmissions(request, call) {
      const owner = ownerOf(call);
      const { id, projectId } = await confirmedForm(database, owner, request.formId);
      const page = pageRequestOf(request, 'sub');
      const { items, nextCursor } = await listSubmissions(database, id, filterOf(request.filter), page);
      audit.note(call, { projectId, formId: id });
      return { submissions: await summaries(context, items, call), nextPageToken: nextCursor ?? '' };
    },

    async searchOwnedSubmissions(request, call) {
      const owner = ownerOf(call);
      const form = await confirmedForm(database, owner, request.formId);
      const range = { form, filter: filterOf(request.filter), call };
      const found = await searchSubmissions(context, scan, request, range);
      audit.note(call, { projectId: form.projectId, formId: form.id });
      return { ...found, submissions: await summaries(context, found.submissions, call) };
    },

    async getOwnedSubmission({ submissionId }, call) {
      const owner = ownerOf(call);
      const { submission, form } = await ownedSubmission(context, owner, submissionId);
      const [uploads, deliveries] = await Promise.all([
        listSubmissionUploads(database, submission.id),
        listSubmissionDeliveries(database, submission.id, MAX_DELIVERIES),
      ]);
      audit.note(call, { projectId: form.projectId, resource: submissionId, formId: form.id });
      return {
        submission: await inWords(context, submission, call),
        files: uploads.map(uploadToMessage),
        deliveries: deliveries.map((delivery) => deliveryToMessage({ delivery, attempts: [] })),
        formName: form.name,
      };
    },

    async deleteOwnedSubmission({ submissionId }, call) {
      const owner = ownerOf(call);
      const { submission } = await ownedSubmission(context, owner, submissionId);
      await deleteStored(context, submission, call);
      return {};
    },

    async *exportOwnedSubmissions({ formId, format }, call) {
      const owner = ownerOf(call);
      const { id, projectId } = await confirmedForm(database, owner, formId);
      using _ = enterDownload(call);
      yield* exportForm(context, { projectId, formId: id, format }, call);
    },

    async *getOwnedUpload({ uploadId }, call) {
      const owner = ownerOf(call);
      const upload = isId('upl', uploadId) ? await findAnyUpload(database, uploadId) : null;
      const form = upload && (await findOwnedForm(database, owner.address, upload.formId));
      if (upload === null || form === null) throw notFound('upload');
      requireConfirmed(form);
      using _ = enterDownload(call);
      audit.note(call, { projectId: form.projectId, resource: uploadId, formId: upload.formId });
      yield* readClaimed(context, upload);
    },
  };
}

async function ownedSubmission(
  { database }: ServiceContext,
  owner: Owner,
  submissionId: string,
): Promise<{ submission: Submission; form: OwnedForm }> {
  const submission = isId('sub', submissionId) ? await findAnySubmission(database, submissionId) : null;
  const form = submission && (await findOwnedForm(database, owner.address, submission.formId));
  if (submission === null || form === null) throw notFound('submission');
  requireConfirmed(form);
  return { submission, form };
}

/** Submissions for a list, in which the longer texts are cut. */
function summaries(context: ServiceContext, submissions: Submission[], call: HandlerContext) {
  return Promise.all(
    submissions.map(async (submission) => {
      const { texts, ...rest } = await inWords(context, submission, call);
      return { ...rest, texts: texts.map((text) => ({ ...text, text: cut(text.text) })) };
    }),
  );
}

async function inWords(
  { forms }: ServiceContext,
  submission: Submission,
  { requestHeader }: HandlerContext,
): Promise<InWords> {
  const { definition } = await forms.version(submission.versionId);
  const preferred = preferredLanguages(requestHeader.get('accept-language') ?? '');
  return {
    submission: submissionToMessage(submission),
    texts: answersInWords(definition, submission.answers, { hiddenToo: true, preferred }),
  };
}

function cut(text: string): string {
  return text.length <= MAX_LISTED_CHARS ? text : `${text.slice(0, MAX_LISTED_CHARS).toWellFormed()}…`;
}

function filterOf(filter: OwnedSubmissionFilter | undefined): SubmissionFilter {
  const { status = SubmissionStatus.UNSPECIFIED, createdAfter, createdBefore } = filter ?? {};
  return {
    status: submissionStatusOf(status),
    ...(createdAfter !== undefined && { afterId: smallestIdAt('sub', timestampMs(createdAfter)) }),
    ...(createdBefore !== undefined && { beforeId: smallestIdAt('sub', timestampMs(createdBefore)) }),
  };
}

/** What fits into a cell of a table. */
const MAX_LISTED_CHARS = 300;

const MAX_DELIVERIES = 100;

/** Exports and files that are read at once. One whose reader takes nothing holds some MiB for two minutes. */
const DOWNLOADS = { perOwner: 6, perClient: 12, total: 60 };

type InWords = { submission: MessageInitShape<typeof SubmissionSchema>; texts: AnswerInWords[] };

type SubmissionMethods = Pick<
  ServiceImpl<typeof OwnersService>,
  | 'listOwnedSubmissions'
  | 'searchOwnedSubmissions'
  | 'getOwnedSubmission'
  | 'deleteOwnedSubmission'
  | 'exportOwnedSubmissions'
  | 'getOwnedUpload'
>;
