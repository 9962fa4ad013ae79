import { readNamed } from '../../../../src/domain/answers/answer-texts.ts';
import { compileForm, foldAnswer, isUnanswered } from '../../../../src/domain/answers/answers.ts';
import { stepAfter, stepsOf, visibleIds } from '../../../../src/domain/answers/steps.ts';
import { isEmpty } from '../../../../src/domain/conditions/condition.ts';
import type { Field, FormDefinition } from '../../../../src/domain/definition/definition.ts';
import { translate } from '../../../../src/domain/definition/translate.ts';
import { fieldIdOf, type Violation as OwnViolation } from '../../../../src/domain/errors/violations.ts';
import { isShown, takesAnswer } from '../../../../src/domain/fields/field.ts';
import { fieldRules, uploadLimits } from '../../../../src/domain/fields/index.ts';
import { numberText } from '../../../../src/domain/fields/number-text.ts';
import { labelOf } from '../../../../src/domain/fields/select.ts';
import { isObject, type Json, ownValue } from '../../../../src/domain/json/json.ts';
import { type Problem, problemsOf } from '../../../../src/pages/form/field-words.ts';
import type { Language } from '../../../../src/text/words.ts';
import { createDrafts } from './draft.ts';
import { createService, newKey, ServiceError } from './service.ts';
import type { Answer, FieldState, Form, FormOptions, FormState, PublicForm, Violation } from './types.ts';
import { english, loadWords } from './words.ts';

/**
 * A form without markup: what a page of your own shows, and what it does. Conditions, checks and messages are those of
 * the service, by the same code; patterns are left to the service, which is asked where a field has one.
 */
