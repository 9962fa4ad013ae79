import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { failureOf } from '../support/failures.ts';
import { startService, type TestService } from '../support/server.ts';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  const fields = [
    { id: 'n', type: 'number' },
    { id: 'h', type: 'hidden' },
  ];
  formId = (await service.givenPublishedForm({ fields })).id;
});
afterAll(() => service[Symbol.asyncDispose]());

const json = { headers: { 'content-type': 'application/json' } };
const long = '9007199254740993';

const requests: [string, string, string, string][] = [];
for (const number of [long, `-${long}`, '1000000000000000000001']) {
  for (const field of ['n', 'h']) {
    const answers = `{"answers":{"${field}":${number}}}`;
    requests.push(['POST', '/api/forms/:form/submissions', answers, `answers.${field}`]);
    requests.push([
      'POST',
      '/v1/forms/:form/sessions',
      `{"prefill":{"${field}":${number}}}`,
      `prefill.${field}`,
    ]);
  }
  requests.push(['POST', '/v1/forms/:form/sessions', `{"metadata":{"a":[${number}]}}`, 'metadata.a.0']);
}

it.each(requests)('%s %s refuses %s at %s', async (method, path, body, place) => {
  const reply = await service.call(method, path.replace(':form', formId), body, json);

  expect(reply.status).toBe(422);
  expect(reply.json.error.details).toMatchObject([
    { path: place, code: 'invalid_type', message: expect.any(String) },
  ]);
});

it.each([long, '1000000000000000000001'])('Connect refuses %s, and keys that come twice', async (number) => {
  const url = `${service.url}/headlessforms.v1.SubmissionsService/CreateSubmission`;
  const call = async (body: string) => {
    const reply = await fetch(url, { method: 'POST', body, ...json });
    return [reply.status, await reply.text()];
  };
  const refused = await call(`{"formId":"${formId}","answers":{"n":${number}}}`);
  const twice = await call(`{"formId":"${formId}","answers":{"n":1,"n":2}}`);

  expect(refused).toEqual([400, expect.stringContaining('answers.n')]);
  expect(twice).toEqual([400, expect.stringContaining('Given twice')]);
});

it('gRPC refuses whole doubles beyond those that are exact, and takes larger ones', async () => {
  const { createSubmission } = createClient(
    SubmissionsService,
    createGrpcTransport({ baseUrl: service.grpcUrl }),
  );

  const refused = await failureOf(createSubmission({ formId, answers: { n: 2 ** 53, h: -(2 ** 60) } }));

  expect(refused.violations.map(([path]) => path)).toEqual(['answers.n', 'answers.h']);
  expect(await createSubmission({ formId, answers: { n: 1e300, h: 2 ** 53 - 1 } })).toMatchObject({
    submissionId: expect.stringMatching(/^sub_/),
  });
});
