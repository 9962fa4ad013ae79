import { createClient } from '@connectrpc/connect';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { refuseWhileLow, watchDiskSpace } from '../../../src/services/limits/disk-space.ts';
import { isDiskFull } from '../../../src/store/database/faults.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { runOn } from '../../support/postgres.ts';
import { startService, type TestService } from '../../support/server.ts';
import { startServices } from '../../support/services.ts';

const answers = { email: 'ada@example.com' };

describe.each(engines)('A disk that is almost full on %s', (engine) => {
  it('takes no files, and on the embedded database nothing else that is new; it reads and removes', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf([
      { id: 'email', type: 'email' },
      { id: 'cv', type: 'file' },
    ]);
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });
    const content = Buffer.from('content');
    const upload = () =>
      services.uploads.createUpload({ target: { case: 'formId', value: formId }, fieldId: 'cv', content });
    const submit = () => services.submissions.createSubmission({ formId, answers });

    services.setDiskLow(true);
    const refused = await expectFailure(upload(), Reason.UNAVAILABLE);
    if (engine === 'pglite') await expectFailure(submit(), Reason.UNAVAILABLE);
    else await submit();
    await services.submissions.getSubmission({ submissionId }, services.owner);
    await services.submissions.deleteSubmission({ submissionId }, services.owner);
    services.setDiskLow(false);
    await upload();
    await submit();

    expect(refused.header.get('retry-after')).toBe('60');
  });
});

describe.each(engines)('A database that stores nothing on %s', (engine) => {
  afterEach(() => vi.useRealTimers());

  it.each([
    ['its disk is full', fullDisk],
    ['it is read-only', readOnly],
  ])('makes the service unready while %s, until it stores again', async (_why, begin) => {
    await using database = await openTestDatabase(engine);
    await using service = await startService({ database });
    const form = await service.givenPublishedForm();
    const submit = () => service.post(`/api/forms/${form.id}/submissions`, { answers });
    const seen = async () => [(await service.get('/ready')).status, await healthOf(service)];

    const before = await seen();
    await using fault = await begin(database);
    const refused = await submit();
    const unready = await seen();
    await fault.end();
    const stored = await submit();

    expect(before).toEqual([200, Status.SERVING]);
    expect([refused.status, unready]).toEqual([503, [503, Status.NOT_SERVING]]);
    expect([stored.status, await seen()]).toEqual([201, [200, Status.SERVING]]);
  });

  it('is ready again ten seconds after the last failure, and not because something was claimed or removed', async () => {
    await using database = await openTestDatabase(engine);
    await database.execute("insert into installation (name, value) values ('a', 'a')");
    await using _ = await fullDisk(database);
    vi.useFakeTimers({ toFake: ['performance'] });

    const failed = await database.execute(INSERT).catch((error: unknown) => isDiskFull(error));
    await database.execute("delete from installation where name = 'a' returning name");
    vi.advanceTimersByTime(9_999);
    const before = await database.isReady();
    vi.advanceTimersByTime(1);

    expect([failed, before, await database.isReady()]).toEqual([true, false, true]);
  });
});

describe('A full disk', () => {
  it.each([
    OwnersService.method.deleteOwnedSubmission,
    OwnersService.method.closeOwnedForm,
    OwnersService.method.removeFormRecipient,
    OwnersService.method.signOut,
    ServerReflection.method.serverReflectionInfo,
    Health.method.watch,
  ])('does not keep anybody from $name, which stores nothing', async (method) => {
    const refuse = refuseWhileLow({ isLow: () => true }, 'pglite');

    refuse(method);
    const refused = async () => refuse(OwnersService.method.offerOwnedForm);
    await expectFailure(refused(), Reason.UNAVAILABLE);
  });

  it('makes the service unready, and says so', async () => {
    await using service = await startService({ floorBytes: Number.POSITIVE_INFINITY });

    const ready = await service.get('/ready');
    const created = await service.post('/api/forms/create', { name: 'A' }, { key: null });
    const health = await service.get('/health');
    const forms = await service.get('/v1/forms');

    expect([ready.status, ready.json.error.message]).toEqual([
      503,
      'The disk is almost full: nothing new is stored',
    ]);
    expect([created.status, created.json.error.reason, created.headers.get('retry-after')]).toEqual([
      503,
      'unavailable',
      '60',
    ]);
    expect([health.status, forms.status]).toEqual([200, 200]);
  });

  it('is known by its errors, of files and of PostgreSQL', () => {
    const withCode = (code: string) => Object.assign(new Error(code), { code });

    expect(['ENOSPC', 'EDQUOT', '53100'].map((code) => isDiskFull(withCode(code)))).toEqual([
      true,
      true,
      true,
    ]);
    expect(isDiskFull(new Error('wrapped', { cause: withCode('53100') }))).toBe(true);
    expect(isDiskFull(withCode('ENOENT'))).toBe(false);
  });

  it('is looked at again and again, and counts as having room where it can’t be seen', async () => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    using full = await watchDiskSpace({ folder: '.', floorBytes: Number.POSITIVE_INFINITY, log });
    using roomy = await watchDiskSpace({ folder: '.', floorBytes: 0, log });
    using unseen = await watchDiskSpace({ folder: './none', floorBytes: Number.POSITIVE_INFINITY, log });

    expect([full.isLow(), roomy.isLow(), unseen.isLow()]).toEqual([true, false, false]);
  });
});

/** Makes every statement that inserts fail as it does on a full disk. */
async function fullDisk(database: TestDatabase): Promise<Fault> {
  await database.execute(
    `create function fail_for_space() returns trigger language plpgsql as $$
       begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`,
  );
  await database.execute(
    `do $$ declare name text; begin
       for name in select table_name from information_schema.tables where table_schema = 'public' loop
         execute format('create trigger full_disk before insert on %I execute function fail_for_space()', name);
       end loop; end $$`,
  );
  return faultUntil(async () => {
    await database.execute('drop function if exists fail_for_space() cascade');
  });
}

/** Makes the database read-only, on a server as an administrator does. */
async function readOnly(database: TestDatabase): Promise<Fault> {
  const { databaseUrl } = database;
  const set = async (value: 'on' | 'off') => {
    const statement = `set default_transaction_read_only = ${value}`;
    if (databaseUrl === undefined) return void (await database.select(statement));
    const own = 'pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
    const name = new URL(databaseUrl).pathname.slice(1);
    await runOn(databaseUrl, `begin read write; alter database ${name} ${statement}; commit`);
    await runOn(databaseUrl, `select pg_terminate_backend(pid) from ${own}`);
  };
  await set('on');
  return faultUntil(() => set('off'));
}

function faultUntil(end: () => Promise<void>): Fault {
  return { end, [Symbol.asyncDispose]: end };
}

/** May be ended twice. */
type Fault = AsyncDisposable & { end: () => Promise<void> };

async function healthOf(service: TestService): Promise<Status> {
  const { status } = await createClient(Health, service.transport('grpc')).check({});
  return status;
}

/** Inserts nothing, which fails all the same where inserting does. */
const INSERT = 'insert into submissions select * from submissions';
