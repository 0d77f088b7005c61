// Whether an authorization (EIP-7702) has used a nonce of an address of ours: by what nodes show together now, or what was found when they did. And what is
// booked with it that was only reserved.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { evmInput } from '../../src/core/currencies/evm.ts';
import type { AuthorizedByWord, EvmPort } from '../../src/core/evm/port.ts';
import type { Context } from '../../src/flow/context.ts';
import {
  hasAuthorized,
  insertAuthorized,
  isUseKnown,
  wasFound,
} from '../../src/store/payouts/after-restore/authorized-nonces.ts';
import { closeDisplaced } from '../../src/store/payouts/evm-lane.ts';
import { openMovements, recordMovements } from '../../src/store/payouts/unknown-movements.ts';
import { joined, useOf } from '../../src/worker/payouts/evm/authorized.ts';
import { freshDatabase } from '../support/postgres.ts';

const [HASH, OTHER_HASH] = ['b1', 'b2'].map((one) => `0x${one.repeat(32)}`) as [string, string];
const [TXID, FOUND] = ['a1', 'a2'].map((one) => `0x${one.repeat(32)}`) as [string, string];
const ADDRESS = `0x${'5e'.repeat(20)}`;
const NONCE = 5;
const currency = 'USDT';
const SENDER = evmInput(ADDRESS, NONCE);

let database: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  database = await freshDatabase();
  const found = { currency, blockHash: HASH, finding: 'found', spends: [evmInput(ADDRESS, NONCE - 1), SENDER] } as const;
  await recordMovements(database.db, [{ ...found, txid: FOUND }], Date.UTC(2026, 5, 1));
});
afterAll(() => database.drop());

const facts = { txid: TXID, coinbase: false, inputs: [], outputs: [], spends: [SENDER] };
const shownIn = (blockHash: string) => ({ height: 7, blockHash, facts });

describe('that it has used it', () => {
  /** What nodes say of a transaction that is known in a block. */
  async function use(word: Partial<AuthorizedByWord>, txid = TXID) {
    const said: AuthorizedByWord = { carried: shownIn(HASH), isUsed: false, isDenied: false, said: ['said'], ...word };
    const port = { authorized: async () => said } as Partial<EvmPort> as EvmPort;
    const of = { txid, block: { height: 7, hash: HASH } };
    return useOf({ db: database.db } as Context, { currency, port }, of, { address: ADDRESS, nonce: NONCE });
  }
  const USED = { facts, isDenied: false, said: ['said'] };
  const UNKNOWN = { ...USED, facts: null };

  test.each<[string, Partial<AuthorizedByWord>, string, object]>([
    ['is so where they say it of its block', { isUsed: true }, TXID, USED],
    ['is not known where they say it of another block', { isUsed: true, carried: shownIn(OTHER_HASH) }, FOUND, UNKNOWN],
    ['is not known where they show it in none', { carried: null }, FOUND, UNKNOWN],
    ['is not known where they have forgotten it, and nobody has found it before', {}, TXID, UNKNOWN],
    ['is so where they have forgotten it, and it was found before', {}, FOUND, USED],
    ['is not so where they deny it, though it was found before', { isDenied: true }, FOUND, { ...UNKNOWN, isDenied: true }],
  ])('%s', async (_what, word, txid, wanted) => {
    expect(await use(word, txid)).toEqual(wanted);
  });
});

test('what was found is that of its block, its nonce and its currency alone', async () => {
  const was = (of: object, hash = HASH) => wasFound(database.db, { currency, txid: FOUND, sender: SENDER, ...of }, hash);
  expect(await was({})).toBe(true);
  expect(await was({}, OTHER_HASH)).toBe(false);
  for (const other of [{ currency: 'ETH' }, { txid: TXID }, { sender: evmInput(ADDRESS, NONCE + 1) }])
    expect(await was(other)).toBe(false);
});

