import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { engines } from '../../support/database.ts';
import { definitionMessage } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

describe.each(engines)('versions of a form on %s', (engine) => {
  let services: TestServices;

  beforeAll(async () => {
    services = await startServices(engine);
  });
  afterAll(() => services[Symbol.asyncDispose]());

  const forms = (key?: string) => createClient(FormsService, services.as(key));

  /** A form with one version for each name, of which the last is current. */
  async function givenVersions(...names: string[]) {
    const [first = 'First', ...others] = names;
    const { id } = await services.givenForm(services.key, { name: first });
    for (const name of others) {
      services.clock.ms += 1;
      const definition = definitionMessage({ name });
      await forms(services.key).publishFormVersion({ formId: id, definition });
    }
    return id;
  }

  it('are listed in pages, newest first, without definitions, the current one marked', async () => {
    const formId = await givenVersions('One', 'Two', 'Three');

    const first = await forms(services.key).listFormVersions({ formId, pageSize: 2 });
    const rest = await forms(services.key).listFormVersions({ formId, pageToken: first.nextPageToken });

    expect(first.versions.map(({ number, current }) => [number, current])).toEqual([
      [3, true],
      [2, false],
    ]);
    expect(rest.versions.map(({ number }) => number)).toEqual([1]);
    expect(rest.nextPageToken).toBe('');
    expect(first.versions[0]?.definition).toBeUndefined();
    expect(first.versions[0]?.checksum).toMatch(/^[0-9a-f]{64}$/);
  });

  it('mark an old version that was published again', async () => {
    const formId = await givenVersions('One', 'Two', 'One');

    const { versions } = await forms(services.key).listFormVersions({ formId });

    expect(versions.map(({ number, current }) => [number, current])).toEqual([
      [2, false],
      [1, true],
    ]);
  });

  it('are read by number, with what they ask', async () => {
    const formId = await givenVersions('One', 'Two');

    const { version } = await forms(services.key).getFormVersion({ formId, number: 1 });

    expect(version).toMatchObject({ number: 1, current: false, definition: { name: 'One' } });
    expect(version?.id).toMatch(/^ver_/);
    for (const number of [0, -1, 3]) {
      expect(await failureOf(forms(services.key).getFormVersion({ formId, number }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
    }
  });

  it('are shown to keys of the project that may read forms, and to nobody else', async () => {
    const formId = await givenVersions('One');
    const stranger = await services.givenKey();
    const writer = await services.givenKey({ scopes: ['forms:write'], project: 'default' });
    const reasons = (key?: string) =>
      Promise.all(
        [forms(key).listFormVersions({ formId }), forms(key).getFormVersion({ formId, number: 1 })].map(
          async (call) => (await failureOf(call)).reason,
        ),
      );

    expect(await reasons()).toEqual(['MISSING_KEY', 'MISSING_KEY']);
    expect(await reasons(stranger)).toEqual(['NOT_FOUND', 'NOT_FOUND']);
    expect(await reasons(writer)).toEqual(['INSUFFICIENT_SCOPE', 'INSUFFICIENT_SCOPE']);
  });

  it('refuse a page token and a size that make no sense', async () => {
    const formId = await givenVersions('One');
    const list = (page: object) => failureOf(forms(services.key).listFormVersions({ formId, ...page }));

    expect(await list({ pageToken: 'x' })).toMatchObject({ violations: [['page_token', 'invalid_string']] });
    expect(await list({ pageSize: -1 })).toMatchObject({ violations: [['page_size', 'too_small']] });
  });
});
