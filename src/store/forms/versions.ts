import { isDeepStrictEqual } from 'node:util';
import { defineEntity, type InferEntity, p, raw } from '@mikro-orm/core';
import { type Contract, firstContract, nextContract } from '../../domain/contracts/contract.ts';
import { haveOneMeaning } from '../../domain/contracts/field-changes.ts';
import type { Field, FormDefinition } from '../../domain/definition/definition.ts';
import { id, json, text, textOrNull, time } from '../database/columns.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Transaction } from '../database/queries.ts';
import { statusNow } from '../sessions/session-table.ts';

/** A published definition of a form. Never changes, so it may be cached by id without end. */
export const VersionEntity = defineEntity({
  name: 'Version',
  tableName: 'form_versions',
  properties: {
    id: id().primary(),
    formId: id(),
    /** 1, 2, 3 … within the form. */
    number: p.integer(),
    /** Normalized, without the delivery secret. */
    definition: json<FormDefinition>(),
    /** SHA-256 of the canonical JSON of `definition`, hex. */
    checksum: text(),
    /** Null if an older release published it beside a newer one: `contractOf` knows it all the same. */
    contract: json<Contract>().nullable(),
    createdAt: time(),
    /** Whether it was published although it breaks what the form's `compatibility` promises. */
    breaking: p.boolean().default(false),
  },
  uniques: [
    { name: 'form_versions_checksum_unique', properties: ['formId', 'checksum'] },
    { name: 'form_versions_number_unique', properties: ['formId', 'number'] },
  ],
});

export type Version = InferEntity<typeof VersionEntity>;

/** A version without what it asks. */
export type VersionSummary = Omit<Version, 'definition' | 'contract'>;

/** Finds a version by its id. */
export async function findVersion(db: Queries, versionId: string): Promise<Version | null> {
  return db.read((em) => em.findOne(VersionEntity, { id: versionId }));
}

/** Finds a version by its place in the form. */
export async function findVersionByNumber(
  db: Queries,
  formId: string,
  number: number,
): Promise<Version | null> {
  return db.read((em) => em.findOne(VersionEntity, { formId, number }));
}

/** The contract of a published version. */
export async function contractOf(db: Queries, version: Version): Promise<Contract> {
  const { formId, number, definition, contract } = version;
  if (contract) return contract;
  const before = await findVersionByNumber(db, formId, number - 1);
  if (before === null) return firstContract(formId, definition);
  return nextContract({ ...before, contract: await contractOf(db, before) }, definition);
}

/** Lists a form's versions, newest first, without their definitions. */
export async function listVersions(
  db: Queries,
  formId: string,
  page: PageRequest,
): Promise<Page<VersionSummary>> {
  // Not by id: of two versions published at once, the one with the later id can be the earlier one.
  const before = raw('(select number from form_versions where id = ?)', [page.cursor]);
  const where = { formId, ...(page.cursor !== undefined && { number: { $lt: before } }) };
  const rows = await db.read((em) =>
    em.find(VersionEntity, where, {
      fields: ['id', 'formId', 'number', 'checksum', 'createdAt', 'breaking'],
      orderBy: { number: 'desc' },
      limit: page.limit + 1,
    }),
  );
  return pageOf<VersionSummary>(rows, page.limit);
}

/**
 * Lists the fields that a form's versions ask, each with the type and label that it has in the newest version with it:
 * those of the newest version in its order, then those that only older ones have. A field whose answers came to mean
 * something else is listed once for each meaning, the newest first. Definitions are read a few at a time: a form can
 * have any number. `numbers` are those of the versions, by id.
 */
export async function listAskedFields(db: Queries, formId: string): Promise<Asked> {
  const numbers = new Map<string, number>();
  const fieldsById = new Map<string, Meaning[]>();
  for (let before: unknown = null; ; ) {
    const rows = await db.select(
      `select id, number, array(select json_strip_nulls(json_build_object(${FACTS.map((name) => `'${name}', field->'${name}'`).join()}))::text
         from json_array_elements(definition->'fields') field where field->>'type' <> 'statement') as fields
       from form_versions where form_id = $1 and ($2::int is null or number < $2)
       order by number desc limit ${DEFINITIONS_AT_ONCE}`,
      [formId, before],
    );
    for (const { id, number, fields } of rows) {
      numbers.set(String(id), Number(number));
      for (const text of Array.isArray(fields) ? fields : []) {
        const field: Field = JSON.parse(String(text));
        const meanings = fieldsById.get(field.id) ?? [];
        fieldsById.set(field.id, meanings);
        let meaning = meanings.find(({ asked }) => asked.every((other) => haveOneMeaning(field, other)));
        if (meaning === undefined) {
          meaning = { field, asked: [], versions: new Set(), number: Number(number) };
          meanings.push(meaning);
        }
        meaning.versions.add(String(id));
        const facts = { ...field, label: '' };
        if (!meaning.asked.some((other) => isDeepStrictEqual(facts, other))) meaning.asked.push(facts);
      }
    }
    if (rows.length < DEFINITIONS_AT_ONCE)
      return { fields: [...fieldsById.values()].flatMap(askedFields), numbers };
    before = rows.at(-1)?.number;
  }
}

