import { pino } from 'pino';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createSubmissionWriter } from '../../../src/store/submissions/submission-writer.ts';
import { aSubmission } from '../given.ts';

/**
 * A process that stores submissions until it is killed, and prints the id of each one that was
 * acknowledged: `writing-process.ts <url or folder>`.
 */
const place = process.argv[2] ?? '';
const where = place.startsWith('postgres:') ? { databaseUrl: place } : { dataDir: place };
const database = await openDatabase({ ...where, log: pino({ level: 'silent' }) });
const writer = createSubmissionWriter(database);

async function writeForEver(): Promise<void> {
  while (true) {
    const row = aSubmission();
    await writer.write(row);
    process.stdout.write(`${row.id}\n`);
  }
}

await Promise.all(Array.from({ length: 16 }, writeForEver));
