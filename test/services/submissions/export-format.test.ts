import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { csvFormat, ndjsonFormat } from '../../../src/services/submissions/export.ts';
import type { ShownSubmission } from '../../../src/store/submissions/submissions.ts';

const row = (answers: ShownSubmission['answers']): ShownSubmission => ({
  id: 'sub_1',
  formId: 'form_1',
  versionId: 'ver_1',
  sessionId: null,
  source: 'api',
  answers,
  status: 'accepted',
  createdAt: new Date('2026-11-21T10:00:00.000Z'),
  metadata: {},
  provenance: null,
  respondent: null,
  replaces: null,
  replacedBy: null,
});

const upload = newId('upl', 0);
const linkOf = (uploadId: string) => `https://x/files/${uploadId}`;

const head = 'sub_1,2026-11-21T10:00:00.000Z,accepted,api,,';

describe('csvFormat', () => {
  it('has a column for each field, in the order given', () => {
    const format = csvFormat(asked('b', 'a', 'old'), linkOf);

    expect(format.head).toBe('\uFEFFid,created_at,status,source,session_id,b,a,old,_version,_metadata\r\n');
    expect(format.lines([row({ a: '1', old: '2' })])).toBe(`${head},1,2,7,\r\n`);
  });

  it.each([
    ['=1+1', "'=1+1"],
    ['  =1+1', "'  =1+1"],
    ['\u00A0=1+1', "'\u00A0=1+1"],
    ['\uFF1D1+1', "'\uFF1D1+1"],
    ['\uFF0B1', "'\uFF0B1"],
    ['\uFF0D1', "'\uFF0D1"],
    ['\uFF20sum', "'\uFF20sum"],
    ['\uFE661+1', "'\uFE661+1"],
    ['\u22121', "'\u22121"],
    ['\u200B=1+1', "'\u200B=1+1"],
    ['\uFEFF \u2060\u200D=1+1', "'\uFEFF \u2060\u200D=1+1"],
    ['\u3164\u00AD\u202E\uFF1D1', "'\u3164\u00AD\u202E\uFF1D1"],
    ['\u0001=1', "'\u0001=1"],
    ['\u200Ba', '\u200Ba'],
    ['+49 30', "'+49 30"],
    ['-1', "'-1"],
    ['@sum', "'@sum"],
    ['\tx', "'\tx"],
    ['\rx', '"\'\rx"'],
    ['\t=1', "'\t=1"],
    ['See you ;-)', 'See you ;-)'],
    ['a;=1\t \u200B-2', 'a;=1\t \u200B-2'],
    ['a;b=1', 'a;b=1'],
    ['a=1', 'a=1'],
    ['', ''],
    [-5, '-5'],
    [true, 'true'],
    [['a', 'b|c'], 'a|b|c'],
    [['=a'], "'=a"],
    ['a\nb', '"a\nb"'],
    ['a,"b"', '"a,""b"""'],
    [null, ''],
    [{ upload_id: upload, url: `https://x/v1/uploads/${upload}` }, `https://x/files/${upload}`],
    [[{ upload_id: upload }, { upload_id: upload }], `https://x/files/${upload}|https://x/files/${upload}`],
    [{ upload_id: 'a row of a matrix' }, 'upload_id=a row of a matrix'],
  ])('writes %j as %j', (answer, cell) => {
    const format = csvFormat(asked('a'), linkOf);

    expect(format.lines([row({ a: answer })])).toBe(`${head}${cell},7,\r\n`);
  });

  it('guards a source too', () => {
    const line = csvFormat(asked(), linkOf).lines([{ ...row({}), source: '=cmd' }]);

    expect(line).toBe("sub_1,2026-11-21T10:00:00.000Z,accepted,'=cmd,,7,\r\n");
  });

  it('heads a field like a column of the service by its label, with its id in brackets', () => {
    const { head: heads } = csvFormat(asked('status', 'name', 'id'), linkOf);

    expect(heads).toBe(
      '\uFEFFid,created_at,status,source,session_id,About status (status),name,About id (id),_version,_metadata\r\n',
    );
  });

  it('ends with the version and the metadata', () => {
    const format = csvFormat(asked('a'), linkOf);
    const given = { ...row({ a: '1' }), metadata: { order: 5, note: '=1' } };

    expect(format.lines([given, { ...row({}), versionId: 'ver_2' }])).toBe(
      `${head}1,7,"{""order"":5,""note"":""=1""}"\r\n${head},,\r\n`,
    );
  });

  it('is not confused by fields named like properties of every object', () => {
    const format = csvFormat(asked('constructor', 'toString'), linkOf);

    expect(format.lines([row({})])).toBe(`${head},,7,\r\n`);
  });
});

describe('ndjsonFormat', () => {
  it('writes the REST submission, one a line', () => {
    const lines = ndjsonFormat(asked())
      .lines([row({ a: 'x\ny' }), row({})])
      .split('\n');

    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      id: 'sub_1',
      form_id: 'form_1',
      form_version_id: 'ver_1',
      session_id: null,
      source: 'api',
      answers: { a: 'x\ny' },
      status: 'accepted',
      created_at: '2026-11-21T10:00:00.000Z',
      metadata: {},
      respondent: null,
      version: 7,
    });
  });
});

/** Fields of text with these ids, in the seventh version. */
function asked(...ids: string[]) {
  const versions = new Set(['ver_1']);
  const fields = ids.map((id) => ({ id, type: 'text', label: `About ${id}`, mark: '', versions }));
  return { fields, numbers: new Map([['ver_1', 7]]) };
}
