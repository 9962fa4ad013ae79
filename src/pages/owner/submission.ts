import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type GetOwnedSubmissionResponse, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import {
  AnswerChannel,
  type AnswerOrigin,
  type Submission,
  SubmissionStatus,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import type { Upload } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { type Delivery, DeliveryStatus, MailKind } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { readableAddress } from '../../domain/addresses/readable-address.ts';
import { uploadsIn } from '../../domain/fields/file.ts';
import { type Html, html } from '../../domain/text/html.ts';
import { lastOf } from '../../http/multipart.ts';
import { sendFile } from '../../http/reply.ts';
import { present } from '../../http/shape.ts';
import { fileSizeInWords, timeInWords } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { fillHtml, rootOf } from '../layout.ts';
import { answerAt, type HandleOwner, idIn } from './handler.ts';
import { banner, buttonForm, dataTable, timeElement } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Shows one submission in full, with its files, where its answers come from, and its deliveries. */
export const showSubmission: HandleOwner = async (exchange) => {
  const { request, call, addressOf, language, csrf, cookies } = exchange;
  const read = await call(rpcs.getOwnedSubmission, { submissionId: idIn(request) });
  const address = await addressOf();
  const { owner } = language;
  const submission = submissionIn(read);
  const base = `${rootOf(request)}owner`;
  const title = fill(owner.answerTitle, {
    date: timeInWords(timestampDate(present(submission.createTime)), language.tag),
  });
  const linkTo = (id: string, text: string) => id && html` <a href="${base}/submissions/${id}">${text}</a>`;
  const body = html`<p><a href="${base}/forms/${submission.formId}"><bdi>${read.formName}</bdi>: ${owner.allAnswers}</a></p>
<h1>${titleOf(submission, language)}</h1>
${neighboursOf(read, base, language)}
${answersOf(read, base, language)}
<h2>${owner.about}</h2>
<dl class="facts"><div><dt>${owner.answerId}</dt><dd>${submission.id}</dd></div>
<div><dt>${owner.status}</dt><dd>${submission.status === SubmissionStatus.SPAM ? owner.spam : submission.replacedBy === '' && owner.accepted}${linkTo(submission.replaces, owner.corrects)}${linkTo(submission.replacedBy, owner.correctedBy)}</dd></div>
<div><dt>${owner.source}</dt><dd>${submission.source}</dd></div>${respondentOf(submission, language)}</dl>
<h2>${owner.deliveries}</h2>
${banner(cookies.takeDone(), ['doneSentAgain'], language)}
${deliveriesOf(read.deliveries, language, { address, csrf, action: `${base}/submissions/${submission.id}/replay`, settings: `${base}/forms/${submission.formId}/settings` })}
<p class="actions"><a class="danger" href="${base}/submissions/${submission.id}/delete">${owner.delete}</a></p>`;
  return { title, body, images: true, script: true };
};

/** Links to the responses that came right after and right before. */
function neighboursOf(
  { newerSubmissionId: newer, olderSubmissionId: older }: GetOwnedSubmissionResponse,
  base: string,
  { owner }: Language,
): Html | false {
  if (newer === '' && older === '') return false;
  return html`<nav class="neighbours" aria-label="${owner.answers}">${newer !== '' && html`<a rel="prev" href="${base}/submissions/${newer}">${owner.newerAnswer}</a>`}
${older !== '' && html`<a rel="next" href="${base}/submissions/${older}">${owner.olderAnswer}</a>`}</nav>`;
}

/** Who answered, where that is known for certain. */
function respondentOf({ respondent }: Submission, { owner }: Language): Html | false {
  if (respondent === undefined) return false;
  return html`<div><dt>${owner.respondent}</dt><dd>${fill(owner.verifiedBy, { email: readableAddress(respondent.email) })}</dd></div>`;
}

/** Asks whether to delete a submission. */
export const askToDelete: HandleOwner = async ({ request, call, language, csrf }) => {
  const submission = submissionIn(await call(rpcs.getOwnedSubmission, { submissionId: idIn(request) }));
  const { deleteTitle: title, deleteText, deleteButton, keep } = language.owner;
  const here = `${rootOf(request)}owner/submissions/${submission.id}`;
  const body = html`<h1>${title}</h1>
<p class="lead">${titleOf(submission, language)}. ${deleteText}</p>
<div class="actions">${buttonForm({ action: `${here}/delete`, csrf, label: deleteButton, danger: true })}<a href="${here}">${keep}</a></div>`;
  return { title, body, script: true };
};

/** Deletes a submission and shows the others. */
export const deleteSubmission: HandleOwner = async (exchange) => {
  const { request, call } = exchange;
  const submissionId = idIn(request);
  const { formId } = submissionIn(await call(rpcs.getOwnedSubmission, { submissionId }));
  await call(rpcs.deleteOwnedSubmission, { submissionId });
  return answerAt(exchange, `${rootOf(request)}owner/forms/${formId}`, 'doneDeleted');
};

/** Sends an email to the owner again and shows the submission. */
export const sendMailAgain: HandleOwner = async (exchange) => {
  const { request, call, inputs } = exchange;
  const submissionId = idIn(request);
  await call(rpcs.replayOwnedDelivery, { submissionId, deliveryId: lastOf(inputs, 'delivery') });
  return answerAt(exchange, `${rootOf(request)}owner/submissions/${submissionId}`, 'doneSentAgain');
};

/** Sends a file of a submission, which a browser saves and does not show. */
export const sendOwnedFile: HandleOwner = async ({ request, response, receive }) => {
  await sendFile(response, receive(rpcs.getOwnedUpload, { uploadId: idIn(request) }));
  return undefined;
};

function submissionIn({ submission }: GetOwnedSubmissionResponse): Submission {
  return present(present(submission).submission);
}

function titleOf({ createTime }: Submission, language: Language): Html {
  return fillHtml(language.owner.answerTitle, { date: timeElement(createTime, language) });
}

/** The answers with their files, each with its origin, unless all have the same. */
function answersOf(
  { submission, files }: GetOwnedSubmissionResponse,
  base: string,
  language: Language,
): Html {
  const { owner } = language;
  const { texts, submission: stored } = present(submission);
  const uploads = new Map(files.map((file) => [file.id, file]));
  const origins = new Map(
    Object.entries(stored?.provenance ?? {}).map(([id, by]) => [id, originOf(by, stored?.source, language)]),
  );
  const [together, ...others] = new Set(origins.values());
  const isSame = others.length === 0;
  if (texts.length === 0) return html`<p class="lead">${owner.noText}</p>`;
  return html`${isSame && together !== undefined && html`<p class="note">${owner.origin}: ${together}</p>`}
<dl>${texts.map(({ fieldId, label, text }) => {
    const given = uploadsIn(stored?.answers?.[fieldId]).flatMap(({ id }) => uploads.get(id) ?? []);
    const answer =
      given.length > 0
        ? html`<dd>${filesOf(given, label, base, language)}</dd>`
        : html`<dd dir="auto">${text}</dd>`;
    return html`<div><dt dir="auto">${label}</dt>${answer}${
      !isSame && html`<dd class="note">${origins.get(fieldId)}</dd>`
    }</div>
`;
  })}</dl>`;
}

/** Answers of a call came from its source, in its sender's words. */
function originOf({ by, keyId }: AnswerOrigin, source = 'api', { owner, words }: Language): string {
  if (by === AnswerChannel.HUMAN) return owner.byPerson;
  if (by === AnswerChannel.PREFILL) return owner.byPrefill;
  if (by === AnswerChannel.DEFAULT) return owner.byDefault;
  if (by === AnswerChannel.MCP_USER) return words.answeredByMcpUser;
  const via = source === 'api' ? owner.byApi : fill(words.answeredFrom, { source });
  return keyId === '' ? via : `${via} (${keyId})`;
}

/** The files of an answer; pictures, as signatures are, show themselves. */
function filesOf(files: Upload[], label: string, base: string, language: Language): Html {
  return html`<ul class="files">${files.map(
    ({ id, filename, size, contentType }) =>
      html`<li>${isPicture.test(contentType) && html`<img class="preview" src="${base}/files/${id}" alt="${label}" loading="lazy">`}<a href="${base}/files/${id}" download>${filename}</a> <span class="note" dir="auto">${fileSizeInWords(size, language.tag)}</span></li>
`,
  )}</ul>`;
}

/** What a browser shows without running anything of it. */
const isPicture = /^image\/(?:png|jpeg|gif|webp)$/;

function deliveriesOf(deliveries: Delivery[], language: Language, replay: Replay): Html {
  const { owner } = language;
  if (deliveries.length === 0)
    return html`<p>${owner.noDeliveries} <a href="${replay.settings}">${owner.seeRecipients}</a></p>`;
  return dataTable(
    owner.deliveries,
    [owner.deliveredTo, owner.result, owner.attempts],
    deliveries.map((delivery) => {
      const { id, address, mailKind, status, attemptCount, error, deliverTime } = delivery;
      const isReplayable =
        mailKind === MailKind.OWNER && address === replay.address && status !== DeliveryStatus.PENDING;
      const more = html`<input type="hidden" name="delivery" value="${id}">`;
      return html`<tr><th scope="row">${address === '' ? owner.webhook : address}</th>
<td data-label="${owner.result}">${resultOf(status, language)}${deliverTime !== undefined && html`, ${timeElement(deliverTime, language)}`}${error !== '' && html`<br><span class="note">${error}</span>`}${isReplayable && html`<br>${buttonForm({ ...replay, label: owner.sendAgain, quiet: true, more })}`}</td>
<td data-label="${owner.attempts}">${attemptCount}</td></tr>
`;
    }),
    true,
  );
}

/** Whose emails can be sent again, and by which form; `settings` name who gets them. */
type Replay = { address: string; action: string; csrf: string; settings: string };

function resultOf(status: DeliveryStatus, { owner }: Language): string {
  if (status === DeliveryStatus.DELIVERED) return owner.delivered;
  return status === DeliveryStatus.FAILED ? owner.failed : owner.pending;
}