export function createForm(definition: PublicForm, options: FormOptions = {}): Form {
  const { service: address, source = 'website', fetch = (...call) => globalThis.fetch(...call) } = options;
  const preferred = options.languages ?? globalThis.navigator?.languages ?? [];
  const { id: formId, version, open } = definition;
  const asked = asDefinition(definition);
  const shown = translate(asked, preferred);
  const compiled = compileForm(asked);
  const known = new Map(shown.fields.filter(takesAnswer).map((field) => [field.id, field]));
  const review = shown.settings.review === true;
  const tag = shown.settings.locale ?? preferred[0] ?? 'en';
  const language = options.localNumbers === true ? tag : '';
  const service = address === undefined ? undefined : createService(address, formId, fetch);
  const drafts = createDrafts(formId, options.storage);
  const listeners = new Set<() => void>();

  let words = english;
  let values: Record<string, Answer> = {};
  /** What was typed of them: of `1.` the answer is 1, and typing goes on. */
  let texts: Record<string, string> = {};
  let files: FieldState['files'] = [];
  let dropped: FormState['dropped'] = [];
  let step = 1;
  let key = newKey();
  /** The ids of fields of which problems are shown, and what the service said of them, until they are changed. */
  let told = new Set<string>();
  let refused: readonly Violation[] = [];
  let status: FormState['status'] = 'editing';
  let problem = '';
  let submissionId = '';
  let sending: Promise<boolean> | undefined;
  begin();
  let state = stateNow();

  const ready = loadWords([tag, ...preferred]).then(
    (loaded) => {
      if (loaded === undefined) return;
      words = loaded;
      changed();
    },
    () => {},
  );

  function begin(draft = drafts.read()): void {
    texts = {};
    files = draft?.files ?? [];
    dropped = [];
    values = Object.fromEntries(shown.fields.map(({ id, defaultValue }) => [id, defaultValue]));
    for (const [id, answer] of Object.entries(draft?.values ?? {})) {
      const { label, options = [] } = draft?.fields?.find((field) => field.id === id) ?? {};
      const former = draft?.versionId === version.id ? undefined : options;
      const { left, gone } = divide(id, answer as Json, former);
      if (left !== undefined) values[id] = left;
      const text = gone.map((part) => filesOf(part)[0]?.filename ?? labelOf({ options }, part)).join(', ');
      // What nobody was asked is nobody's answer.
      if (label !== undefined && text !== '') dropped = [...dropped, { id, label, text }];
    }
    // The same answers under the same key are one submission, whatever version they began with.
    key = draft?.key ?? newKey();
    step = draft?.step ?? 1;
    told = new Set();
    refused = [];
    status = 'editing';
    problem = '';
    submissionId = '';
  }

  /** What is left of an answer to a version in which its field had these options, and what of it is gone. */
  function divide(id: string, answer: Json, options: readonly { value: Json }[] | undefined) {
    if (options === undefined || isEmpty(answer)) return { left: answer, gone: [] };
    const field = known.get(id);
    const isList = Array.isArray(answer);
    const parts: [string, Json][] = isList || isObject(answer) ? Object.entries(answer) : [['', answer]];
    const join = (some: typeof parts): Json | undefined => {
      if (isList) return some.map(([, each]) => each);
      return isObject(answer) ? Object.fromEntries(some) : some[0]?.[1];
    };
    const isGone = ([part, each]: [string, Json]) => {
      const isOption = ({ value }: { value: Json }) => value === each;
      if (options.some(isOption) && field?.options?.some(isOption) === false) return true;
      const alone = { [id]: join([[part, each]]) };
      const checked = compiled.checkAnswers(alone, { required: false, byPerson: true });
      const isHere = ({ path, code }: Violation) =>
        (path === `answers.${id}` || `${path}.`.startsWith(`answers.${id}.${isList ? 0 : part}.`)) &&
        (unshowable.test(code) || field?.hidden === true);
      return !checked.ok && checked.violations.some(isHere);
    };
    const gone = parts.filter(isGone);
    const rest = parts.filter((part) => !gone.includes(part));
    return { left: rest[0] && join(rest), gone: gone.map(([, each]) => each) };
  }

  /** What is known of the files of an answer. */
  function filesOf(answer: Answer): FieldState['files'] {
    return files.filter(({ upload_id }) => JSON.stringify(answer)?.includes(upload_id));
  }

  function keep(): void {
    const fields = shown.fields.filter(isShown).map(({ id, label, options }) => ({ id, label, options }));
    drafts.keep({ versionId: version.id, values, step, key, files, fields });
  }

  function changed(): void {
    state = stateNow();
    for (const listener of listeners) listener();
  }

  function visibleNow(): Field[] {
    const visible = visibleIds(shown.fields, counted());
    return shown.fields.filter((field) => visible.has(field.id) && isShown(field));
  }

  function steps(): number[] {
    return stepsOf(visibleNow(), visibleIds(shown.fields, counted()), review);
  }

  /** The answers that decide what is asked: the service fills in the default of a field that is left empty. */
  function counted(): Record<string, Answer> {
    const unanswered = shown.fields.filter((field) => isUnanswered(field, ownValue(values, field.id)));
    return { ...values, ...Object.fromEntries(unanswered.map(({ id, defaultValue }) => [id, defaultValue])) };
  }

  /** The answers that can be sent from here. */
  function answers(): Record<string, Answer> {
    const visible = visibleIds(shown.fields, counted());
    const sent = [...known.values()].filter((field) => visible.has(field.id) && !isHostedOnly(field));
    const given = sent.map(({ id }): [string, Answer] => [id, ownValue(values, id)]);
    return Object.fromEntries(given.filter(([, answer]) => !isEmpty(answer)));
  }

  function ownViolations(): OwnViolation[] {
    const checked = compiled.checkAnswers(answers());
    return checked.ok ? [] : checked.violations;
  }

  function stateNow(): FormState {
    const visible = visibleNow();
    const numbers = steps();
    if (!numbers.includes(step)) step = numbers.findLast((number) => number <= step) ?? numbers[0] ?? 1;
    const isReview = review && step === numbers.at(-1);
    const page = shown.pages?.[step - 1];
    const problems = problemsNow();
    const { submitLabel = '', successMessage = '', redirectUrl = '' } = shown.settings;
    return {
      name: shown.name,
      description: shown.description ?? '',
      title: page?.title ?? '',
      stepDescription: page?.description ?? '',
      language: tag,
      submitLabel,
      fields: visible
        .filter((field) => isReview || field.page === step)
        .map((field) => fieldState(field, problems.get(field.id))),
      values,
      dropped,
      step: numbers.indexOf(step) + 1,
      steps: numbers.length,
      isReview,
      problem,
      hostedOnly: visible.filter((field) => isHostedOnly(field) && field.required).map(({ id }) => id),
      open,
      status,
      submissionId,
      successMessage,
      redirectUrl,
    };
  }

  function fieldState(field: Field, found: Problem | undefined): FieldState {
    const { id } = field;
    return {
      ...field,
      ...(isHostedOnly(field) && { hosted_only: true }),
      value: ownValue(values, id),
      files: filesOf(ownValue(values, id)),
      text: ownValue(texts, id) ?? textOf(ownValue(values, id), language),
      ...(found !== undefined && { error: found.text }),
      ...(found?.part !== undefined && { errorPart: found.part }),
    } as FieldState;
  }

  function problemsNow(): Map<string, Problem> {
    const violations = [...refused, ...ownViolations()].filter(({ path }) => {
      const field = known.get(fieldIdOf(path));
      return field !== undefined && told.has(field.id) && !isHostedOnly(field);
    });
    const posted = new Map(shown.fields.flatMap(({ id }) => postedOf(id, ownValue(values, id))));
    // The code of a violation is one of the documented ones, wherever it comes from.
    return problemsOf(violations as OwnViolation[], shown.fields, posted, { words, tag } as Language)
      .problems;
  }

  /** An answer as the inputs of a page would have it, by their names. */
  function postedOf(id: string, answer: Answer): [string, readonly string[]][] {
    if (isEmpty(answer)) return [];
    const posted: [string, unknown][] = [[id, ownValue(texts, id) ?? answer]];
    if (isObject(answer))
      for (const [part, value] of Object.entries(answer)) posted.push([`${id}.${part}`, value]);
    return posted.map(([name, value]) => [name, [value].flat().map(String)]);
  }

  function set(id: string, answer: Answer, text?: string): boolean {
    const field = known.get(id);
    if (field === undefined) {
      console.warn(`The form has no question ${id}`);
      return false;
    }
    const { [id]: _, ...others } = texts;
    texts = text === undefined ? others : { ...others, [id]: text };
    values = { ...values, [id]: answer === undefined ? answer : foldAnswer(field, answer as Json) };
    refused = refused.filter(({ path }) => fieldIdOf(path) !== id);
    problem = '';
    keep();
    changed();
    return true;
  }

  function tell(ids: Iterable<string>): void {
    told = new Set([...told, ...ids]);
  }

  /** What the service finds beside what is found here, of these fields; nothing if it can't be asked. */
  async function ask(): Promise<readonly Violation[]> {
    if (service === undefined) return [];
    status = 'checking';
    changed();
    try {
      return await service.check(answers());
    } finally {
      status = 'editing';
    }
  }

  function goTo(next: number): void {
    step = next;
    keep();
    changed();
  }

  async function next(): Promise<boolean> {
    const here = visibleNow().filter(({ page }) => page === step);
    const ids = new Set(here.map(({ id }) => id));
    const isHere = ({ path }: { path: string }) =>
      ids.has(fieldIdOf(path)) && !isHostedOnly(known.get(fieldIdOf(path)));
    tell(ids);
    let wrong: readonly Violation[] = ownViolations().filter(isHere);
    const hasPattern = here.some(({ id, pattern }) => pattern && !isEmpty(ownValue(values, id)));
    if (wrong.length === 0 && hasPattern) {
      // A service that can't be reached now is asked again at the end.
      refused = await ask().catch(() => []);
      wrong = refused.filter(isHere);
    }
    const following = stepAfter({ kind: 'forward' }, step, steps());
    const goes = wrong.length === 0 && following !== undefined;
    if (goes) goTo(following);
    else changed();
    return goes;
  }

  async function check() {
    let violations: readonly Violation[] = ownViolations();
    tell(known.keys());
    if (violations.length === 0) {
      try {
        violations = refused = await ask();
      } catch (error) {
        explain(error);
        throw error;
      }
    }
    changed();
    return { ok: violations.length === 0, violations };
  }

  async function send(): Promise<boolean> {
    if (service === undefined) throw new TypeError('createForm needs `service` to submit');
    tell(known.keys());
    const isVisible = ({ path }: { path: string }) => visibleNow().some(({ id }) => id === fieldIdOf(path));
    // What the page can't show is left to the service, whose refusal it can.
    if (ownViolations().some(isVisible)) {
      showFirstProblem();
      return false;
    }
    status = 'submitting';
    problem = '';
    changed();
    try {
      submissionId = await service.submit({ answers: answers(), source, key });
      status = 'submitted';
      drafts.forget();
      changed();
      return true;
    } catch (error) {
      status = 'editing';
      if (!(error instanceof ServiceError)) throw error;
      refused = error.violations;
      if (refused.some(isVisible)) showFirstProblem();
      else explain(error);
      return false;
    }
  }

  function showFirstProblem(): void {
    const problems = problemsNow();
    const first = visibleNow().find(({ id }) => problems.has(id));
    if (first !== undefined) step = first.page;
    changed();
  }

  function explain(error: unknown): void {
    problem = error instanceof Error ? error.message : String(error);
    changed();
  }

  return {
    get state() {
      return state;
    },
    ready,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set: (id, answer) => set(id, answer),
    setText(id, given) {
      const parts: Record<string, string | readonly string[]> = isParts(given) ? given : { '': given };
      const inputs = Object.entries(parts).map(([part, text]): [string, readonly string[]] => [
        part === '' ? id : `${id}.${part}`,
        typeof text === 'string' ? [text] : text,
      ]);
      const fields = shown.fields.filter((field) => field.id === id);
      const read = readNamed({ fields }, new Map(inputs), { language, checksYears: true });
      return set(id, read[id], typeof given === 'string' ? given : undefined);
    },
    next,
    back() {
      goTo(stepAfter({ kind: 'back' }, step, steps()) ?? step);
    },
    async upload(id, file, filename = 'name' in file ? String(file.name) : 'file') {
      if (service === undefined) throw new TypeError('createForm needs `service` to upload');
      const field = known.get(id);
      if (field === undefined) return set(id, null);
      try {
        const misfits = misfitsOf(file, field).map((code) => ({ path: `answers.${id}`, code, message: '' }));
        if (misfits.length > 0) throw new ServiceError(422, { details: misfits });
        const uploaded = await service.upload(id, file, filename);
        const { upload_id } = uploaded;
        files = [...files, uploaded];
        const held = ownValue(values, id);
        const isList = Number(field.maxFiles ?? 1) > 1;
        return set(id, isList ? [...(Array.isArray(held) ? held : []), { upload_id }] : { upload_id });
      } catch (error) {
        const violations = error instanceof ServiceError ? error.violations : [];
        const found = violations.find(({ path }) => fieldIdOf(path) === id);
        if (found === undefined) explain(error);
        else refused = [{ ...found, path: `answers.${id}.file`, received: filename }, ...refused];
        tell([id]);
        changed();
        return false;
      }
    },
    check,
    submit() {
      if (status === 'submitted') return Promise.resolve(true);
      sending ??= send().finally(() => {
        sending = undefined;
      });
      return sending;
    },
    reset() {
      drafts.forget();
      begin();
      changed();
    },
  };
}

