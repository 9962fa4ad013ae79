import { expect } from 'vitest';
import type { CallOptions, TestService } from './server.ts';

/** A caller without a key. */
export const anyone: CallOptions = { key: null };

/** An instant as every reply has it: ISO 8601 in UTC with milliseconds. */
export const anIsoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** An id of one kind. */
export function id(prefix: string) {
  return expect.stringMatching(new RegExp(`^${prefix}_[0-9a-zA-Z]+$`));
}

/** What a 422 refused: path and code of each detail. */
export function refusedAs({ status, json }: Reply): [string, string][] {
  expect([status, json?.error?.code, json?.error?.reason]).toEqual([422, 'validation_failed', 'invalid']);
  return json.error.details.map(({ path, code }: { path: string; code: string }) => [path, code]);
}

/** How a call was refused: status, code and reason. */
export function deniedAs({ status, json }: Reply): [number, string, string] {
  expect(json?.error).toMatchObject({ message: expect.any(String), details: expect.any(Array) });
  return [status, json.error.code, json.error.reason];
}

type Reply = Awaited<ReturnType<TestService['call']>>;