/** What decides about a field's meaning, and what it is called. */
const FACTS = 'id type label personal min max minLabel maxLabel step multiple maxFiles'.split(' ');

/** The meanings of one field as the lists of them have it. */
function askedFields(meanings: readonly Meaning[]): AskedField[] {
  // Answers to any version are among those that are exported.
  const isPersonal = meanings.some(({ asked }) => asked.some(({ personal }) => personal));
  return meanings.map(({ field, versions, number }, index) => {
    const { id, type, label, min = 1, max, minLabel, maxLabel } = field;
    const isPoints = type === 'rating' || type === 'scale';
    const [least, most] = [
      [min, minLabel],
      [max, maxLabel],
    ].map((end) => end.join(' ').trim());
    const name = isPoints ? `${least} – ${most}` : index > 0 ? `v${number}` : '';
    const mark = meanings.length > 1 && name !== '' ? ` (${name})` : '';
    const former = index > 0 && { formerly: number };
    return { id, type, label, versions, mark, ...former, ...(isPersonal && { personal: true }) };
  });
}

/** Every version of every form that is not of a session's own questions, read a few at a time. */
export async function* publishedVersions(db: Queries): AsyncGenerator<Version> {
  const isPublished =
    'form_id in (select id from forms where question_checksum is null and deleted_at is null)';
  for (let after = ''; ; ) {
    const rows = await db.read((em) =>
      em.find(
        VersionEntity,
        { id: { $gt: after }, [raw(isPublished)]: true },
        { orderBy: { id: 'asc' }, limit: DEFINITIONS_AT_ONCE },
      ),
    );
    yield* rows;
    if (rows.length < DEFINITIONS_AT_ONCE) return;
    after = rows.at(-1)?.id ?? '';
  }
}

/** The versions that a form's submissions or open sessions have, read a few at a time. */
export async function* versionsInUse(db: Queries, formId: string): AsyncGenerator<Version> {
  const rows = await db.select(
    `select version_id from submissions where form_id = $1
     union select version_id from sessions where form_id = $1 and expires_at > now() and ${statusNow} = 'open'`,
    [formId],
  );
  const ids = rows.map(({ version_id: id }) => String(id));
  for (let at = 0; at < ids.length; at += DEFINITIONS_AT_ONCE) {
    const id = { $in: ids.slice(at, at + DEFINITIONS_AT_ONCE) };
    yield* await db.read((em) => em.find(VersionEntity, { id }, { orderBy: { number: 'desc' } }));
  }
}

/** Each can have 256 KiB. */
const DEFINITIONS_AT_ONCE = 10;

/**
 * Publishes a draft with its first version, if the token is right: it works once, until it expires by
 * the database's clock. A wrong token tells nothing about the form's state.
 */
export async function activateForm(tx: Transaction, activation: Activation): Promise<ActivationOutcome> {
  const { formId, tokenHash, ownerEmail, version } = activation;
  const [form] = await tx.select(
    `select activation_hash = $2 as right_token, activated_at is not null or status <> 'draft' as used,
       activation_expires_at <= now() as expired, key
     from forms where id = $1 for update`,
    [formId, tokenHash],
  );
  if (form === undefined) return 'not_found';
  if (form.right_token !== true) return 'wrong_token';
  if (form.used === true) return 'used';
  if (form.expired === true) return 'expired';

  await publishFirstVersion(tx, { formId, key: textOrNull(form.key), ownerEmail, version });
  return 'activated';
}

/** Publishes a draft, which the caller has locked. Its token counts as used from then on. */
export async function publishFirstVersion(
  tx: Transaction,
  { formId, key, ownerEmail, version }: FirstPublication,
): Promise<Version> {
  const { name, slug } = version.definition;
  const first = await insertFirstVersion(tx, key ?? formId, { ...version, formId });
  await tx.execute(
    `update forms set status = 'published', current_version_id = $2, name = $5, slug = $6, owner_email = $3,
       retention_days = $4, activated_at = now(), draft_definition = null, draft_secret = null, updated_at = now()
     where id = $1`,
    [formId, version.id, ownerEmail, retentionDaysOf(version), name, slug],
  );
  return first;
}

