// What one block may bring: thousands of outputs to one address, of many transactions or of a single one with thousands of inputs. Recording
// them, seeing them again in a block and losing them takes a time that grows with their number, not with its square: within the open
// database transaction anything else would stop the chain for ever.

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TransactionFacts } from '../../src/core/ports.ts';
import type { PlaceOfBlock } from '../../src/store/chain/payment-facts.ts';
import { applySighting, createPlan } from '../../src/store/chain/sighting-plan.ts';
import { recordSightings } from '../../src/store/chain/sightings.ts';
import { transactionByIndex } from '../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MANY = 20_000;
const WITHIN_MS = 60_000;
const FOUND_WITHIN_MS = 20_000;
let service: ServiceOnDatabase;
let transactionId: string;
let script: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ transactionId } = await service.create());
  const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions`);
  script = rows[0].script;
});
afterEach(() => service.drop());

const hash = (): string => randomBytes(32).toString('hex');
function dust(outputs: number, inputs: number): TransactionFacts {
  return {
    txid: hash(),
    coinbase: false,
    inputs: Array.from({ length: inputs }, () => ({ txid: hash(), vout: 0 })),
    outputs: Array.from({ length: outputs }, (_, vout) => ({ vout, script, amountMinor: 546n })),
    spends: [],
  };
}
const block: PlaceOfBlock = { height: 101, hash: hash(), timeMs: Date.UTC(2026, 5, 1) };
const see = (seen: readonly TransactionFacts[], where: PlaceOfBlock | null) =>
  transactionByIndex(service.db, (sql) =>
    recordSightings(
      sql,
      'BTC',
      { block: where, caughtUpAtMs: service.now(), atMs: service.now() },
      seen.map((facts) => ({ facts, seenAtMs: service.now() })),
    ),
  );
async function counts(): Promise<Record<string, number>> {
  const { rows } = await service.admin.query(
    'select state, count(*)::int as n from payments where transaction_id = $1 group by state',
    [transactionId],
  );
  return Object.fromEntries(rows.map((row) => [row.state, row.n]));
}

test.each([
  { of: 'many transactions', seen: () => Array.from({ length: MANY / 500 }, () => dust(500, 1)) },
  { of: 'one transaction of many inputs', seen: () => [dust(MANY, 10_000)] },
])(
  'twenty thousand outputs of $of to one address: in the mempool, in a block, double-spent',
  async ({ seen }) => {
    const all = seen();
    const began = performance.now();
    expect(await see(all, null)).toBe(MANY);
    expect(await see(all, block)).toBe(MANY);
    expect(await counts()).toEqual({ mined: MANY });
    const rival = { ...dust(0, 0), inputs: all.flatMap((facts) => facts.inputs) };
    expect(await see([rival], { ...block, height: 102 })).toBe(MANY);
    expect(await counts()).toEqual({ conflicted: MANY });
    expect(performance.now() - began).toBeLessThan(WITHIN_MS);
  },
  300_000,
);

test('outputs that were seen are found again in a block by their index, in a table that was never analysed too', {
  timeout: 300_000,
}, async () => {
  await service.admin.query('alter table payments set (autovacuum_enabled = false)');
  const all = Array.from({ length: MANY / 500 }, () => dust(500, 1));
  expect(await see(all, null)).toBe(MANY);
  const began = performance.now();
  expect(await see(all, block)).toBe(MANY);
  expect(performance.now() - began).toBeLessThan(FOUND_WITHIN_MS);
});

test('what a hundred thousand outputs mean is worked out at once: squared it would take many minutes', () => {
  const facts = [...Array.from({ length: 100 }, () => dust(500, 1)), dust(50_000, 10_000)];
  const known = { owners: new Map([[script, transactionId]]), payments: [], spenders: new Map() };
  const began = performance.now();
  const first = createPlan('BTC', { block: null, caughtUpAtMs: 0, atMs: 0 }, known);
  for (const one of facts) applySighting(first, { facts: one, seenAtMs: 0 });
  expect(first.made.size).toBe(100_000);
  const payments = [...first.made.values()].map((made, n) => ({
    ...made,
    id: BigInt(n),
    goneSinceMs: null,
    conflictTxid: null,
    conflictMined: false,
  }));
  const second = createPlan('BTC', { block, caughtUpAtMs: 0, atMs: 0 }, { ...known, payments });
  for (const one of facts) applySighting(second, { facts: { ...one, txid: hash() }, seenAtMs: 0 });
  expect([second.made.size, second.changed.size]).toEqual([0, 100_000]);
  expect(performance.now() - began).toBeLessThan(WITHIN_MS);
}, 120_000);
