import PostalMime from 'postal-mime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { type FieldCase, fieldCases, refusedFields } from '../../support/field-cases.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe('every type of field', () => {
  let service: TestService;
  let form: { id: string };
  const fields = fieldCases.map(({ name, field }, index) => ({ id: idOf(index), label: name, ...field }));

  beforeAll(async () => {
    service = await startService();
    form = await service.givenPublishedForm({ fields });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());

  // First, since only so many mails a day go to an address that has not confirmed.
  it('comes from an HTML form into the submission, the export and the mail', async () => {
    const sent = fieldCases.filter(({ words }) => words !== undefined);
    const body = new URLSearchParams();
    for (const [name, values] of fieldCases.flatMap(inputsOf)) {
      for (const value of values) body.append(name, value);
    }
    const accepted = await service.post(`/api/forms/${form.id}/submissions`, body, {
      headers: { accept: 'application/json' },
    });
    expect([accepted.status, accepted.text]).toEqual([201, accepted.text]);
    const { submission_id: id } = accepted.json;

    const { submission } = (await service.get(`/v1/submissions/${id}`)).json;
    const csv = (await service.get(`/v1/forms/${form.id}/submissions/export?format=csv`)).text;
    const cells = recordOf(csv, id);
    const columns = (csv.split('\r\n')[0] ?? '').split(',');
    await until(async () => (await mailOf(id)) !== undefined);
    const mail = await mailOf(id);

    expect(columns.slice(5, -2)).toEqual(
      fieldCases.flatMap(({ field }, index) =>
        'type' in field && field.type === 'statement' ? [] : [idOf(index)],
      ),
    );
    for (const { name, read, words = '', cell } of sent) {
      const fieldId = idOf(fieldCases.findIndex((each) => each.name === name));
      expect([name, submission.answers[fieldId]]).toEqual([name, read]);
      expect([name, cells[columns.indexOf(fieldId)]]).toEqual([name, cell]);
      expect(mail).toContain(`${name}:\n${words}`);
    }
  });

  it('is refused at its place by REST, whatever it lacks', async () => {
    for (const [field, ...problems] of refusedFields) {
      const refused = await service.post('/api/forms/create', {
        name: 'Form',
        slug: 'form',
        fields: [{ id: 'it', ...field }],
        delivery: { type: 'email' },
      });

      expect([field, refused.status, placesIn(refused.json)]).toEqual([
        field,
        422,
        problems.map((problem) => `fields.0.${problem}`),
      ]);
    }
  });

  it('takes and refuses the same answers by REST and by RPC', async () => {
    const client = service.client(SubmissionsService);
    for (const [index, { good, bad }] of fieldCases.entries()) {
      for (const answer of good) {
        const answers = { [idOf(index)]: answer };
        const { status, json } = await service.post(`/api/forms/${form.id}/submissions`, { answers });
        const { submissionId } = await client.createSubmission({ formId: form.id, answers });
        const stored = await client.getSubmission({ submissionId });

        expect([answer, status]).toEqual([answer, 201]);
        expect(stored.submission?.answers).toEqual(answers);
        expect((await service.get(`/v1/submissions/${json.submission_id}`)).json.submission.answers).toEqual(
          answers,
        );
      }
      for (const [answer, ...problems] of bad) {
        const places = problems.map((problem) => `answers.${problem.replace('it', idOf(index))}`);
        const answers = { [idOf(index)]: answer };
        const refused = await service.post(`/api/forms/${form.id}/submissions`, { answers });

        expect([answer, refused.status, placesIn(refused.json)]).toEqual([answer, 422, places]);
        await expect(client.createSubmission({ formId: form.id, answers })).rejects.toThrow(
          `answers.${idOf(index)}`,
        );
      }
    }
  });

  async function mailOf(id: string): Promise<string | undefined> {
    const mail = (await service.mails()).find((each) => each.includes(id));
    return mail && (await PostalMime.parse(mail)).text;
  }
});

/** The cases whose answers can be read have inputs that can be sent together. */
function inputsOf({ words, inputs }: FieldCase, index: number): [name: string, values: string[]][] {
  if (words === undefined) return [];
  return Object.entries(inputs).map(([name, values]) => [name.replace(/^it/, idOf(index)), values]);
}

/** The cells of a submission's record; no value here has a quote or a comma. */
function recordOf(csv: string, id: string): string[] {
  return (csv.split('\r\n').find((line) => line.startsWith(id)) ?? '').split(',');
}

function idOf(index: number): string {
  return `case${index}`;
}

function placesIn(json: { error?: { details: { path: string; code: string }[] } }): string[] {
  return json.error?.details.map(({ path, code }) => `${path} ${code}`) ?? [];
}
