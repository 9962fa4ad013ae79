import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { CreateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { ofFields } from '../../domain/definition/definition-path.ts';
import { definitionFromMessage } from '../../domain/definition/definition-proto.ts';
import { definitionFromSchema, schemaPathOf } from '../../domain/definition/from-json-schema.ts';
import { checkQuestions } from '../../domain/definition/questions.ts';
import { failed, invalid } from '../../domain/errors/failure.ts';
import { pathOf, type Violation } from '../../domain/errors/violations.ts';
import { newId } from '../../domain/ids.ts';
import { jsonProblems } from '../../domain/json/json-problems.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { callerOf } from '../../rpc/context.ts';
import { findQuestionForm, insertQuestionForm } from '../../store/forms/questions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm, sessionsForm } from '../forms/form-access.ts';
import { newForm, newVersion } from '../forms/form-rows.ts';

/**
 * What a session asks: a published form, or questions of its own, which are those of a hidden form. The same questions
 * find the same one in their project; else it is made.
 *
 * Throws INVALID with every problem, and MISSING_KEY for questions without a key where none is required.
 */
export async function askedForm(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
): Promise<PublishedForm> {
  const { projectId } = callerOf(call);
  const { case: subject, value } = request.subject;
  if (subject === 'formId') return publishedForm(context.forms, value, projectId);
  const keyId = requireKey(call);
  const definition = readQuestions(request, context.settings.allowPrivateWebhooks);
  const checksum = fingerprint(definition);
  const { database, forms, now } = context;
  for (;;) {
    const known = await findQuestionForm(database, projectId, checksum);
    if (known !== undefined) return sessionsForm(forms, known);
    const made = newQuestionForm(definition, { projectId, checksum, keyId, at: new Date(now()) });
    if (!(await insertQuestionForm(database, made))) continue;
    context.audit.note(call, { action: 'form.created', formId: made.form.id });
    return sessionsForm(forms, made.form.id);
  }
}

/** The form that asks the questions of a request, if there is one by now. */
export async function knownQuestionForm(
  { database, settings }: ServiceContext,
  request: CreateSessionRequest,
  projectId: string,
): Promise<string | undefined> {
  const definition = readQuestions(request, settings.allowPrivateWebhooks);
  return findQuestionForm(database, projectId, fingerprint(definition));
}

/** Where keys are not required, strangers may open sessions of forms, and show or ask nothing of their own. */
export function requireKey(call: HandlerContext): string {
  const { keyId } = callerOf(call);
  if (keyId !== undefined) return keyId;
  throw failed(
    Reason.MISSING_KEY,
    'A session with a context, a callback, notifications, a respondent, a source or questions of its own needs an API key',
  );
}

function readQuestions(
  { subject, retentionDays }: CreateSessionRequest,
  allowPrivateUrls: boolean,
): FormDefinition {
  const options = { allowPrivateUrls, ...(retentionDays !== 0 && { retentionDays }) };
  switch (subject.case) {
    case 'definition': {
      const checked = checkQuestions(definitionFromMessage(subject.value), options);
      if (checked.ok) return checked.definition;
      throw refused(checked.violations, ofFields);
    }
    case 'schema': {
      const unsafe = jsonProblems(subject.value, 'schema');
      if (unsafe.length > 0) throw invalid(unsafe);
      const read = definitionFromSchema(subject.value);
      if (!read.ok)
        throw refused(
          read.violations,
          atPath((path) => pathOf('schema', path)),
        );
      const checked = checkQuestions(read.definition, options);
      if (checked.ok) return checked.definition;
      throw refused(
        checked.violations,
        atPath((path) => pathOf('schema', schemaPathOf(path, read.definition))),
      );
    }
    case 'formId':
    case undefined:
      throw invalid([{ path: '', code: 'invalid_type', message: 'Expected form_id, definition or schema' }]);
    default:
      return subject satisfies never;
  }
}

const RETENTION = 'settings.retentionDays';

function refused(violations: readonly Violation[], inRequest: (violation: Violation) => Violation) {
  return invalid(
    violations.map((one) => (one.path === RETENTION ? { ...one, path: 'retention_days' } : inRequest(one))),
  );
}

function atPath(pathFrom: (path: string) => string) {
  return (violation: Violation) => ({ ...violation, path: pathFrom(violation.path) });
}

/** Published from the beginning, with one version and without an owner. */
function newQuestionForm(definition: FormDefinition, made: Made) {
  const { projectId, checksum, keyId, at } = made;
  const retentionDays = definition.settings.retentionDays ?? 0;
  const version = newVersion(definition, at);
  const id = newId('form', at.getTime());
  const draft = newForm(definition, { id, projectId, createdBy: keyId }, at);
  return {
    version,
    form: {
      ...draft,
      status: 'published' as const,
      draftDefinition: null,
      currentVersionId: version.id,
      retentionDays,
      activatedAt: at,
      questionChecksum: checksum,
      questionDueAt: new Date(at.getTime() + retentionDays * DAY_MS),
    },
  };
}

type Made = { projectId: string; checksum: string; keyId: string; at: Date };
