import { timestampDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import {
  AnswerChannel,
  type AnswerOrigin,
  ExportFormat,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { sentBody } from '../../../src/domain/events/bodies.ts';
import { oneEngine } from '../../support/database.ts';
import { postsOf } from '../../support/hosted.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'name', type: 'text' },
  { id: 'due', type: 'datetime' },
  { id: 'tags', type: 'multi_select', options: ['a', 'b', 'c'].map((value) => ({ label: value, value })) },
  { id: 'notes', type: 'textarea' },
  { id: 'plan', type: 'text', defaultValue: 'free' },
];

const input = (name: string, ...values: string[]) => ({ name, values });

/** Each field's channel, and whether there is a key. */
function read(provenance: Record<string, AnswerOrigin> = {}) {
  return Object.fromEntries(
    Object.entries(provenance).map(([id, { by, keyId }]) => [
      id,
      [AnswerChannel[by].toLowerCase(), keyId.startsWith('key_')],
    ]),
  );
}

async function submissionOf(services: TestServices, submissionId: string) {
  const { submission } = await services.submissions.getSubmission({ submissionId }, services.owner);
  return submission;
}

/** What the event says of each answer. */
async function announced({ database }: TestServices, submissionId: string) {
  const [row] = await database.select('select body from events where submission_id = $1', [submissionId]);
  const { data } = JSON.parse(sentBody(String(row?.body)));
  return data.provenance;
}

describe.each(oneEngine('postgres'))('the provenance of answers on %s', (engine) => {
  it('is that of the call, of its key, and of the defaults that filled in', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const foreign = await services.givenKey();
    const submit = async (request: object, options = {}) => {
      const made = await services.submissions.createSubmission({ formId, ...request }, options);
      return submissionOf(services, made.submissionId);
    };

    const open = await submit({ answers: { name: 'Jo', plan: '' } });
    const keyed = await submit({ answers: { name: 'Jo', plan: 'pro' } }, services.owner);
    const inputs = [input('name', 'Jo'), input('tags', 'a', 'b')];
    const { submissionId } = await services.hosted.submitPostedForm({ formId, inputs });
    const posted = await submissionOf(services, submissionId);
    const other = await submit(
      { answers: { name: 'Jo' } },
      { headers: { authorization: `Bearer ${foreign}` } },
    );

    expect(read(open?.provenance)).toEqual({
      name: ['api', false],
      plan: ['default', false],
    });
    expect(read(keyed?.provenance)).toEqual({
      name: ['api', true],
      plan: ['api', true],
    });
    expect(read(posted?.provenance)).toMatchObject({
      name: ['api', false],
      tags: ['api', false],
    });
    expect(read(other?.provenance)).toMatchObject({ name: ['api', false] });
    const [row] = await services.database.select('select provenance from submissions where id = $1', [
      keyed?.id,
    ]);
    expect(row?.provenance).toEqual([{ by: 'api', key: expect.stringMatching(/^key_/) }]);
    const at = keyed?.createTime && timestampDate(keyed.createTime).toISOString();
    const origin = { by: 'api', at, keyId: expect.stringMatching(/^key_/) };
    expect(await announced(services, keyed?.id ?? '')).toEqual({ name: origin, plan: origin });
  });

  it('tells what a person left as it was from what they answered, and when', async () => {
    await using services = await startServices(engine);
    const { hosted, sessions, owner } = services;
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const prefill = { name: 'Jo', due: '2026-12-01T10:00:00+02:00', tags: ['c', 'a'], notes: 'one\r\ntwo' };
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill },
      owner,
    );
    const sessionId = session?.id ?? '';
    await sessions.updateSession({ sessionId, prefill: { notes: 'three\r\nfour' } }, owner);

    const unchanged = [input('due', '2026-12-01T08:00'), input('tags', 'a', 'c'), input('plan', 'free')];
    await postsOf(hosted).save({ sessionId, inputs: [input('name', 'Joan'), ...unchanged] });
    const { session: partial } = await sessions.getSession({ sessionId }, owner);
    const inputs = [input('name', 'Joan'), ...unchanged, input('notes', 'three\nfour')];
    const { submissionId } = await postsOf(hosted).submit({ sessionId, inputs });
    const submission = await submissionOf(services, submissionId);

    const expected = {
      name: ['human', false],
      due: ['prefill', true],
      tags: ['prefill', true],
      notes: ['prefill', true],
      plan: ['default', false],
    };
    expect(read(session?.provenance)).toMatchObject({ name: ['prefill', true] });
    expect(read(partial?.provenance)).toEqual(expected);
    expect(read(submission?.provenance)).toEqual(expected);
    expect(submission?.provenance.name?.answerTime).toEqual(partial?.provenance.name?.answerTime);
    expect(await announced(services, submissionId)).toMatchObject({
      name: { by: 'human' },
      due: { by: 'prefill' },
    });
  });

  it('keeps a person’s answers apart from those of a key that submits for them', async () => {
    await using services = await startServices(engine);
    const { hosted, sessions, owner } = services;
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { name: 'Jo' } },
      owner,
    );
    const sessionId = session?.id ?? '';

    await postsOf(hosted).save({ sessionId, inputs: [input('notes', 'Mine'), input('plan', 'pro')] });
    await sessions.updateSession({ sessionId, answers: { tags: ['a'], plan: null } }, owner);
    const { submission } = await sessions.submitSession({ sessionId, answers: { name: 'Jo' } }, owner);

    expect(read(submission?.provenance)).toEqual({
      name: ['api', true],
      tags: ['api', true],
      notes: ['human', false],
    });
  });

  it('is absent where answers are older than the record', async () => {
    await using services = await startServices(engine);
    const { hosted, sessions, owner, database } = services;
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const { submissionId } = await services.submissions.createSubmission({ formId, answers: { name: 'Jo' } });
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { name: 'Jo' } },
      owner,
    );
    const sessionId = session?.id ?? '';
    await sessions.updateSession({ sessionId, answers: { notes: 'Old' } }, owner);
    await database.execute('update submissions set provenance = null', []);
    await database.execute('update sessions set provenance = null', []);

    const old = await submissionOf(services, submissionId);
    const lines: string[] = [];
    const request = { formId, format: ExportFormat.NDJSON };
    for await (const { data } of services.submissions.exportSubmissions(request, owner)) {
      lines.push(new TextDecoder().decode(data));
    }
    const inputs = [input('name', 'Jo'), input('notes', 'Old'), input('plan', 'pro')];
    const made = await postsOf(hosted).submit({ sessionId, inputs });
    const submission = await submissionOf(services, made.submissionId);

    expect(old?.provenance).toEqual({});
    expect(JSON.parse(lines.join(''))).not.toHaveProperty('provenance');
    expect(read(submission?.provenance)).toEqual({
      name: ['prefill', false],
      plan: ['human', false],
    });
  });
});
