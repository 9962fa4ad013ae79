import { afterEach, describe, expect, it, vi } from 'vitest';
import { createAdmin } from '../../src/services/admin/admin.ts';
import type { Database } from '../../src/store/database/database.ts';
import { engines } from '../support/database.ts';
import { startServices } from '../support/services.ts';

describe.each(engines)('erasing a project on %s', (engine) => {
  afterEach(() => void vi.restoreAllMocks());

  it('says each second how far it is, and goes on from the form at which it was', async () => {
    await using services = await startServices(engine);
    const key = await services.givenKey({ project: 'shop' });
    const { id: formId } = await services.givenForm(key);
    await services.database.execute(
      `insert into forms select (jsonb_populate_record(f, jsonb_build_object('id', f.id || n))).*
       from forms f, generate_series(1, 30) n where f.id = $1`,
      [formId],
    );
    const erasedForms: string[] = [];
    let ms = performance.now();
    vi.spyOn(performance, 'now').mockImplementation(() => ms);
    const slow: Database = {
      ...services.database,
      execute: (...statement) => {
        ms += 20;
        const form = statement[1]?.map(String).find((value) => value.startsWith(formId));
        if (form !== undefined && form !== erasedForms.at(-1)) erasedForms.push(form);
        return services.database.execute(...statement);
      },
    };
    const admin = createAdmin({
      database: slow,
      auditWriter: services.auditWriter,
      user: 'tester',
      schedule: [0],
      now: Date.now,
      onChange: () => undefined,
    });
    const took: number[] = [];

    let begin = ms;
    for await (const _ of admin.eraseProject({ project: 'shop' })) {
      took.push(ms - begin);
      begin = ms;
    }

    expect(took.length).toBeGreaterThan(3);
    // The last form begins within the second, and has some ten statements.
    expect(Math.max(...took)).toBeLessThan(2_000);
    expect(erasedForms.length).toBeGreaterThan(30);
    expect(erasedForms).toEqual([...new Set(erasedForms)].sort());
    expect(await services.database.select("select from form_versions where form_id <> 'form_demo'")).toEqual(
      [],
    );
  });
});
