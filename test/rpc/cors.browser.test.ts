import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { type Site, startBrowser, startSite, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';
import { bundleWebClient } from '../support/web-client.ts';

describe.skipIf(noBrowser)('a page of another origin', () => {
  let service: TestService;
  let browser: TestBrowser;
  let site: Site;
  let page: Page;
  let formId: string;

  beforeAll(async () => {
    const script = await bundleWebClient();
    site = await startSite(() => `<!doctype html><title>Site</title><script>${script}</script>`);
    const named = site.origin.replace('127.0.0.1', 'localhost');
    service = await startService({ env: { RPC_ALLOWED_ORIGINS: named } });
    browser = await startBrowser(service);
    page = await browser.open(site.origin);
    formId = (await service.givenPublishedForm()).id;
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
    await site?.[Symbol.asyncDispose]();
  });

  const protocols = ['Connect', 'Connect by GET', 'gRPC-Web'];

  it.each(protocols)('may call by %s what needs no key, and reads answers and failures', async (protocol) => {
    const said = await run(
      page,
      protocol,
      `
      const forms = rpc.createClient(rpc.FormsService, transport);
      const submissions = rpc.createClient(rpc.SubmissionsService, transport);
      const { submissionId } = await submissions.createSubmission({ formId, answers: { email: 'ann@example.com' } });
      const { violations } = await submissions.checkAnswers({ formId, answers: { email: 'ann' } });
      const refused = await submissions.createSubmission({ formId, answers: {} }).catch((error) => error);
      const draft = await forms.createForm({ definition: {
        name: 'A', slug: 'a', fields: [{ id: 'a', type: 1 }], delivery: { channel: { case: 'email', value: {} } },
      } });
      const activation = await forms.getActivation({ formId: draft.form.id, activationToken: draft.activationToken });
      return {
        submissionId,
        violations: violations.length,
        refused: refused.findDetails(rpc.FailureSchema).map(({ reason }) => reason),
        read: activation !== undefined,
      };
    `,
    );

    expect(said).toMatchObject({
      submissionId: expect.stringMatching(/^sub_/),
      violations: 1,
      refused: [Reason.INVALID],
      read: true,
    });
  });

  it.each(protocols)('may not call by %s what needs one, though it has one', async (protocol) => {
    const said = await run(page, protocol, listWithKey);

    expect(said).toMatch(/Failed to fetch/);
  });

  it.each(protocols)('may call by %s what needs a key if RPC_ALLOWED_ORIGINS names it', async (protocol) => {
    await using named = await browser.open(site.origin.replace('127.0.0.1', 'localhost'));

    expect(await run(named, protocol, listWithKey)).toBe(1);
  });

  function run(on: Page, protocol: string, code: string): Promise<unknown> {
    const create = protocol === 'gRPC-Web' ? 'createGrpcWebTransport' : 'createConnectTransport';
    return on.evaluate(`(async () => {
      const [formId, key] = ${JSON.stringify([formId, service.key])};
      const transport = rpc.${create}({
        baseUrl: ${JSON.stringify(service.url)}, useHttpGet: ${protocol === 'Connect by GET'},
      });
      ${code}
    })()`);
  }
});

const listWithKey = `
  const forms = rpc.createClient(rpc.FormsService, transport);
  const headers = { authorization: 'Bearer ' + key };
  return forms.listForms({ pageSize: 1 }, { headers }).then(({ forms }) => forms.length, String);
`;
