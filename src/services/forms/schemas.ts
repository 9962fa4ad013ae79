import type { ServiceImpl } from '@connectrpc/connect';
import {
  AnswersSchemaFormat,
  AnswersSchemaFormatSchema,
  type FormsService,
} from '../../../gen/headlessforms/v1/forms_pb.js';
import { answersSchema } from '../../domain/answers/json-schema.ts';
import type { VersionToDescribe } from '../../domain/contracts/answers-file.ts';
import { firstContract } from '../../domain/contracts/contract.ts';
import { generateSchema, type SchemaFormatName } from '../../domain/contracts/generate.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { translate } from '../../domain/definition/translate.ts';
import { enumName } from '../../domain/enums.ts';
import { notFound } from '../../domain/errors/failure.ts';
import { longestAnswer } from '../../domain/fields/index.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Queries } from '../../store/database/database.ts';
import { type Form, findFormByKey } from '../../store/forms/forms.ts';
import { contractOf, findVersion, findVersionByNumber, type Version } from '../../store/forms/versions.ts';
import type { ServiceContext } from '../context.ts';
import { unknownValue } from '../request-values.ts';
import { projectForm } from './form-access.ts';
import { readFormKey } from './form-keys.ts';
import { agentSchemaToMessage, formToMessage, formToStranger } from './form-proto.ts';

/** The RPCs that describe what a version asks. */
export function schemaMethods({ database }: Pick<ServiceContext, 'database'>) {
  return {
    async getAgentSchema({ formId, includeDefinition, language, version: number }, call) {
      const caller = callerOf(call);
      const form = await projectForm(database, caller, formId);
      const version = await versionAsked(database, form, number);
      const definition = translate(version?.definition ?? draftOf(form), preferredLanguages(language));
      const versionId = version?.id ?? '';
      if (!includeDefinition) return { schema: agentSchemaToMessage({ formId, versionId, definition }) };
      const { name, slug } = definition;
      const named = { ...form, name, slug, currentVersionId: versionId };
      const message =
        caller.keyId === undefined
          ? formToStranger(named, withLengths(definition))
          : formToMessage(named, withLengths(definition), caller);
      return { form: message, jsonSchema: answersSchema(definition) };
    },

    async getAnswersSchema(request, call) {
      const { formId, format, version: number } = request;
      const caller = callerOf(call);
      const { key } = readFormKey({ key: request.key }, { keyless: false });
      const named = key && (await findFormByKey(database, caller.projectId, key));
      if (key !== null && named === null) throw notFound('form');
      const form = named || (await projectForm(database, caller, formId));
      const version = await versionAsked(database, form, number);
      const contract =
        version === null
          ? firstContract(form.key ?? form.id, draftOf(form))
          : await contractOf(database, version);
      const asked = version ?? { definition: draftOf(form) };
      const described = { ...asked, version: version?.number, formId: form.id, contract };
      return {
        ...generateSchema(formatNamed(format, 'format'), described),
        version: version?.number ?? 0,
        formVersionId: version?.id ?? '',
        checksum: version?.checksum ?? '',
        provisional: version === null,
      };
    },
  } satisfies Partial<ServiceImpl<typeof FormsService>>;
}

/** The definition with the lengths that answers can have: an email address is shorter than its field's `maxLength`. */
function withLengths(definition: FormDefinition): FormDefinition {
  const fields = definition.fields.map((field) => {
    const maxLength = field.maxLength === undefined ? undefined : longestAnswer(field);
    return maxLength === undefined ? field : { ...field, maxLength };
  });
  return { ...definition, fields };
}

/** The version with a number, or for 0 the current one, which a draft has not: null. Throws NOT_FOUND. */
async function versionAsked(db: Queries, form: Form, number: number): Promise<Version | null> {
  if (number === 0) return form.currentVersionId === null ? null : findVersion(db, form.currentVersionId);
  const version = await findVersionByNumber(db, form.id, number);
  if (version === null) throw notFound('version');
  return version;
}

/** What is generated of a definition that is not published; undefined if the request asks for nothing. */
export function provisionalSchema(format: AnswersSchemaFormat, version: VersionToDescribe) {
  if (format === AnswersSchemaFormat.UNSPECIFIED) return undefined;
  return generateSchema(formatNamed(format, 'schema_format'), version);
}

function formatNamed(format: AnswersSchemaFormat, path: string): SchemaFormatName {
  const name = enumName(AnswersSchemaFormat, format);
  if (name === undefined) throw unknownValue(path, AnswersSchemaFormatSchema);
  return name;
}

function draftOf({ id, draftDefinition }: Form) {
  if (draftDefinition === null) throw new TypeError(`The form ${id} has no definition`);
  return draftDefinition;
}