function isParts(given: Parameters<Form['setText']>[1]): given is Record<string, string | readonly string[]> {
  return typeof given === 'object' && !Array.isArray(given);
}

function textOf(answer: Answer, language: string): string {
  if (typeof answer === 'number') return numberText(answer, language);
  const isScalar = typeof answer === 'string' || typeof answer === 'boolean';
  return isScalar ? String(answer) : '';
}

/** An answer of another shape, an option or a row that is gone: the page has no control that shows them. */
const unshowable = /^(?:invalid_(?:type|enum_value)|unrecognized_keys)$/;

/** The codes of what is surely wrong with a file. What is in it is judged by the service. */
function misfitsOf({ size, type }: Blob, field: Field): string[] {
  const { accept = [], maxBytes = size } = uploadLimits(field) ?? {};
  const isImage = (each: string) => each.startsWith('image/');
  const mayFit = (each: string) => /^[.*]/.test(each) || isImage(each) === isImage(type);
  if (size === 0 || size > maxBytes) return [size === 0 ? 'too_small' : 'too_big'];
  return type === '' || accept.length === 0 || accept.some(mayFit) ? [] : ['custom'];
}

function isHostedOnly(field: Pick<Field, 'answeredBy'> | undefined): boolean {
  return field?.answeredBy === 'human';
}

/** The service has checked it, so it has the shape of a definition; where answers go is not in it. */
function asDefinition(form: PublicForm): FormDefinition {
  const { id: _id, version: _version, open: _open, ...definition } = form;
  const fields = form.fields.map((field) => {
    // A newer service may have types that are not known here.
    return Object.hasOwn(fieldRules, field.type) ? field : { ...field, type: 'text', answeredBy: 'human' };
  });
  return { ...definition, fields, delivery: { type: 'email' } } as unknown as FormDefinition;
}
