import { pino } from 'pino';
import { openDatabase } from '../../src/store/database/database.ts';
import { startDelivery } from '../support/delivery.ts';

/** A process that does nothing but deliver: on the server, or on the folder, that its argument names. */
const [place = ''] = process.argv.slice(2);
const where = place.startsWith('postgres') ? { databaseUrl: place } : { dataDir: place };
const database = await openDatabase({ ...where, log: pino({ level: 'silent' }) });
const delivery = startDelivery(database, { settings: { schedule: Array.from({ length: 50 }, () => 0.05) } });
process.stdout.write('started\n');
process.on('SIGTERM', () => {
  void delivery.stop(5_000).then(() => database.close());
});
