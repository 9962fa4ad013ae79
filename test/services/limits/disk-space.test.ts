import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { Health } from '../../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.js';
import { createAdmission } from '../../../src/rpc/admission.ts';
import { refuseWhileLow, watchDiskSpace } from '../../../src/services/limits/disk-space.ts';
import { isDiskFull } from '../../../src/store/database/faults.ts';
import { engines } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { startService } from '../../support/server.ts';
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

describe('A full disk', () => {
  it.each([
    OwnersService.method.deleteOwnedSubmission,
    OwnersService.method.closeOwnedForm,
    OwnersService.method.removeFormRecipient,
    OwnersService.method.signOut,
    ServerReflection.method.serverReflectionInfo,
    Health.method.watch,
  ])('does not keep anybody from $name, which stores nothing', async (method) => {
    const admit = createAdmission([refuseWhileLow({ isLow: () => true }, 'pglite')]);

    await admit(method, {}, {});
    await expectFailure(admit(OwnersService.method.offerOwnedForm, {}, {}), Reason.UNAVAILABLE);
  });

  it('makes the service unready, and says so', async () => {
    await using service = await startService({ env: { MIN_FREE_DISK_MIB: '100000000' } });

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
