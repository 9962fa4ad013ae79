import { raw } from '@mikro-orm/core';
import { timeOf } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';
import { MailedLinkEntity } from './mail.ts';

/** The purpose of the codes that respondents are mailed. Their rows' `tokenHash` is a random id: the code follows from it. */
export const RESPONDENT_CODE = 'respondent-code';

/** Stores a code before it is mailed, and voids those that the browser has asked for before and not given. */
export async function insertCode(
  tx: Transaction,
  { id: tokenHash, lifeMs, address, ...code }: CodePlace & { id: string; address: string; lifeMs: number },
): Promise<void> {
  await tx.write((em) => em.nativeDelete(MailedLinkEntity, { ...ofCode(code), usedAt: null }));
  await tx.execute(
    `insert into mailed_links (token_hash, purpose, form_id, session_id, address, browser_hash, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, now(), now() + $7 * interval '1 millisecond')`,
    [tokenHash, RESPONDENT_CODE, code.formId, code.sessionId, address, code.browserHash, lifeMs],
  );
}

/**
 * Counts that a browser tries a code, and returns the id of the one that it was mailed last; null if that has expired,
 * was given, or was tried `maxTries` times.
 */
export async function tryCode(
  tx: Transaction,
  { maxTries, ...code }: CodePlace & { maxTries: number },
): Promise<string | null> {
  const [row] = await tx.execute(
    `update mailed_links set tries = tries + 1
     where ${IS_CODE_OF} and used_at is null and expires_at > now() and tries < $5 returning token_hash`,
    [...codeParams(code), maxTries],
  );
  return row === undefined ? null : String(row.token_hash);
}

/** Notes that a code was given: it stands for its respondent until `until`, or for as long as `lifeMs`. */
export async function keepCode(
  tx: Transaction,
  id: string,
  { until, lifeMs }: { until?: Date | undefined; lifeMs: number },
): Promise<void> {
  await tx.execute(
    `update mailed_links set used_at = now(),
       expires_at = greatest($2::timestamptz, now() + $3 * interval '1 millisecond') where token_hash = $1`,
    [id, until?.toISOString(), lifeMs],
  );
}

/** The respondent who has given a code in a browser last, and whether another code was mailed that can be given. */
export async function findRespondent(
  db: Queries,
  code: CodePlace,
): Promise<{ given: { address: string; usedAt: Date } | undefined; isSent: boolean }> {
  const rows = await db.select(
    `select address, used_at from mailed_links where ${IS_CODE_OF} and expires_at > clock_timestamp()
     order by used_at desc nulls last`,
    codeParams(code),
  );
  const [first] = rows;
  const given =
    first === undefined || first.used_at === null
      ? undefined
      : { address: String(first.address), usedAt: timeOf(first.used_at) };
  return { given, isSent: rows.some(({ used_at: usedAt }) => usedAt === null) };
}

/** Whether a code may still be given. */
export async function isCodeOpen(db: Queries, id: string): Promise<boolean> {
  const open = { tokenHash: id, usedAt: null, expiresAt: { $gt: raw('now()') } };
  return (await db.read((em) => em.count(MailedLinkEntity, open))) > 0;
}

const IS_CODE_OF = `purpose = $1 and form_id = $2 and session_id is not distinct from $3 and browser_hash = $4`;

function codeParams({ formId, sessionId, browserHash }: CodePlace): unknown[] {
  return [RESPONDENT_CODE, formId, sessionId, browserHash];
}

function ofCode({ formId, sessionId, browserHash }: CodePlace) {
  return { purpose: RESPONDENT_CODE, formId, sessionId, browserHash };
}

/** What a code opens, and in which browser. Without a session it is the form's own page. */
export type CodePlace = { formId: string; sessionId: string | null; browserHash: string };