test('what is booked is known of its nonce and address alone, whichever transaction has used it', async () => {
  const known = (of: object = {}) => isUseKnown(database.db, { currency, txid: TXID, sender: SENDER, ...of });
  const has = (address: string, code: 'USDT' | 'ETH' = currency) => hasAuthorized(database.db, code, evmInput(address, 0).txid);
  expect([await known(), await has(ADDRESS)]).toEqual([false, false]);
  const block = { height: 7, hash: HASH };
  await insertAuthorized(database.db, { currency, txid: TXID, sender: SENDER, block, by: 'operator test', atMs: 0 });
  expect([await known(), await known({ txid: FOUND }), await has(ADDRESS)]).toEqual([true, true, true]);
  expect(await known({ sender: evmInput(ADDRESS, NONCE + 1) })).toBe(false);
  expect(await known({ currency: 'ETH' })).toBe(false);
  expect([await has(`0x${'5f'.repeat(20)}`), await has(ADDRESS, 'ETH')]).toEqual([false, false]);
});

test('what a block has shown another transaction to spend is known, and not what it has shown this one to', async () => {
  const [sender, batch] = [evmInput(ADDRESS, NONCE + 2), 'batch_1'];
  await database.db.query({
    text: `with key as (insert into account_xpubs (currency, xpub, origin, created_at) values ('USDT', 'x', 'signer', now()) returning id),
                batch as (insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ($3, 'USDT', 'signed', 5, now()))
           insert into outgoing_inputs (currency, txid, vout, batch_id, amount, script, account_xpub_id, chain, address_index, spent_by, spent_height)
             select 'USDT', $1, $2, $3, 1, '\\x00', id, 1, 0, $4, 7 from key`,
    values: [sender.txid, sender.vout, batch, FOUND],
  });
  const known = (txid: string) => isUseKnown(database.db, { currency, txid, sender });
  expect([await known(TXID), await known(FOUND)]).toEqual([true, false]);
});

test('what is open can be mined no more once others have used all its nonces for good, and no block has it', async () => {
  const [booked, other, height] = [evmInput(ADDRESS, NONCE), evmInput(ADDRESS, NONCE + 2), 7];
  const [gone, half, mined, bare] = ['c1', 'c2', 'c3', 'c4'].map((one) => `0x${one.repeat(32)}`) as [
    string,
    string,
    string,
    string,
  ];
  const blocks = `insert into blocks (currency, height, hash, previous, time) values ('USDT', 7, $1, 'previous', now())`;
  await database.db.query({ text: blocks, values: [OTHER_HASH] });
  const of = { currency, blockHash: null, finding: 'found' } as const;
  const movements = [
    { ...of, txid: gone, spends: [booked, other] },
    { ...of, txid: half, spends: [booked, evmInput(ADDRESS, NONCE + 3)] },
    // what has used one of them is this one
    { ...of, txid: FOUND, spends: [other] },
    { ...of, txid: mined, spends: [booked], blockHash: OTHER_HASH },
    // it names none
    { ...of, txid: bare },
  ];
  await recordMovements(database.db, movements, 0);
  const open = async (finalHeight: number) => {
    await closeDisplaced(database.db, currency, { finalHeight, atMs: 0 });
    return (await openMovements(database.db)).map(({ txid }) => txid);
  };
  const all = [FOUND, gone, half, mined, bare];
  expect(new Set(await open(height - 1))).toEqual(new Set(all));
  expect(new Set(await open(height))).toEqual(new Set(all.filter((txid) => txid !== gone)));
});

test('what two addresses of ours have used in one transaction is told together', () => {
  const one = { payoutIds: ['a'], lost: 0n, fee: 0n, besides: [{ currency: 'USDT' as const, lost: 1n }], alike: ['b'] };
  const other = { payoutIds: ['c'], lost: 0n, fee: 0n, besides: [{ currency: 'ETH' as const, lost: 2n }], alike: ['d'] };
  const bare = { payoutIds: [], lost: 0n, fee: 0n };
  expect(joined(null, one)).toBe(one);
  const both = { payoutIds: ['a', 'c'], besides: [...one.besides, ...other.besides], alike: ['b', 'd'] };
  expect(joined(one, other)).toEqual({ ...one, ...both });
  expect(joined(bare, other)).toMatchObject({ payoutIds: ['c'], besides: other.besides, alike: ['d'] });
  expect(joined(one, bare)).toMatchObject({ payoutIds: ['a'], besides: one.besides, alike: ['b'] });
});
