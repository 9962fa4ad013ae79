import { defineEntity, type InferEntity, p, raw } from '@mikro-orm/core';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { CORRECTION, CORRECTION_MS, mailLinkToken } from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import type { SecretKey } from '../../domain/secrets/secret-key.ts';
import { id, text, time } from '../database/columns.ts';
import type { Queries, Transaction } from '../database/queries.ts';

/** An emailed link that works once. Without its row, a token that is signed as it should be is worth nothing. */
export const MailedLinkEntity = defineEntity({
  name: 'MailedLink',
  tableName: 'mailed_links',
  properties: {
    /** SHA-256 of the link's token, hex. */
    tokenHash: id().primary(),
    purpose: text(),
    /** Empty for a link to sign in. */
    formId: id(),
    /** As `addressKey` gives it; of a link to correct a submission, its id. */
    address: text(),
    /** SHA-256 of what only the browser has that asked for the link, hex; null if none did. */
    browserHash: text().strictNullable(),
    createdAt: time(),
    expiresAt: time(),
    usedAt: time().strictNullable(),
    /** Of a code: the session that it is for; null for a form's own page, and for links. */
    sessionId: id().strictNullable(),
    /** How often a code was tried. */
    tries: p.integer().default(0),
  },
  indexes: [
    { name: 'mailed_links_by_address', properties: ['address', 'formId'] },
    { name: 'mailed_links_by_end', properties: ['expiresAt'] },
    {
      name: 'mailed_links_by_browser',
      properties: ['browserHash', 'formId'],
      where: 'browser_hash is not null',
    },
  ],
});

type MailedLink = InferEntity<typeof MailedLinkEntity>;

/** Stores a link before it is emailed. */
export async function insertMailedLink(
  db: Queries,
  link: Omit<MailedLink, 'usedAt' | 'address' | 'sessionId' | 'tries'> & { address: string },
): Promise<void> {
  const row = { ...link, address: addressKey(link.address), usedAt: null, sessionId: null };
  // Not `em.upsert`, which reads a row that is there already, and throws if it was removed meanwhile.
  await db.write((em) =>
    em.createQueryBuilder(MailedLinkEntity).insert(row).onConflict().ignore().execute('run'),
  );
}

/** Makes the token of a link by which a submission can be corrected, and stores its hash. */
export async function newCorrection(by: Maker, formId: string, submissionId: string): Promise<string> {
  const { database, secretKey, now } = by;
  const [createdAt, expiresAt] = [new Date(now()), new Date(now() + CORRECTION_MS)];
  const link = { purpose: CORRECTION, formId, address: submissionId, browserHash: null } as const;
  const token = mailLinkToken(secretKey, link, expiresAt.getTime());
  await insertMailedLink(database, { ...link, createdAt, expiresAt, tokenHash: hashSecret(token) });
  return token;
}

type Maker = { database: Queries; secretKey: SecretKey; now: () => number };

/** What became of a link; null if it was never emailed, or was voided. */
export async function findMailedLink(
  db: Queries,
  tokenHash: string,
): Promise<Pick<MailedLink, 'browserHash' | 'usedAt' | 'createdAt'> | null> {
  const fields = ['browserHash', 'usedAt', 'createdAt'] as const;
  return db.read((em) => em.findOne(MailedLinkEntity, { tokenHash }, { fields }));
}

/** Notes that a link was used, and says whether it was not before: of any number of calls at once, one uses it. */
export async function useMailedLink(tx: Transaction, tokenHash: string): Promise<boolean> {
  const unused = { tokenHash, usedAt: null, expiresAt: { $gt: raw('now()') } };
  const change = { usedAt: raw<Date>('now()') };
  return (await tx.write((em) => em.nativeUpdate(MailedLinkEntity, unused, change))) > 0;
}

/** Voids the links of an address: of one purpose, or about one form. */
export async function voidMailedLinks(
  db: Queries,
  { address, ...which }: { address: string; purpose?: string; formId?: string },
): Promise<void> {
  await db.write((em) => em.nativeDelete(MailedLinkEntity, { ...which, address: addressKey(address) }));
}

/**
 * The purpose of the codes that respondents are emailed. Their rows' `tokenHash` is a random id: the code follows
 * from it.
 */
export const RESPONDENT_CODE = 'respondent-code';

/** Stores a code before it is emailed, and voids those that the browser has asked for before and not given. */
export async function insertCode(
  tx: Transaction,
  { id: tokenHash, lifeMs, address, ...code }: CodePlace & { id: string; address: string; lifeMs: number },
): Promise<void> {
  await tx.write((em) => em.nativeDelete(MailedLinkEntity, { ...ofCode(code), usedAt: null }));
  const times = { createdAt: raw('now()'), expiresAt: raw(`now() + ${LIFE}`, [lifeMs]), usedAt: null };
  const row = { tokenHash, ...ofCode(code), address, ...times };
  await tx.write((em) => em.insert(MailedLinkEntity, row));
}

/**
 * Counts that a browser tries a code, and returns the id of the one that it was emailed last; null if that has expired,
 * was given, or was tried `maxTries` times.
 */
export async function tryCode(
  tx: Transaction,
  { maxTries, ...code }: CodePlace & { maxTries: number },
): Promise<string | null> {
  const [row] = await tx.execute(
    `update mailed_links set tries = tries + 1
     where purpose = $1 and form_id = $2 and session_id is not distinct from $3 and browser_hash = $4
       and used_at is null and expires_at > now() and tries < $5 returning token_hash`,
    [RESPONDENT_CODE, code.formId, code.sessionId, code.browserHash, maxTries],
  );
  return row === undefined ? null : String(row.token_hash);
}

/** Notes that a code was given: it stands for its respondent until `until`, or for as long as `lifeMs`. */
export async function keepCode(
  tx: Transaction,
  id: string,
  { until, lifeMs }: { until?: Date | undefined; lifeMs: number },
): Promise<void> {
  const expiresAt = raw(`greatest(?::timestamptz, now() + ${LIFE})`, [until?.toISOString() ?? null, lifeMs]);
  const change = { usedAt: raw('now()'), expiresAt };
  await tx.write((em) => em.nativeUpdate(MailedLinkEntity, { tokenHash: id }, change));
}

/** The respondent who has given a code in a browser last, and whether another code was emailed that can be given. */
export async function findRespondent(
  db: Queries,
  code: CodePlace,
): Promise<{ given: { address: string; usedAt: Date } | undefined; isSent: boolean }> {
  const where = { ...ofCode(code), expiresAt: { $gt: raw('clock_timestamp()') } };
  const codes = await db.read((em) => em.find(MailedLinkEntity, where, { orderBy: { usedAt: 'desc' } }));
  const given = codes.flatMap(({ address, usedAt }) => (usedAt === null ? [] : { address, usedAt }));
  return { given: given[0], isSent: given.length < codes.length };
}

/** Whether a code may still be given. */
export async function isCodeOpen(db: Queries, id: string): Promise<boolean> {
  const open = { tokenHash: id, usedAt: null, expiresAt: { $gt: raw('now()') } };
  return (await db.read((em) => em.count(MailedLinkEntity, open))) > 0;
}

const LIFE = "? * interval '1 millisecond'";

function ofCode({ formId, sessionId, browserHash }: CodePlace) {
  return { purpose: RESPONDENT_CODE, formId, sessionId, browserHash };
}

/** What a code opens, and in which browser. Without a session it is the form's own page. */
export type CodePlace = { formId: string; sessionId: string | null; browserHash: string };
