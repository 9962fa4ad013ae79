import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { type IdPrefix, isId } from '../domain/ids.ts';
import { failed } from '../rpc/errors.ts';
import type { PageRequest } from '../store/database/page.ts';

/**
 * Which page a list request asks for. Page tokens are ids with `prefix`.
 *
 * Throws BAD_REQUEST, with a violation at the REST parameter's name, for a negative size and for a
 * token that no list gave.
 */
export function pageAsked({ pageSize, pageToken }: ListRequest, prefix: IdPrefix): PageRequest {
  if (pageSize < 0) throw badParameter('limit', 'too_small', 'Expected at least 1');
  if (pageToken !== '' && !isId(prefix, pageToken)) {
    throw badParameter('cursor', 'invalid_string', 'Expected a cursor that a list has given');
  }
  return {
    limit: pageSize === 0 ? DEFAULT_PAGE_SIZE : Math.min(pageSize, MAX_PAGE_SIZE),
    cursor: pageToken === '' ? undefined : pageToken,
  };
}

function badParameter(path: string, code: 'too_small' | 'invalid_string', message: string) {
  return failed(Reason.BAD_REQUEST, `${path}: ${message}`, { violations: [{ path, code, message }] });
}

/** The interface's sizes, section 8. */
const DEFAULT_PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 100;

type ListRequest = { pageSize: number; pageToken: string };
