import type { Field } from '../definition/field.ts';
import { isId } from '../ids.ts';
import { isObject, type Json } from '../json.ts';
import { required, unrecognized, type Violation } from '../violations.ts';
import { type AnswerCheck, wrongType } from './answer-check.ts';

/**
 * `{upload_id}`, or a list of them where the field takes several files.
 *
 * Whether the uploads exist and fit the field is for whoever resolves them.
 */
export function fileCheck(field: Field): AnswerCheck {
  const { maxFiles = 1 } = field;
  return (answer, path, violations) => {
    if (maxFiles === 1) {
      checkUpload(answer, path, violations);
      return;
    }
    if (!Array.isArray(answer)) {
      violations.push(wrongType(path, 'array', answer));
      return;
    }
    if (answer.length > maxFiles) {
      violations.push({ path, code: 'too_big', message: `Must be at most ${maxFiles} files` });
      return;
    }
    for (const [index, upload] of answer.entries()) checkUpload(upload, `${path}.${index}`, violations);
  };
}

function checkUpload(upload: Json, path: string, violations: Violation[]): void {
  if (!isObject(upload)) {
    violations.push(wrongType(path, 'object', upload));
    return;
  }
  const { upload_id: id, ...others } = upload;
  if (id === undefined) violations.push(required(`${path}.upload_id`));
  else if (typeof id !== 'string') violations.push(wrongType(`${path}.upload_id`, 'string', id));
  else if (!isId('upl', id)) {
    violations.push({
      path: `${path}.upload_id`,
      code: 'invalid_string',
      message: 'Must be the id of an upload',
    });
  }
  for (const key of Object.keys(others)) violations.push(unrecognized(`${path}.${key}`, key));
}
