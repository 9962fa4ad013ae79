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
import { type Html, html } from '../../domain/text/html.ts';
import { lastOf } from '../../http/multipart.ts';
import { sendFile } from '../../http/reply.ts';
import { present } from '../../http/shape.ts';
import { fileSizeInWords, timeInWords } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { rootOf } from '../layout.ts';
import { answerAt, type HandleOwner, idIn } from './handler.ts';
import { banner, buttonForm, dataTable } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Shows one submission in full, with its files, where its answers come from, and its deliveries. */
export const showSubmission: HandleOwner = async (exchange) => {
  const { request, call, addressOf, language, csrf, cookies } = exchange;
  const read = await call(rpcs.getOwnedSubmission, { submissionId: idIn(request) });
  const address = await addressOf();
  const { owner } = language;
  const submission = submissionIn(read);
  const base = `${rootOf(request)}owner`;
  const title = titleOf(submission, language);
  const body = html`<p><a href="${base}/forms/${submission.formId}">${read.formName}: ${owner.allAnswers}</a></p>
<h1>${title}</h1>
${answersOf(read, language)}
${read.files.length > 0 && filesOf(read.files, base, language)}
<h2>${owner.about}</h2>
<dl class="facts"><div><dt>${owner.answerId}</dt><dd>${submission.id}</dd></div>
<div><dt>${owner.status}</dt><dd>${submission.status === SubmissionStatus.SPAM ? owner.spam : owner.accepted}</dd></div>
<div><dt>${owner.source}</dt><dd>${submission.source}</dd></div>${respondentOf(submission, language)}</dl>
<h2>${owner.deliveries}</h2>
${banner(cookies.takeDone(), ['doneSentAgain'], language)}
${deliveriesOf(read.deliveries, language, { address, csrf, action: `${base}/submissions/${submission.id}/replay` })}
<p class="actions"><a class="danger" href="${base}/submissions/${submission.id}/delete">${owner.delete}</a></p>`;
  return { title, body, images: true };
};

/** Who answered, where that is known for certain. */
function respondentOf({ respondent }: Submission, { owner }: Language): Html | false {
  if (respondent === undefined) return false;
  return html`<div><dt>${owner.respondent}</dt><dd>${fill(owner.verifiedBy, { email: respondent.email })}</dd></div>`;
}

/** Asks whether to delete a submission. */
export const askToDelete: HandleOwner = async ({ request, call, language, csrf }) => {
  const submission = submissionIn(await call(rpcs.getOwnedSubmission, { submissionId: idIn(request) }));
  const { deleteTitle: title, deleteText, deleteButton, keep } = language.owner;
  const here = `${rootOf(request)}owner/submissions/${submission.id}`;
  const body = html`<h1>${title}</h1>
<p class="lead">${titleOf(submission, language)}. ${deleteText}</p>
<div class="actions">${buttonForm({ action: `${here}/delete`, csrf, label: deleteButton, danger: true })}<a href="${here}">${keep}</a></div>`;
  return { title, body };
};

/** Deletes a submission and shows the others. */
export const deleteSubmission: HandleOwner = async (exchange) => {
  const { request, call } = exchange;
  const submissionId = idIn(request);
  const { formId } = submissionIn(await call(rpcs.getOwnedSubmission, { submissionId }));
  await call(rpcs.deleteOwnedSubmission, { submissionId });
  return answerAt(exchange, `${rootOf(request)}owner/forms/${formId}`, 'doneDeleted');
};

/** Sends a mail to the owner again and shows the submission. */
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

function titleOf({ createTime }: Submission, language: Language): string {
  return fill(language.owner.answerTitle, {
    date: timeInWords(timestampDate(present(createTime)), language.tag),
  });
}

/** The answers, each with where it comes from unless all come from there. */
function answersOf({ submission }: GetOwnedSubmissionResponse, language: Language): Html {
  const { owner } = language;
  const { texts, submission: stored } = present(submission);
  const origins = new Map(
    Object.entries(stored?.provenance ?? {}).map(([id, origin]) => [id, originOf(origin, language)]),
  );
  const [together, ...others] = new Set(origins.values());
  const isSame = others.length === 0;
  if (texts.length === 0) return html`<p class="lead">${owner.noText}</p>`;
  return html`${isSame && together !== undefined && html`<p class="note">${owner.origin}: ${together}</p>`}
<dl>${texts.map(
    ({ fieldId, label, text }) => html`<div><dt dir="auto">${label}</dt><dd dir="auto">${text}</dd>${
      !isSame && html`<dd class="note">${origins.get(fieldId)}</dd>`
    }</div>
`,
  )}</dl>`;
}

function originOf({ by, keyId }: AnswerOrigin, { owner, words }: Language): string {
  if (by === AnswerChannel.HUMAN) return owner.byPerson;
  if (by === AnswerChannel.PREFILL) return owner.byPrefill;
  if (by === AnswerChannel.DEFAULT) return owner.byDefault;
  if (by === AnswerChannel.MCP_USER) return words.answeredByMcpUser;
  return keyId === '' ? owner.byApi : `${owner.byApi} (${keyId})`;
}

function filesOf(files: Upload[], base: string, language: Language): Html {
  return html`<h2>${language.owner.files}</h2>
<ul class="files">${files.map(
    ({ id, filename, size, contentType }) =>
      html`<li>${isPicture.test(contentType) && html`<img class="preview" src="${base}/files/${id}" alt="${filename}" loading="lazy">`}<a href="${base}/files/${id}" download>${filename}</a> <span class="note">${fileSizeInWords(size, language.tag)}</span></li>
`,
  )}</ul>`;
}

/** What a browser shows without running anything of it. */
const isPicture = /^image\/(?:png|jpeg|gif|webp)$/;

function deliveriesOf(deliveries: Delivery[], language: Language, replay: Replay): Html {
  const { owner } = language;
  if (deliveries.length === 0) return html`<p>${owner.noDeliveries}</p>`;
  return dataTable(
    owner.deliveries,
    [owner.deliveredTo, owner.result, owner.attempts],
    deliveries.map((delivery) => {
      const { id, address, mailKind, status, attemptCount, error, deliverTime } = delivery;
      const isReplayable =
        mailKind === MailKind.OWNER && address === replay.address && status !== DeliveryStatus.PENDING;
      const more = html`<input type="hidden" name="delivery" value="${id}">`;
      const time = deliverTime && timestampDate(deliverTime);
      return html`<tr><th scope="row">${address === '' ? owner.webhook : address}</th>
<td>${resultOf(status, language)}${time !== undefined && html`, ${timeInWords(time, language.tag)}`}${error !== '' && html`<br><span class="note">${error}</span>`}${isReplayable && html`<br>${buttonForm({ ...replay, label: owner.sendAgain, quiet: true, more })}`}</td>
<td>${attemptCount}</td></tr>
`;
    }),
  );
}

/** Whose mails can be sent again, and by which form. */
type Replay = { address: string; action: string; csrf: string };

function resultOf(status: DeliveryStatus, { owner }: Language): string {
  if (status === DeliveryStatus.DELIVERED) return owner.delivered;
  return status === DeliveryStatus.FAILED ? owner.failed : owner.pending;
}
