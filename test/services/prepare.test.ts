import { createClient } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { engines, openTestDatabase } from '../support/database.ts';
import { servicesOn } from '../support/services.ts';

describe.each(engines)('preparing an installation on %s', (engine) => {
  it('makes one key and one demo form, however many instances start at once', async () => {
    await using database = await openTestDatabase(engine);

    const [one, two] = await Promise.all([servicesOn(database), servicesOn(database)]);

    const demo = createClient(SubmissionsService, two.as());
    await demo.createDemoSubmission({ answers: { email: 'a@example.com', message: 'Hello' } });
    expect(await database.select('select 1 from api_keys')).toHaveLength(1);
    expect(await database.select('select id, status from forms')).toEqual([
      { id: 'form_demo', status: 'published' },
    ]);
    expect(await database.select('select 1 from form_versions')).toHaveLength(1);
    await Promise.all([one.close(), two.close()]);
  });
});