/** Stores the first version of a form. `owner` names the generated code. */
export async function insertFirstVersion(
  tx: Transaction,
  owner: string,
  version: NewVersion & { formId: string },
): Promise<Version> {
  const contract = firstContract(owner, version.definition);
  const first = { ...version, number: 1, contract, breaking: false };
  await tx.write((em) => em.insert(VersionEntity, first));
  return first;
}

/**
 * Makes a definition the current version of a published form, which the caller has locked. A definition that was
 * published before (same checksum) gets its old version back.
 */
export async function publishVersion(
  tx: Transaction,
  { formId, currentId, version, breaking }: Publication,
): Promise<Version> {
  const { known, ...place } = await placeOfNext(tx, { id: formId, currentVersionId: currentId }, version);
  const current = known ?? { ...version, formId, ...place, breaking: false };
  if (known === null) await tx.write((em) => em.insert(VersionEntity, current));
  if (breaking) await tx.write((em) => em.nativeUpdate(VersionEntity, { id: current.id }, { breaking }));
  await tx.execute(
    `update forms set current_version_id = $2, name = $3, slug = $4, retention_days = $5, updated_at = now()
     where id = $1`,
    [formId, current.id, version.definition.name, version.definition.slug, retentionDaysOf(current)],
  );
  return { ...current, breaking: current.breaking || breaking };
}

function retentionDaysOf({ definition }: NewVersion): number | null {
  return definition.settings.retentionDays ?? null;
}

/**
 * The place that a definition gets in a form by publication now: that of the version that has it already, else that of a
 * further one. Where the form's row is locked, no other version takes the number, and none gives numbers to fields.
 */
export async function placeOfNext(
  db: Queries,
  { id: formId, currentVersionId: currentId }: { id: string; currentVersionId: string | null },
  { definition, checksum }: Pick<Version, 'definition' | 'checksum'>,
): Promise<{ known: Version | null; number: number; contract: Contract }> {
  const known = await db.read((em) => em.findOne(VersionEntity, { formId, checksum }));
  if (known !== null) return { known, number: known.number, contract: await contractOf(db, known) };
  const newest = await db.read((em) =>
    em.findOne(VersionEntity, { formId }, { orderBy: { number: 'desc' } }),
  );
  const current = newest?.id === currentId ? newest : await findVersion(db, currentId ?? '');
  if (newest === null || current === null) throw new TypeError(`The form ${formId} has no version`);
  const { nextNumber } = await contractOf(db, newest);
  const before = { ...current, contract: await contractOf(db, current) };
  return { known, number: newest.number + 1, contract: nextContract(before, definition, nextNumber) };
}

/** A field that a form asks or asked, in one of its meanings. */
export type AskedField = {
  id: string;
  type: string;
  label: string;
  personal?: boolean;
  /** What people tell its meaning by, if the field has several: ` (1 – 5)`, or ` (v3)` by the newest version with it. */
  mark: string;
  /** The number of the newest version with it, if a newer one has another meaning. */
  formerly?: number;
  /** The ids of the versions that ask it. */
  versions: ReadonlySet<string>;
};

/** `field` and `number` are of the newest version; `asked` are those that differ, without labels, which can be long. */
type Meaning = { field: Field; asked: Field[]; versions: Set<string>; number: number };

export type Asked = { fields: AskedField[]; numbers: ReadonlyMap<string, number> };

/** What makes a draft a published form. */
export type Activation = Omit<FirstPublication, 'key'> & {
  /** SHA-256 of the presented token, hex. */
  tokenHash: string;
};

/** `ownerEmail` is null for a form that nobody owns. Generated code is named by the form's key, or else its id. */
type FirstPublication = {
  formId: string;
  key: string | null;
  ownerEmail: string | null;
  version: NewVersion;
};
export type ActivationOutcome = 'activated' | 'not_found' | 'wrong_token' | 'used' | 'expired';

/** A further definition for a form. `breaking`: although it breaks what the form's `compatibility` promises. */
type Publication = { formId: string; currentId: string; version: NewVersion; breaking: boolean };

/** A version before it has its place in a form. */
export type NewVersion = Pick<Version, 'id' | 'definition' | 'checksum' | 'createdAt'>;
