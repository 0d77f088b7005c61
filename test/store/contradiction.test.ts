// When a contradiction between the nodes of a chain ends: in the database, in one statement with the block that was read last.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NodeAgreement } from '../../src/core/ports.ts';
import { beginCursor } from '../../src/store/chain/blocks.ts';
import { readChainStatus, recordCondition } from '../../src/store/chain/node-conditions.ts';
import { readChainFacts } from '../../src/store/transactions/case-facts.ts';
import { freshDatabase } from '../support/postgres.ts';

const NOW_MS = 1_800_000_000_000;
const LIMIT = 1_000_00n;
const hash = (digit: string): string => digit.repeat(64);

let database: Awaited<ReturnType<typeof freshDatabase>>;
let lookMs = NOW_MS;
beforeEach(async () => {
  database = await freshDatabase();
  const tip = { height: 12, hash: hash('a'), previousHash: hash('9'), timeMs: NOW_MS };
  await beginCursor(database.db, 'BTC', tip, NOW_MS);
});
afterEach(() => database.drop());

/** The node that is read is at block 14; what it and the others say of each other is recorded. */
function nodesSay(agreement: NodeAgreement | null, atMs = ++lookMs): Promise<void> {
  const ready = { state: 'ready', height: 14, hash: hash('e'), tipTimeMs: NOW_MS, peers: 2 } as const;
  return recordCondition(database.db, 'BTC', agreement === null ? ready : { ...ready, agreement }, atMs);
}
async function isContested(): Promise<boolean> {
  return (await agreedUpTo()) === -1 && (await readChainStatus(database.db))[0]?.contested != null;
}
/** As the judge gets it; undefined where nothing is held back. */
async function agreedUpTo(): Promise<number | undefined> {
  return (await readChainFacts(database.db, [], LIMIT)).chains.get('BTC')?.agreed?.height;
}

const CONTESTED: NodeAgreement = { state: 'contested', reason: 'at height 12 …' };

test.each<readonly [string, boolean, NodeAgreement | null]>([
  ['two agree on the block that was read', false, { state: 'agreed', height: 12, hash: hash('a') }],
  ['two agree on another block of that height', true, { state: 'agreed', height: 12, hash: hash('b') }],
  ['two agree on a later block', true, { state: 'agreed', height: 14, hash: hash('e') }],
  ['two agree on an earlier block', true, { state: 'agreed', height: 11, hash: hash('9') }],
  ['no two can be asked', true, { state: 'unknown' }],
  ['only one is configured, and it is at another block', true, null],
])('when %s, that it stands is %s', async (_, stands, agreement) => {
  await nodesSay(CONTESTED);
  expect(await isContested()).toBe(true);
  await nodesSay(agreement);
  expect(await isContested()).toBe(stands);
});

test('it ends with the only node that is configured once its tip was read, and never by a look that is older', async () => {
  await nodesSay(CONTESTED);
  await database.db.query({ text: 'update chain_cursors set height = 14, hash = $1', values: [hash('e')] });
  await nodesSay(null, lookMs - 1);
  expect(await isContested()).toBe(true);
  await nodesSay(null);
  expect(await isContested()).toBe(false);
});

test('two nodes agree up to the highest block of what we read that both held, and only while it is what we read', async () => {
  const looks: readonly (readonly [NodeAgreement | null, number | undefined])[] = [
    [{ state: 'unknown' }, -1],
    [{ state: 'agreed', height: 14, hash: hash('e') }, -1],
    [{ state: 'agreed', height: 12, hash: hash('b') }, -1],
    [{ state: 'agreed', height: 12, hash: hash('a') }, 12],
    [{ state: 'agreed', height: 14, hash: hash('e') }, 12],
    [{ state: 'unknown' }, 12],
    [CONTESTED, -1],
    [{ state: 'agreed', height: 12, hash: hash('a') }, 12],
    [null, undefined],
    [{ state: 'agreed', height: 12, hash: hash('a') }, 12],
  ];
  for (const [agreement, upTo] of looks) {
    await nodesSay(agreement);
    expect([agreement, await agreedUpTo()]).toEqual([agreement, upTo]);
  }
  await recordCondition(database.db, 'BTC', { state: 'down', reason: 'no answer', height: null }, ++lookMs);
  expect(await agreedUpTo()).toBe(12);
  await database.db.query({ text: 'update blocks set hash = $1', values: [hash('b')] });
  expect(await agreedUpTo()).toBe(-1);
});

test('the node that is read is named while there are several, also in trouble, and no longer once only one is configured', async () => {
  const named = async (): Promise<string | null | undefined> => (await readChainStatus(database.db))[0]?.node;
  const ready = { state: 'ready', height: 14, hash: hash('e'), tipTimeMs: NOW_MS, peers: 2 } as const;
  await recordCondition(database.db, 'BTC', { ...ready, node: '10.0.0.7:8332', agreement: { state: 'unknown' } }, ++lookMs);
  await recordCondition(database.db, 'BTC', { state: 'down', reason: 'no answer', height: null }, ++lookMs);
  expect(await named()).toBe('10.0.0.7:8332');
  await recordCondition(database.db, 'BTC', ready, ++lookMs);
  expect(await named()).toBeNull();
});
