// The measured process: the watch lists of five chains, filled from the database as a worker does at its start. Argument: the database's
// URL.
import { UTXO_CODES } from '../src/core/currency.ts';
import { systemClock } from '../src/outside/clock.ts';
import { connect } from '../src/store/postgres/connect.ts';
import { createWatchedScripts, createWatchList } from '../src/worker/chain/watch-list.ts';
import { peakBytes, residentBytes } from './processes.ts';

const url = process.argv[2] ?? '';
const db = connect({ url, role: 'bursar_app', maxConnections: 5, applicationName: 'bench' });
const ctx = { db, ports: { clock: systemClock, chains: new Map() } };
const scripts = createWatchedScripts(ctx);
const lists = UTXO_CODES.map((currency) => createWatchList(ctx, currency, scripts));
for (const list of lists) await list.fresh();
process.send?.({ size: scripts.size, rss: residentBytes(process.pid), peak: peakBytes(process.pid) });
await db.close();
process.disconnect();
