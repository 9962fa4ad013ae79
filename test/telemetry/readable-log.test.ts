import { pino } from 'pino';
import { expect, it } from 'vitest';
import { readableLog } from '../../src/telemetry/readable-log.ts';

const hostile = 'Ada\u001b[31m\u009b2J\b\r\nFORGED\u2028\u202e\u{e0041}';
const shown = String.raw`Ada\u001b[31m\u009b2J\u0008\u000d\u000aFORGED\u2028\u202e\udb40\udc41`;

it('text of strangers in a log that people read neither moves the cursor nor makes a line', () => {
  let text = '';
  const log = pino(
    { base: null },
    readableLog((more) => (text += more), false),
  );

  log.warn({ name: hostile, inner: { list: [hostile] } }, hostile);
  log.error({ err: new Error(hostile) }, 'Failed');
  log.info({ method: 'GET', route: hostile, status: 500, requestId: hostile }, 'request');
  log.info({ action: 'form.published', resource: hostile, actor: hostile }, 'audit');

  expect(text.match(/[^\n\P{C}]|[\u2028\u2029]/gu)).toBeNull();
  expect(text.split('\n').filter((line) => line.startsWith('FORGED'))).toEqual([]);
  expect(text.split(shown).length).toBeGreaterThan(7);
  // The places of a stack keep their lines.
  expect(text).toMatch(/^ +at /m);
});
