import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type Answers, type CompiledForm, compileForm } from '../../domain/answers/answers.ts';
import { visibleIds } from '../../domain/answers/steps.ts';
import { shownFields } from '../../domain/conditions/shown-fields.ts';
import { violationCodes, violationsOf } from '../../domain/errors/violations.ts';
import { type Field, takesAnswer } from '../../domain/fields/field.ts';
import { RefusedError } from '../terminal.ts';
import { formFilesIn, loadForm, parseFile } from './files.ts';

/** The names of files with cases; what stands before names the form's file. */
const fileName = /^(.+)\.test\.(json|yaml|yml)$/;

const ONE_RESULT = 'Expected either accepted, or what is refused';

/** Answers, by whom they are given, and what is expected: how they are judged, and what is asked in which step. */
const testCase = z
  .strictObject({
    name: z.string(),
    answers: z.record(z.string(), z.json()),
    by: z.enum(['person', 'api']).default('person'),
    accepted: z.literal(true).exactOptional(),
    refused: z.record(z.string(), z.enum(violationCodes)).exactOptional(),
    asks: z.record(z.string(), z.array(z.string())).exactOptional(),
  })
  .refine(({ accepted, refused }) => (accepted ?? refused) && !(accepted && refused), ONE_RESULT);

/**
 * Checks the cases of a folder against the forms beside them, without the service. Returns the exit code: 1 if the
 * result of a case is not as expected.
 *
 * Throws a `RefusedError` that names each problem of a file by its line.
 */
export async function testForms(folder: string, print: (line: string) => void): Promise<number> {
  const names = await formFilesIn(folder, fileName);
  if (names.length === 0) throw new RefusedError(`${folder}: No files named *.test.json or *.test.yaml`);
  const forms = await formFilesIn(folder);
  const results: boolean[] = [];
  for (const name of names) {
    const path = join(folder, name);
    const [, stem] = fileName.exec(name) ?? [];
    const beside = forms.find((each) => each.startsWith(`${stem}.form.`));
    if (beside === undefined)
      throw new RefusedError(`${path}: There is no ${stem}.form.json or .yaml beside it`);
    const { input, problemAt } = await parseFile(path);
    const cases = z.array(testCase).safeParse(input);
    if (!cases.success) throw new RefusedError(violationsOf(cases.error, input).map(problemAt));
    const form = compileForm((await loadForm(join(folder, beside))).checked);
    for (const [index, each] of cases.data.entries()) {
      const failures = failuresOf(form, each, index);
      failures.map(problemAt).forEach(print);
      results.push(failures.length === 0);
    }
  }
  print(`${results.filter(Boolean).length} of ${results.length} cases are as expected.`);
  return results.every(Boolean) ? 0 : 1;
}

/** Each expectation of a case that is not met, at its path. */
function failuresOf(form: CompiledForm, { name, answers, by, ...expected }: TestCase, index: number) {
  const checked = form.checkAnswers(answers, { byPerson: by === 'person' });
  const violations = checked.ok ? [] : checked.violations;
  const problems = Object.fromEntries(violations.map(({ path, code }) => [path, code]));
  const questions = questionsByStep(form.definition.fields, answers);
  const { accepted, refused = {}, asks = questions } = expected;
  return [
    { at: accepted ? 'accepted' : 'refused', what: 'problems', actual: problems, wanted: refused },
    { at: 'asks', what: 'questions', actual: questions, wanted: asks },
  ].flatMap(({ at, what, actual, wanted }) => {
    if (isDeepStrictEqual(actual, wanted)) return [];
    const message = `${name}: the ${what} are ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`;
    return [{ path: `${index}.${at}`, message }];
  });
}

/** The ids of the questions that a person is asked in each step, by its page, if these are their answers. */
function questionsByStep(fields: readonly Field[], answers: Answers): Record<string, string[]> {
  const defaults = fields.map(({ id, defaultValue = null }) => [id, defaultValue]);
  const held = { ...Object.fromEntries(defaults), ...answers };
  const shown = shownFields(fields, held);
  const visible = visibleIds(shown, held);
  const questions = shown.filter((field) => visible.has(field.id) && takesAnswer(field));
  const byPage = [...Map.groupBy(questions, ({ page }) => page)];
  return Object.fromEntries(byPage.map(([page, asked]) => [page, asked.map(({ id }) => id)]));
}

type TestCase = z.output<typeof testCase>;
