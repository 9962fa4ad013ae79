import type { DescMethod } from '@bufbuild/protobuf';
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { definitionSchema } from '../domain/definition/definition.ts';
import { pageSizes } from '../domain/limits/limits.ts';
import { present } from '../http/shape.ts';
import { failureOf } from './errors.ts';
import { NOTICE, type RequestContext } from './tool.ts';
import { form as formShape, isByStranger, questionsOf } from './tools/forms.ts';
import { answers } from './tools/schemas.ts';

const forms = FormsService.method;
const { getSubmission } = SubmissionsService.method;

/** Registers the resources that the caller may read. */
export function registerResources(server: McpServer, exchange: RequestContext): void {
  const { call, mayCall } = exchange;

  server.registerResource(
    'form-definition',
    'schema://form-definition',
    {
      title: 'Form definition',
      description: 'JSON Schema of a form definition, with all that its fields and settings may have.',
      mimeType: 'application/schema+json',
    },
    ({ href }) => jsonAt(href, definitionJsonSchema(), 'application/schema+json'),
  );
  if (mayAll(forms.getForm, forms.getAgentSchema, forms.listForms)) {
    server.registerResource(
      'form',
      new ResourceTemplate('form://{id}', { list: listForms }),
      { title: 'Form', description: 'What a form asks, as get_form tells it.', mimeType: JSON_TYPE },
      ({ href }, { id }) => read(href, () => readForm(String(id))),
    );
  }
  if (mayAll(getSubmission)) {
    server.registerResource(
      'submission',
      new ResourceTemplate('submission://{id}', { list: undefined }),
      { title: 'Submission', description: 'The answers of a submission.', mimeType: JSON_TYPE },
      ({ href }, { id }) => read(href, () => readSubmission(String(id))),
    );
  }

  function mayAll(...rpcs: DescMethod[]): boolean {
    return rpcs.every(mayCall);
  }

  async function listForms() {
    const { forms: listed } = await call(forms.listForms, { pageSize: pageSizes.max });
    return {
      resources: listed.map((form) => ({
        uri: `form://${form.id}`,
        name: form.id,
        title: form.name,
        mimeType: JSON_TYPE,
        ...(isByStranger(form) && { description: `The title is untrusted. ${NOTICE}` }),
      })),
    };
  }

  async function readForm(id: string) {
    const form = present((await call(forms.getForm, { formId: id })).form);
    const questions = await questionsOf(id, call);
    const untrusted = isByStranger(form) && {
      untrusted: ['form.name', ...Object.keys(questions)],
      notice: NOTICE,
    };
    return { form: formShape.of(form), ...questions, ...untrusted };
  }

  async function readSubmission(id: string) {
    const { submission } = await call(getSubmission, { submissionId: id });
    return { ...answers.of(submission), untrusted: ['answers'], notice: NOTICE };
  }

  async function read(uri: string, content: () => Promise<object>) {
    try {
      return jsonAt(uri, await content(), JSON_TYPE);
    } catch (error) {
      const failure = failureOf(error, { exchange, tool: 'resources/read', input: {} });
      if (failure.reason === 'not_found') throw new ResourceNotFoundError(uri);
      throw new ProtocolError(ProtocolErrorCode.InternalError, failure.message, failure);
    }
  }
}

const JSON_TYPE = 'application/json';

function jsonAt(uri: string, content: object, mimeType: string) {
  return { contents: [{ uri, mimeType, text: JSON.stringify(content) }] };
}

function definitionJsonSchema(): object {
  return z.toJSONSchema(definitionSchema, { io: 'input', unrepresentable: 'any' });
}
