import { describe, expect, it } from 'vitest';
import type { DatabaseRequest } from '../../../src/store/embedded/messages.ts';
import { createRequestQueue } from '../../../src/store/embedded/request-queue.ts';

describe('requests to the embedded database', () => {
  it('come in their order, what takes long after the others', () => {
    const { add, takeAll } = givenQueue();

    add('list', { isLate: true });
    add('first');
    add('search', { isLate: true });
    add('second');

    expect(takeAll()).toEqual(['first', 'second', 'list', 'search']);
  });

  it('let others go before what takes long for 50 ms at most, each time', () => {
    const { queue, add, pass } = givenQueue();
    add('list', { isLate: true });
    add('search', { isLate: true });
    const taken = [];

    for (let ms = 0; ms < 110; ms += 1) {
      add('other');
      taken.push(sqlOf(queue.take()));
      pass(1);
    }

    expect([taken.indexOf('list'), taken.indexOf('search')]).toEqual([51, 102]);
    expect(taken.filter((sql) => sql !== 'other')).toHaveLength(2);
  });

  it('wait for an open transaction, but for its own', () => {
    const { queue, add, run } = givenQueue();

    add('begin', { transaction: 7, step: 'begin' });
    run();
    add('beside');
    add('of another', { transaction: 8, step: 'begin' });
    expect(queue.take()).toBeUndefined();
    add('inside', { transaction: 7 });
    expect(run()).toBe('inside');
    expect(queue.take()).toBeUndefined();
    add('commit', { transaction: 7, step: 'end' });

    expect([run(), run(), run()]).toEqual(['commit', 'beside', 'of another']);
    add('beside both');
    expect(queue.take()).toBeUndefined();
  });

  it('wait for no transaction that did not begin, or could not be committed', () => {
    const { add, run } = givenQueue();

    add('begin', { transaction: 1, step: 'begin' });
    add('beside');
    expect([run(false), run()]).toEqual(['begin', 'beside']);
    add('begin', { transaction: 2, step: 'begin' });
    run();
    add('beside');
    add('commit', { transaction: 2, step: 'end' });

    expect([run(false), run()]).toEqual(['commit', 'beside']);
  });

  it('are all answered before the database is closed', () => {
    const { queue, add, takeAll } = givenQueue();

    queue.add({ id: 0, what: 'close' });
    add('list', { isLate: true });
    add('other');

    expect(takeAll()).toEqual(['other', 'list', 'close']);
  });
});

function givenQueue() {
  let now = 1_000;
  const queue = createRequestQueue(() => now);
  const add = (sql: string, more = {}) => queue.add({ id: 1, what: 'statement', sql, ...more });
  const run = (succeeded = true) => {
    const request = queue.take();
    if (request !== undefined) queue.end(request, succeeded);
    return sqlOf(request);
  };
  const takeAll = () =>
    Array.from({ length: 10 }, () => sqlOf(queue.take())).filter((sql) => sql !== undefined);
  const pass = (ms: number) => {
    now += ms;
  };
  return { queue, add, run, takeAll, pass };
}

function sqlOf(request: DatabaseRequest | undefined): string | undefined {
  return request?.what === 'statement' ? request.sql : request?.what;
}
