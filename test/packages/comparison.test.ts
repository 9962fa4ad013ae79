import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HostedGoal, HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inputTexts, readInputs } from '../../src/domain/answers/answer-texts.ts';
import { REVIEW_STEP } from '../../src/domain/answers/steps.ts';
import type { Field } from '../../src/domain/fields/field.ts';
import { createRandom } from '../days/world/random.ts';
import type { Random } from '../days/world/types.ts';
import { randomAnswers, randomFields } from '../domain/contracts/random-forms.ts';
import { givenDefinition } from '../domain/given.ts';
import { startService, type TestService } from '../support/server.ts';
import { type InstalledPackage, installPackage } from './installed.ts';

/** Set TEST_PACKAGE_FORMS for more, as `.ci/run all` does. */
const FORMS = Number(process.env.TEST_PACKAGE_FORMS ?? 25);
const ANSWERS_A_FORM = 20;

const opened = new AsyncDisposableStack();
let installed: InstalledPackage;
let service: TestService;
let library: typeof import('../../packages/client/src/form.ts');

beforeAll(async () => {
  installed = opened.use(await installPackage());
  service = opened.use(await startService());
  library = await import(
    pathToFileURL(join(installed.folder, 'node_modules', installed.name, 'dist/form.js')).href
  );
});
afterAll(() => opened.disposeAsync());

/** Sets answers as a page does, and asks for the verdict. */
async function verdictOf(definition: PublicForm, answers: Record<string, unknown>) {
  const form = library.createForm(definition, { service: service.url, storage: null, languages: ['en'] });
  // A field that only an agent's answer would bring up is not in what anybody may read.
  const known = new Set(definition.fields.map((field) => field.id));
  for (const [id, answer] of Object.entries(answers)) if (known.has(id)) form.set(id, answer);
  return form.check();
}

it('createForm, with the service behind it, refuses what the service refuses, and the hosted page what both do', async () => {
  const hosted = service.client(HostedService, 'connect', null);
  const seen = { ok: 0, refused: 0, page: 0 };
  for (let seed = 0; seed < FORMS; seed += 1) {
    const random = createRandom(`own pages ${seed}`);
    const fields = randomFields(random).map((field) => vary(random, field as Field));
    const { id } = await service.givenPublishedForm({ fields });
    const { form: definition } = (await service.get(`/api/forms/${id}`, { key: null })).json;
    const whole = givenDefinition({ fields });
    const isForPages = whole.fields.every(({ answeredBy }) => answeredBy === 'anyone');
    const asked = whole.fields.filter(
      ({ answeredBy, type }) => answeredBy === 'anyone' && type !== 'statement',
    );

    for (let n = 0; n < ANSWERS_A_FORM; n += 1) {
      // A number that is not exact is refused wherever it stands; a form sends nothing for fields that are not asked.
      const given = Object.entries(randomAnswers(random, asked));
      const isExact = (answer: unknown) => typeof answer !== 'number' || Math.abs(answer) < 2 ** 53;
      const answers = Object.fromEntries(given.filter(([, answer]) => isExact(answer)));
      const about = JSON.stringify({ seed, fields, answers });
      const reply = await post(`/api/forms/${id}/submissions?check=true`, { answers });

      const { ok, violations } = await verdictOf(definition, answers);

      expect(reply.status, about).toBe(ok ? 200 : 422);
      const refused = new Set<string>(reply.details.map(({ path, code }) => `${path} ${code}`));
      expect(
        violations.every(({ path, code }) => refused.has(`${path} ${code}`)),
        about,
      ).toBe(true);
      if (ok) seen.ok += 1;
      else seen.refused += 1;

      // Every fifth by the page itself: texts of inputs, without what people do not see there.
      if (n % 5 > 0 || !isForPages) continue;
      const typed = asked.filter(({ hidden, defaultValue }) => !hidden && defaultValue === undefined);
      const inputs = typed.flatMap((field) =>
        inputTexts(field, Object.hasOwn(answers, field.id) ? answers[field.id] : '', '').map(
          ([name, values]) => ({
            name,
            values: [...values],
          }),
        ),
      );
      const read = readInputs({ fields: typed }, inputs);
      const shown = whole.fields.map((field) => field.id);
      const posted = await hosted.postHosted({
        formId: id,
        inputs,
        shown,
        page: REVIEW_STEP,
        goal: HostedGoal.FORWARD,
      });
      const own = await verdictOf(definition, read);
      expect(
        [own.ok, own.violations.length > 0],
        `${about} ${JSON.stringify({ read, own, posted })}`,
      ).toEqual([posted.submissionId !== '', posted.submissionId === '']);
      seen.page += 1;
    }
  }
  expect(seen.ok + seen.refused).toBe(FORMS * ANSWERS_A_FORM);
  expect(Math.min(seen.ok, seen.refused)).toBeGreaterThan((FORMS * ANSWERS_A_FORM) / 10);
  expect(seen.page).toBeGreaterThan(1.5 * FORMS);
}, 600_000);

it('createForm takes a required text of spaces alone for no answer, and shows nothing that depends on one', async () => {
  const fields = [
    { id: 'name', type: 'text', required: true },
    { id: 'more', type: 'text', visibleWhen: { field: 'name', op: 'notEmpty' } },
  ];
  const { id } = await service.givenPublishedForm({ fields });
  const { form: definition } = (await service.get(`/api/forms/${id}`, { key: null })).json;
  const form = library.createForm(definition, { service: service.url, storage: null, languages: ['en'] });
  const shown = (name: string) => {
    form.set('name', name);
    return form.state.fields.map((field) => field.id);
  };

  expect([shown('  '), shown('Ada')]).toEqual([['name'], ['name', 'more']]);
});

/** Adds what a form's own page leaves to the service, and what it does not see. */
function vary(random: Random, field: Field): object {
  const isText = field.type === 'text' || field.type === 'textarea';
  const isPlain = !field.required && !['statement', 'hidden'].includes(field.type);
  return {
    ...field,
    ...(isText &&
      random.chance(0.5) &&
      field.defaultValue === undefined && { pattern: random.pick(['[a-z.]+', 'x|(?i)AB']) }),
    ...(random.chance(0.3) && { page: random.whole(1, 3) }),
    ...(isPlain && random.chance(0.1) && { answeredBy: random.pick(['human', 'agent']) }),
  };
}

async function post(
  path: string,
  body: object,
): Promise<{ status: number; details: { path: string; code: string }[] }> {
  const reply = await service.post(path, body, { key: null });
  return { status: reply.status, details: reply.json.error?.details ?? [] };
}

type PublicForm = Parameters<typeof library.createForm>[0];
