import { describe, expect, it } from 'vitest';
import { describeReceived, withReceived } from '../../../src/domain/errors/violations.ts';

describe('what came, as the sender is told it', () => {
  it.each<[string, unknown, string]>([
    ['answers.name', 'Ada', '"Ada"'],
    ['answers.name', 'a "b"\n', '"a \\"b\\"\\n"'],
    ['answers.name', '\ud800', '"\ufffd"'],
    ['answers.age', 7.5, '7.5'],
    ['answers.age', null, 'null'],
    ['answers.agreed', false, 'false'],
    ['answers.tags', [1, 'secret'], 'array of 2'],
    ['answers.place', { secret: 'x' }, 'object'],
    ['answers.name', undefined, ''],
    ['answers.note', 'x'.repeat(5_000), `"${'x'.repeat(60)}…" (string of 5000 characters)`],
    ['', 'text', 'string'],
  ])('is its JSON, or the type where that is long: %s %j', (path, value, told) => {
    expect(describeReceived(path, value)).toBe(told);
  });

  it.each<[string, string]>([
    ['secret', 'whatever'],
    ['delivery.secret', 'whatever'],
    ['definition.delivery.webhook.secret', 'whatever'],
    ['answers.Password', 'whatever'],
    ['tokens[3]', 'whatever'],
    ['answers.api-key.0', 'whatever'],
    ['answers.note', 'Use hfs_0123 please'],
    ['session', 'sess_0123'],
    ['url', 'https://user:password@example.com/'],
    ['url', `https://user:${'p'.repeat(100)}@example.com/`],
  ])('is the type alone where it may be a secret: %s %s', (path, value) => {
    expect(describeReceived(path, value)).toBe('string');
  });

  it('is told in no time, however long and strange the path and the text are', () => {
    const before = process.threadCpuUsage();
    for (const text of ['.1'.repeat(125_000), `a${'+'.repeat(250_000)}`, `a:${'/'.repeat(250_000)}`]) {
      for (let count = 0; count < 100; count += 1) describeReceived(text.slice(0, 500), text);
    }
    expect(process.threadCpuUsage(before).user).toBeLessThan(500_000);
  });

  it('is found at dotted paths, own properties only', () => {
    const input = { a: [{ b: 1 }], 'x.y': 2 };
    const at = (path: string) => withReceived([{ path }], input)[0];

    expect(at('a.0.b')).toEqual({ path: 'a.0.b', received: '1' });
    expect(at('a.1.b')).toEqual({ path: 'a.1.b' });
    expect(at('x.y')).toEqual({ path: 'x.y' });
    expect(at('constructor.name')).toEqual({ path: 'constructor.name' });
    expect(withReceived([{ path: 'a', received: '7' }], input)).toEqual([{ path: 'a', received: '7' }]);
  });
});
