import { createFileRegistry, fromBinary, fromJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AnswersSchemaFormat, FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { definitionToMessage } from '../../../src/domain/definition/definition-proto.ts';
import { givenDefinition } from '../../domain/given.ts';
import { oneEngine } from '../../support/database.ts';
import { startService, type TestService } from '../../support/server.ts';

describe.each(oneEngine('postgres'))('schemas of answers on %s', (engine) => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const text = (...ids: string[]) => ids.map((id) => ({ id, type: 'text' }));
  const definitionOf = (fields: object[]) => ({
    name: 'Contact',
    slug: 'contact',
    fields,
    delivery: { type: 'email' },
  });

  async function givenVersions(first: object[], ...others: object[][]) {
    const { id } = await service.givenPublishedForm({ name: 'Contact', fields: first });
    for (const fields of others) await service.post(`/v1/forms/${id}/versions`, definitionOf(fields));
    return id;
  }

  const schema = (formId: string, version: number | string, format = 'proto') =>
    service.get(`/v1/forms/${formId}/versions/${version}/schema?format=${format}`);

  it('keep the number of a field over all versions, and never give it to another', async () => {
    const id = await givenVersions(text('a', 'b'), text('b', 'c'), [
      ...text('a'),
      { id: 'b', type: 'number' },
    ]);

    const [first, second, third] = await Promise.all([1, 2, 3].map((version) => schema(id, version)));

    expect(first?.text).toMatch(/version 1\..*a = 1;.*b = 2;/s);
    expect(second?.text).toMatch(/version 2\..*reserved 1;.*b = 2;.*c = 3;/s);
    expect(third?.text).toMatch(/version 3\..*reserved 1 to 3;.*string a = 4;.*double b = 5;/s);
    expect(third?.text).toContain(`package headlessforms.generated.${id};`);
    const current = await schema(id, 'current');
    expect(current.text).toBe(third?.text);
  });

  it('number fields after all others, when an old version was published again', async () => {
    const id = await givenVersions(text('a', 'b'), text('a', 'c'), text('a', 'b'), text('a', 'b', 'd'));

    expect((await schema(id, 'current')).text).toMatch(/reserved 3;.*a = 1;.*b = 2;.*d = 4;/s);
  });

  it('number what an older release published beside this one as its migration would have', async () => {
    const id = await givenVersions(text('a'), text('b'), text('b', 'c'));
    const before = (await schema(id, 3)).text;
    await service.database.execute(
      'update form_versions set contract = null where form_id = $1 and number > 1',
      [id],
    );

    expect((await schema(id, 3)).text).toBe(before);
    await service.post(`/v1/forms/${id}/versions`, definitionOf(text('d', 'c')));
    expect((await schema(id, 4)).text).toMatch(/reserved 1 to 2;.*d = 4;.*c = 3;/s);
  });

  it('come in every format, each with its media type and the same by RPC', async () => {
    const id = await givenVersions(text('a'));
    const transport = createConnectTransport({ baseUrl: service.url, httpVersion: '1.1' });
    const { getAnswersSchema } = createClient(FormsService, transport);
    const headers = { authorization: `Bearer ${service.key}` };
    const formats = {
      proto: [AnswersSchemaFormat.PROTO, 'text/x-protobuf; charset=utf-8'],
      descriptor_set: [AnswersSchemaFormat.DESCRIPTOR_SET, 'application/x-protobuf'],
      json_schema: [AnswersSchemaFormat.JSON_SCHEMA, 'application/schema+json'],
      typescript: [AnswersSchemaFormat.TYPESCRIPT, 'text/plain; charset=utf-8'],
    } as const;

    for (const [name, [format, mediaType]] of Object.entries(formats)) {
      const reply = await schema(id, 1, name);
      const { content, ...facts } = await getAnswersSchema({ formId: id, format }, { headers });

      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toBe(mediaType);
      expect(reply.text).toBe(Buffer.from(content).toString());
      expect(facts).toMatchObject({ mediaType, version: 1, provisional: false });
      expect(facts.checksum).toMatch(/^[0-9a-f]{64}$/);
      expect(facts.formVersionId).toMatch(/^ver_/);
    }
  });

  it('describe a draft, and say that its numbers are provisional', async () => {
    const made = await service.post('/api/forms/create', definitionOf(text('a')));
    const { id } = made.json.form;

    const draft = await schema(id, 'current');

    expect(draft.text).toContain('The numbers are provisional until it is published.');
    expect((await schema(id, 1)).status).toBe(404);
  });

  it('are those of publication before a definition is published, but for the mark', async () => {
    const histories = [
      [
        text('a', 'b'),
        text('b', 'c'),
        [...text('a'), { id: 'b', type: 'number' }, { id: 'from', type: 'text' }],
      ],
      // What was published before gets its former version back.
      [text('a', 'b'), text('b', 'c'), text('a', 'b')],
      [text('a'), text('a')],
    ];
    for (const fields of histories) {
      const [first = [], ...rest] = fields.slice(0, -1);
      const next = definitionOf(fields.at(-1) ?? []);
      for (const format of ['proto', 'typescript', 'json_schema', 'json-schema', 'descriptor_set']) {
        const id = await givenVersions(first, ...rest);
        const before = await service.post(`/v1/forms/validate?against=${id}&format=${format}`, next);
        await service.post(`/v1/forms/${id}/versions`, next);
        const after = await schema(id, 'current', format);

        const header = ['content-type', 'content-disposition'] as const;
        expect(header.map((name) => before.headers.get(name))).toEqual(
          header.map((name) => after.headers.get(name)),
        );
        expect(unmarked(before.text)).toBe(unmarked(after.text));
        if (format !== 'descriptor_set') {
          expect(before.text).toMatch(/provisional/);
          expect(after.text).not.toMatch(/provisional/);
        }
      }
    }
  });

  it('of a new form are named by its key, which publication keeps, and else by its slug', async () => {
    const definition = definitionOf(text('a'));
    const validate = (query: string, options = {}) =>
      service.post(`/v1/forms/validate?${query}`, definition, options);

    const bySlug = await validate('format=proto');
    const byKey = await validate('format=proto&key=con.tact');
    await service.post('/api/forms/create', { ...definition, key: 'con.tact' });
    const ofDraft = await service.get('/v1/forms/by-key/con.tact/versions/current/schema?format=proto');
    await service.put('/v1/forms/by-key/con.tact', { ...definition, owner: 'owner@example.com' });
    const published = await service.get('/v1/forms/by-key/con.tact/versions/current/schema?format=proto');

    expect(bySlug.text).toContain('package headlessforms.generated.contact;');
    expect(bySlug.text).toContain('// Answers to the form "Contact", by a definition that is not published.');
    expect(unmarked(byKey.text)).toBe(unmarked(published.text));
    expect(unmarked(ofDraft.text)).toBe(unmarked(published.text));
    expect(published.text).toContain('package headlessforms.generated.con_tact;');
    expect(published.headers.get('content-disposition')).toBe('inline; filename="contact_answers.proto"');
    const wrong = await validate('format=xml&key=A');
    expect([wrong.status, wrong.json.error.details.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ['format'],
    ]);
    expect((await validate('key=A')).json.error.details[0]).toMatchObject({ path: 'key' });
    expect((await validate('')).json).toMatchObject({ ok: true, form: { name: 'Contact' } });
  });

  it('of a definition that is not published come with its changes by RPC', async () => {
    const id = await givenVersions(text('a'));
    const transport = createConnectTransport({ baseUrl: service.url, httpVersion: '1.1' });
    const forms = createClient(FormsService, transport);
    const headers = { authorization: `Bearer ${service.key}` };
    const definition = definitionToMessage(givenDefinition({ fields: text('a', 'from') }));

    const asked = { definition, againstFormId: id, schemaFormat: AnswersSchemaFormat.PROTO };
    const { schema: made, changes } = await forms.validateForm(asked, { headers });
    const { schema: none } = await forms.validateForm({ definition }, { headers });
    // @ts-expect-error No format.
    const unknown = forms.validateForm({ definition, schemaFormat: 99 }, { headers });

    expect(Buffer.from(made?.content ?? '').toString()).toContain(
      'optional string from_2 = 2 [json_name = "from"];',
    );
    expect(made).toMatchObject({
      mediaType: 'text/x-protobuf; charset=utf-8',
      path: `headlessforms/generated/${id}/contact_answers.proto`,
    });
    expect(changes.map(({ path }) => path)).toEqual(['fields.from']);
    expect(none).toBeUndefined();
    await expect(unknown).rejects.toThrow(/schema_format/);
  });

  it('are found by the key of the form, in the project of the caller', async () => {
    const { json } = await service.put('/v1/forms/by-key/survey', {
      ...definitionOf(text('a')),
      owner: 'owner@example.com',
    });
    const path = (key: string) => `/v1/forms/by-key/${key}/versions/current/schema`;
    const other = await service.givenKey(['submissions:read']);

    const found = await service.get(path('survey'));

    expect(found.status).toBe(200);
    expect(found.text).toBe((await schema(json.form.id, 'current', 'json_schema')).text);
    const etag = found.headers.get('etag') ?? '';
    expect((await service.get(path('survey'), { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await service.get(path('nobody'))).status).toBe(404);
    expect((await service.get(path('survey'), { key: '' })).status).toBe(401);
    expect((await service.get(path('survey'), { key: other })).json.error.reason).toBe('insufficient_scope');
  });

  it('read what is stored, and what they write is taken', async () => {
    const fields = [
      { id: 'seats', type: 'number', step: 1, min: 0, max: 1000 },
      { id: 'first-name', type: 'text' },
    ];
    const id = await givenVersions(fields);
    const { json } = await service.post(`/api/forms/${id}/submissions`, {
      answers: { seats: 254, 'first-name': 'Ada' },
    });
    const read = await service.get(`/v1/submissions/${json.submission_id}`);
    const set = await fetch(`${service.url}/v1/forms/${id}/versions/1/schema?format=descriptor_set`, {
      headers: { authorization: `Bearer ${service.key}` },
    });
    const registry = createFileRegistry(
      fromBinary(FileDescriptorSetSchema, new Uint8Array(await set.arrayBuffer())),
    );
    const message = registry.getMessage(`headlessforms.generated.${id}.ContactAnswers`);
    if (message === undefined) throw new Error('There is no message');

    expect(fromJson(message, read.json.submission.answers)).toMatchObject({ seats: 254, firstName: 'Ada' });
  });

  it('refuse what is not there, and whoever may not read forms', async () => {
    const id = await givenVersions(text('a'));
    const other = await service.givenKey(['submissions:read']);
    const path = `/v1/forms/${id}/versions/1/schema?format=proto`;

    expect((await schema(id, 2)).status).toBe(404);
    expect((await schema(id, 'x')).status).toBe(404);
    expect((await schema('form_01k', 1)).status).toBe(404);
    const wrong = await schema(id, 1, 'xml');
    expect([wrong.status, wrong.json.error.details[0].path]).toEqual([400, 'format']);
    const usual = await service.get(`/v1/forms/${id}/versions/1/schema`);
    expect(JSON.parse(usual.text)).toMatchObject({ title: 'ContactAnswers' });
    expect((await service.get(path, { key: '' })).status).toBe(401);
    expect((await service.get(path, { key: other })).json.error.reason).toBe('insufficient_scope');
  });

  it('for agents are those of the version that is asked for', async () => {
    const id = await givenVersions(text('a'), text('b'));

    const old = await service.get(`/v1/forms/${id}/agent-schema?version=1`);
    const brief = await service.get(`/v1/forms/${id}/agent-schema?version=1&brief=true`);
    const current = await service.get(`/v1/forms/${id}/agent-schema`);

    expect(Object.keys(old.json.json_schema.properties)).toEqual(['a']);
    expect(brief.json.questions).toEqual(['a']);
    expect(Object.keys(current.json.json_schema.properties)).toEqual(['b']);
    expect(old.json.form.version_id).not.toBe(current.json.form.version_id);
    expect((await service.get(`/v1/forms/${id}/agent-schema?version=3`)).status).toBe(404);
    expect((await service.get(`/v1/forms/${id}/agent-schema?version=0`)).status).toBe(400);
  });
});

/** What is generated without what says which version it is of, or that it is of none. */
function unmarked(text: string): string {
  return text
    .replace(/^\/\/ .*\n\/\/ .*\n/, '')
    .replace(/^ {2}"x-(provisional|form-version|checksum)": .*\n/gm, '');
}
