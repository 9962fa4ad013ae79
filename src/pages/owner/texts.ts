import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostedSession,
  HostedSessionSchema,
  HostedState,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import {
  type OwnedForm,
  type OwnedFormTextsSchema,
  OwnersService,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import { stepsOf, visibleIds } from '../../domain/answers/steps.ts';
import { isShown } from '../../domain/fields/field.ts';
import { formLimits } from '../../domain/limits/limits.ts';
import { newToken } from '../../domain/secrets/new-secrets.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import { present } from '../../http/shape.ts';
import { inDigits } from '../../text/quantities.ts';
import { fill, type Language, type Words } from '../../text/words.ts';
import { renderForm } from '../form/form-page.ts';
import { shownFieldsOf } from '../form/page-source.ts';
import { viewOf } from '../form/show.ts';
import { formUrl, renderFormHead, withForm } from './forms.ts';
import { answerAt, type OwnerExchange } from './handler.ts';
import { csrfInput, type OwnerContent } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Shows what a form says, to be changed. */
export const showTexts = withForm((exchange, form) =>
  editPage(exchange, form, groupsOf(form, exchange.language)),
);

/** Checks what was changed and shows the form with it, publishes it, or goes on changing it. */
export const postTexts = withForm(async (exchange, form) => {
  const { request, call, inputs, language } = exchange;
  const groups = groupsOf(form, language, inputs);
  const goal = lastOf(inputs, 'go');
  if (goal === 'edit') return editPage(exchange, form, groups);
  const { texts, problems } = textsIn(form, groups, language);
  if (problems.size > 0) return editPage(exchange, form, groups, problems);
  const expectedVersionId = lastOf(inputs, 'version');
  const validateOnly = goal !== 'publish';
  try {
    const asked = { formId: form.id, texts, expectedVersionId, validateOnly };
    const { definition } = await call(rpcs.publishOwnedFormTexts, asked);
    if (validateOnly) return previewPage(exchange, form, groups, present(definition));
  } catch (error) {
    const { reason, details } = restErrorOf(error);
    if (reason === 'conflict')
      return editPage(exchange, form, groups, new Map(), language.owner.changedMeanwhile);
    if (reason !== 'invalid') throw error;
    const all = groups.flatMap(({ texts: own }) => own);
    const wrong = all.filter(({ path }) => details.some((detail) => detail.path === path));
    return editPage(
      exchange,
      form,
      groups,
      new Map(wrong.map((text) => [text.name, problemOf(text, language)])),
      wrong.length === 0 ? language.owner.notPublished : undefined,
    );
  }
  return answerAt(exchange, `${formUrl(request, form)}/settings`, 'doneTexts');
});

/** The texts of a form with their places in its definition; with `inputs` as they were posted. */
function groupsOf(form: OwnedForm, { owner, tag }: Language, inputs?: FormInputs): Group[] {
  const { name, description, fields, settings } = present<FormDefinition>(form.definition);
  const { closesAt, maxSubmissions, successMessage = '' } = settings ?? {};
  const closes = closesAt ? minuteOf(timestampDate(closesAt)) : '';
  const limit = maxSubmissions ? String(maxSubmissions) : '';
  const labelText = { max: formLimits.label, required: true };
  const helpText = { max: formLimits.description, long: true };
  const text = (
    path: string,
    label: string,
    value: string,
    { max, ...more }: Partial<Text> & { max: number },
    key = path,
  ): Text => {
    const posted = inputs?.get(key)?.at(-1)?.replaceAll('\r\n', '\n');
    return { name: key, path, label, value: posted ?? value, max, ...more };
  };
  const labels = (kind: 'options' | 'rows', index: number, label: string) => {
    const field = fields[index];
    return (field?.[kind] ?? []).map((option, n) =>
      text(
        `fields.${index}.${kind}.${n}.label`,
        fill(label, { n: inDigits(n + 1, tag) }),
        option.label,
        labelText,
        `${kind}.${field?.id}.${option.value}`,
      ),
    );
  };
  return [
    {
      title: owner.textsForm,
      texts: [
        text('name', owner.textName, name, { max: formLimits.name, required: true }),
        text('description', owner.textDescription, description, helpText),
        text('settings.successMessage', owner.textSuccess, successMessage, {
          max: formLimits.successMessage,
          long: true,
        }),
        text('settings.closesAt', owner.textClose, closes, { max: 16, type: 'datetime-local' }),
        text('settings.maxSubmissions', owner.textLimit, limit, { max: 9, inputmode: 'numeric' }),
      ],
    },
    ...fields.map(({ id, label, description: help }, index) => ({
      title: label || id,
      texts: [
        text(`fields.${index}.label`, owner.textLabel, label, labelText, `label.${id}`),
        text(`fields.${index}.description`, owner.textHelp, help, helpText, `help.${id}`),
        ...labels('options', index, owner.textOption),
        ...labels('rows', index, owner.textRow),
      ],
    })),
  ];
}

/** What the texts come to, and what can't be read. */
function textsIn(form: OwnedForm, groups: readonly Group[], language: Language) {
  const texts = groups.flatMap((group) => group.texts);
  const values = new Map(texts.map(({ name, value }) => [name, value]));
  const value = (name: string) => values.get(name) ?? '';
  const { fields, settings } = present<FormDefinition>(form.definition);
  const closes = value('settings.closesAt');
  const before = settings?.closesAt;
  // A time that was set to the second stays so.
  const isKept = before !== undefined && minuteOf(timestampDate(before)) === closes;
  const closesMs = Date.parse(`${closes}Z`);
  const limit = value('settings.maxSubmissions').trim();
  const problems = new Map<string, string>();
  for (const text of texts) {
    const isWrong =
      (text.required === true && text.value.trim() === '') ||
      (text.type === 'datetime-local' && closes !== '' && Number.isNaN(closesMs)) ||
      (text.inputmode === 'numeric' && limit !== '' && !/^[1-9]\d{0,8}$/.test(limit));
    if (isWrong) problems.set(text.name, problemOf(text, language));
  }
  return {
    problems,
    texts: {
      name: value('name'),
      description: value('description'),
      successMessage: value('settings.successMessage'),
      ...(closes !== '' && { closeTime: isKept ? before : timestampFromMs(closesMs || 0) }),
      maxSubmissions: Number(limit) || 0,
      fields: fields.map(({ id, options, rows }) => ({
        fieldId: id,
        label: value(`label.${id}`),
        description: value(`help.${id}`),
        options: options.map((option) => ({
          value: option.value,
          label: value(`options.${id}.${option.value}`),
        })),
        rows: rows.map((row) => ({ value: row.value, label: value(`rows.${id}.${row.value}`) })),
      })),
    } satisfies MessageInitShape<typeof OwnedFormTextsSchema>,
  };
}

/** `YYYY-MM-DDTHH:MM`, in UTC. */
function minuteOf(time: Date): string {
  return time.toISOString().slice(0, 'YYYY-MM-DDTHH:MM'.length);
}

function problemOf({ type, inputmode, max }: Text, { owner, tag }: Language): string {
  if (type === 'datetime-local') return owner.wrongMoment;
  return inputmode === 'numeric' ? owner.wrongLimit : fill(owner.wrongText, { max: inDigits(max, tag) });
}

function editPage(
  { request, csrf, language }: OwnerExchange,
  form: OwnedForm,
  groups: readonly Group[],
  problems: ReadonlyMap<string, string> = new Map(),
  problem?: string,
): OwnerContent {
  const { owner, words } = language;
  const here = formUrl(request, form);
  const title = `${owner.texts}: ${form.name}`;
  const head = renderFormHead(form, 'settings', request, language);
  if (form.keptIn !== '')
    return { title, body: html`${head}<h2>${owner.texts}</h2>${keptIn(form, language)}` };
  const ids = new Map(groups.flatMap((group) => group.texts).map(({ name }, n) => [name, `text-${n}`]));
  const isWrong = problems.size > 0 || problem !== undefined;
  const body = html`${head}
<h2>${owner.texts}</h2>
${
  isWrong &&
  html`<div class="summary" role="alert" tabindex="-1" autofocus aria-labelledby="problems"><h3 id="problems">${problem ?? words.problems}</h3>
<ul>${groups.flatMap(({ title: of, texts }) =>
    texts.flatMap(({ name, label }) =>
      problems.has(name)
        ? [html`<li><a href="#${ids.get(name)}">${of} – ${label}: ${problems.get(name)}</a></li>`]
        : [],
    ),
  )}</ul></div>`
}
<form class="texts" method="post" action="${here}/texts" novalidate>${csrfInput(csrf)}<input type="hidden" name="version" value="${form.versionId}">
${groups.map(
  ({ title: legend, texts }) => html`<fieldset class="group"><legend dir="auto">${legend}</legend>
${texts.map((text) => textInput(text, present(ids.get(text.name)), problems.get(text.name), words))}</fieldset>
`,
)}
<div class="actions"><button name="go" value="preview">${owner.preview}</button><a href="${here}/settings">${owner.keep}</a></div></form>`;
  return {
    title: isWrong ? fill(words.errorTitle, { title }) : title,
    body,
    script: true,
    status: isWrong ? 422 : 200,
  };
}

function textInput(
  { name, label, value, max, required, long, type = 'text', inputmode }: Text,
  id: string,
  problem: string | undefined,
  words: Words,
): Html {
  const isTime = type === 'datetime-local';
  const described = [isTime && `${id}.hint`, problem !== undefined && `${id}.error`].filter(Boolean);
  const shared = {
    class: type === 'text' && inputmode === undefined ? 'control' : 'control short',
    id,
    name,
    maxlength: type === 'text' && max,
    inputmode,
    required,
    dir: type === 'text' && 'auto',
    'aria-invalid': problem !== undefined && 'true',
    'aria-describedby': described.length > 0 && described.join(' '),
    'data-zone': isTime && words.zone,
  };
  const control =
    long === true
      ? html`<textarea rows="2"${attributes(shared)}>
${value}</textarea>`
      : html`<input${attributes({ ...shared, type, value })}>`;
  return html`<div class="${problem === undefined ? 'field' : 'field wrong'}"><label for="${id}">${label}</label>
${isTime && html`<p class="hint" id="${id}.hint">${words.zoneUtc}</p>`}
${problem !== undefined && html`<p class="error" id="${id}.error"><span class="sr">${words.error} </span>${problem}</p>`}
${control}</div>
`;
}

/** Says where a form is kept, whose texts can't be changed here. */
export function keptIn({ keptIn: file }: OwnedForm, { owner }: Language): Html {
  return html`<p>${fill(owner.keptIn, { file })}</p>`;
}

/** The form's page as it would be, one step of it, and the texts on their way back or on. */
function previewPage(
  { request, csrf, language, inputs }: OwnerExchange,
  form: OwnedForm,
  groups: readonly Group[],
  definition: FormDefinition,
): OwnerContent {
  const { owner, words } = language;
  const here = formUrl(request, form);
  const session = sessionOf(definition);
  const fields = shownFieldsOf(session).filter(isShown);
  const steps = stepsOf(fields, visibleIds(fields, {}), session.review);
  const step = steps.find((each) => String(each) === lastOf(inputs, 'step')) ?? steps[0] ?? 1;
  const nonce = newToken();
  const view = viewOf(request, session, fields, { answers: {}, step });
  const page = renderForm(session, { ...view, previewNonce: nonce });
  const values = [
    ['version', lastOf(inputs, 'version')],
    ...groups.flatMap(({ texts }) => texts.map(({ name, value }) => [name, value])),
  ];
  const body = html`${renderFormHead(form, 'settings', request, language)}
<h2>${owner.preview}</h2>
<p class="notice" role="status">${owner.previewText}</p>
<form method="post" action="${here}/texts">${csrfInput(csrf)}${values.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}
${
  steps.length > 1 &&
  html`<div class="steps">${steps.map(
    (each, index) =>
      html`<button${attributes({ class: 'quiet small', name: 'step', value: each, 'aria-current': each === step && 'step' })}>${fill(words.step, { step: inDigits(index + 1, language.tag), steps: inDigits(steps.length, language.tag) })}</button>
`,
  )}</div>`
}
<iframe sandbox title="${owner.preview}" srcdoc="${page.html}"></iframe>
${definition.settings?.successMessage ? html`<h3>${owner.textSuccess}</h3><p class="plain" dir="auto">${definition.settings.successMessage}</p>` : false}
<div class="actions"><button name="go" value="publish">${owner.publish}</button><button class="quiet" name="go" value="edit">${owner.editAgain}</button></div></form>`;
  return { title: `${owner.preview}: ${form.name}`, body, nonce };
}

/** What the form's own page would show, with what it begins with. */
function sessionOf({ name, description, fields, pages, settings }: FormDefinition): HostedSession {
  const { locale, submitLabel, theme, review } = settings ?? {};
  return create(HostedSessionSchema, {
    state: HostedState.OPEN,
    formName: name,
    description,
    fields,
    pages,
    ...(locale !== undefined && { locale }),
    ...(submitLabel !== undefined && { submitLabel }),
    ...(theme !== undefined && { theme }),
    ...(review !== undefined && { review }),
  });
}

type Group = { title: string; texts: Text[] };

/** A text to change: `name` is its input's, `path` its place in the definition. */
type Text = {
  name: string;
  path: string;
  label: string;
  value: string;
  max: number;
  required?: boolean;
  long?: boolean;
  type?: 'text' | 'datetime-local';
  inputmode?: 'numeric';
};
