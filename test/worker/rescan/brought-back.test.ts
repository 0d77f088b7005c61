// Where a rescan of Ethereum's chain looks for capital, and what it brings back of it, amount by amount. On a real database; what nodes say is given to it.
import { describe, expect, test, vi } from 'vitest';
import { evmAddressOf } from '../../../src/core/currencies/evm.ts';
import { NodeTrouble } from '../../../src/outside/utxo/node/trouble.ts';
import { readUnconfirmed } from '../../../src/store/chain/unconfirmed-blocks.ts';
import { lockOutputs } from '../../../src/store/payouts/batches.ts';
import type { MoreAtOwn } from '../../../src/store/sweeps/balances.ts';
import { insertWriteOff } from '../../../src/store/sweeps/written-off.ts';
import { bringBackCapital, knowOwnAnew, soughtCapital, takeBackUnshown } from '../../../src/worker/rescan/taken-back.ts';
import {
  AT_MS,
  at,
  BLOCKS,
  blockForEach,
  bufferOf,
  CODES,
  factsOf,
  inBlocks,
  nowhere,
  own,
  type Paid,
  pays,
  ports,
  records,
  rows,
} from './rescanned-block.ts';

blockForEach();

describe('where capital is looked for', () => {
  const sought = () => soughtCapital(at.ctx, 'USDT');
  /** A balance that was compared, and what was known then. */
  const compared = (script: string, found: bigint, known = 0n) =>
    rows(
      `insert into address_balances (currency, script, height, known, found, compared_at) values ('USDT', decode($1, 'hex'), $2, $3, $4, now())`,
      [script, BLOCKS, known, found],
    );
  const says = (units: bigint) => {
    at.least = { USDT: async () => units };
  };

  test('is at an address that holds more than is known, no more than each node says', async () => {
    const script = await own();
    await records('USDT', pays([script, 20n]));
    await rows(
      `insert into own_outputs (currency, txid, vout, amount, script) values ('USDT', 'gone', 0, 3, decode($1, 'hex'))`,
      [script],
    );
    const off = {
      currency: 'USDT',
      script: bufferOf(script),
      amount: 5n,
      block: at.block,
      batchId: null,
      by: 'x',
      evidence: 'x',
    } as const;
    await insertWriteOff(at.ctx.db, { ...off, atMs: AT_MS });
    // 15 are known, and 3 are gone
    await compared(script, 28n, 20n);
    const gone = [bufferOf(script)];
    const more = { script: bufferOf(script), height: BLOCKS, gone: 3n, writtenOff: 5n };
    for (const [units, amount] of [
      [26n, 8n],
      [19n, 1n],
      [28n, 10n],
      [30n, 10n],
    ] as const) {
      says(units);
      expect(await sought()).toEqual({ gone, more: [{ ...more, amount }], notSought: [] });
    }
    for (const units of [18n, 17n]) {
      says(units);
      expect(await sought()).toEqual({ gone, more: [], notSought: [] });
    }
  });

  test('is not where it was found since', async () => {
    const script = await own();
    await records('USDT', pays([script, 20n]));
    await compared(script, 20n, 12n);
    says(20n);
    expect(await sought()).toEqual({ gone: [], more: [], notSought: [] });
    expect((await rows('select known::int as n from address_balances'))[0]?.n).toBe(20);
  });

  test('is told of an address about which nodes do not answer, or that has sent something', async () => {
    const script = await own();
    const address = evmAddressOf(script);
    await compared(script, 9n);
    at.least = { USDT: () => Promise.reject(new NodeTrouble('down', 'no node answers')) };
    expect(await sought()).toEqual({ gone: [], more: [], notSought: [{ address, reason: 'no node answers' }] });
    at.least = { USDT: () => Promise.reject(new TypeError('a fault')) };
    await expect(sought()).rejects.toThrow('a fault');
    says(9n);
    await rows(
      `insert into forgotten_moves (currency, txid, sender, nonce, height, block_hash) values ('USDT', 'm', $1, 1, 1, 'h')`,
      [script.slice(6).padStart(64, '0')],
    );
    expect(await sought()).toMatchObject({
      more: [],
      notSought: [{ address, reason: expect.stringContaining('it has sent something') }],
    });
  });

  test('is only where something is gone while the second reading has not begun everywhere', async () => {
    await compared(await own(), 9n);
    says(9n);
    const [before] = await rows(`delete from chain_reconciled where currency = 'ETH' returning from_height, height, hash`);
    expect(await sought()).toEqual({ gone: [], more: [], notSought: [] });
    await rows(
      `insert into chain_reconciled (currency, from_height, height, hash, updated_at) values ('ETH', $1, $2, $3, now())`,
      [before?.from_height, before?.height, before?.hash],
    );
    expect((await sought()).more).toHaveLength(1);
  });

  test('is nowhere in the family of Bitcoin, and nobody is waited for there', async () => {
    const script = '0014'.padEnd(44, '7');
    await rows(
      `insert into own_addresses (account_xpub_id, address_index, currency, script) select id, 999, 'BTC', decode($1, 'hex') from account_xpubs`,
      [script],
    );
    await rows(`insert into own_outputs (currency, txid, vout, amount, script) values ('BTC', 'gone', 0, 3, decode($1, 'hex'))`, [
      script,
    ]);
    expect(await soughtCapital(at.ctx, 'BTC')).toEqual({ gone: [], more: [], notSought: [] });
    await at.ctx.db.transaction(async (sql) => {
      await lockOutputs(sql, 'ETH');
      await knowOwnAnew(at.ctx, 'BTC');
    });
  });

  test.each(CODES)('is not known anew while somebody books something of %s', async (code) => {
    let done: Promise<void> | undefined;
    await at.ctx.db.transaction(async (sql) => {
      await lockOutputs(sql, code);
      done = knowOwnAnew(at.ctx, 'USDT');
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await vi.waitFor(async () => expect((await at.admin.query(waits)).rowCount).toBe(1), 4_000);
    });
    await done;
  });
});

describe('capital that a block pays', () => {
  const moreAt = (script: string, amount: bigint, upTo = at.block.height): MoreAtOwn => ({
    ...{ script: bufferOf(script), height: upTo, amount, gone: 0n, writtenOff: 0n },
  });
  /** @param paid scripts that the block pays, as far as its calls are shown (default: each that is looked for) */
  async function brings(gone: readonly string[], more: MoreAtOwn[], paid?: readonly string[]): Promise<readonly bigint[]> {
    const all = paid?.map(bufferOf) ?? [...gone.map(bufferOf), ...more.map(({ script }) => script)];
    const back = await bringBackCapital(at.ctx, ports.USDT, at.block, { gone: gone.map(bufferOf), more, paid: all });
    for (const one of back) expect(one.height).toBe(at.block.height);
    return back.map(({ amount }) => amount);
  }
  const NOBODY = `65766d${'5a'.repeat(20)}`;

  test('and that nothing is looked for at is not read', async () => {
    const script = await own();
    at.read = { touched: [pays([script, 5n])] };
    expect(await brings([], [], [script])).toEqual([]);
    at.block = { ...at.block, facts: factsOf({ inner: 'unseen' }) };
    expect(await brings([], [], [script])).toEqual([]);
    expect(at.asked).toBe(0);
  });

  test('is read where it pays one that is looked for, or where not all calls are shown', async () => {
    const script = await own();
    at.read = { touched: [pays([script, 5n])] };
    expect([await brings([], [moreAt(script, 9n)], [NOBODY]), at.asked]).toEqual([[], 0]);
    expect([await brings([], [moreAt(script, 9n)], [NOBODY, script]), at.asked]).toEqual([[5n], 1]);
    at.read = { touched: [pays([script, 3n])] };
    at.block = { ...at.block, facts: factsOf({ inner: 'by_balance' }) };
    expect([await brings([], [moreAt(script, 4n)], []), at.asked]).toEqual([[3n], 2]);
    expect(await inBlocks()).toEqual([3, 5]);
  });

  test('comes back where something of its transaction is gone, and is booked once', async () => {
    const script = await own();
    const one = pays([script, 5n], [script, 6n]);
    await records('USDT', one);
    expect(await takeBackUnshown(at.ctx, ports.USDT, at.block)).toHaveLength(2);
    at.read = { touched: [one] };
    const more = [moreAt(script, 20n)];
    expect(await brings([script], more)).toEqual([5n, 6n]);
    expect([await inBlocks(), await nowhere()]).toEqual([[5, 6], []]);
    // what was taken back is beside what more there is
    expect(more).toEqual([moreAt(script, 20n)]);
    // and nobody is at.asked about what is known
    at.read = { ...at.read, unconfirmed: { state: 'silent', reason: 'no answer', scripts: [script] } };
    expect(await brings([script], more)).toEqual([]);
    expect(await readUnconfirmed(at.ctx.db, 'USDT', { after: -1, limit: 10 })).toEqual([]);
  });

  test('is recorded as far as its address holds more than is known, one transaction after the other', async () => {
    const [script, other] = [await own(), await own()];
    at.read = { touched: [pays([script, 6n]), pays([script, 5n]), pays([script, 4n])] };
    const more = [moreAt(script, 10n), moreAt(other, 9n)];
    expect(await brings([], more)).toEqual([6n, 4n]);
    expect(await inBlocks()).toEqual([4, 6]);
    expect(more).toEqual([moreAt(script, 0n), moreAt(other, 9n)]);
  });

  test.each<
    [
      string,
      (script: string, other: string) => { readonly gone?: string; readonly paid: readonly Paid[]; readonly upTo?: number },
    ]
  >([
    [
      'of which one address holds no more',
      (script, other) => ({
        gone: other,
        paid: [
          [script, 1n],
          [other, 1n],
        ],
      }),
    ],
    ['to where nothing more is', (_script, other) => ({ gone: other, paid: [[other, 1n]] })],
    ['of more than there is', (script) => ({ paid: [[script, 11n]] })],
    ['after the block up to which it was compared', (script) => ({ paid: [[script, 1n]], upTo: 1 })],
  ])('is not recorded from a transaction %s', async (_what, of) => {
    const [script, other, third] = [await own(), await own(), await own()];
    const { gone, paid, upTo } = of(script, other);
    at.read = { touched: [pays(...paid)] };
    const more = [moreAt(script, 10n, upTo), moreAt(third, 10n)];
    expect(await brings(gone === undefined ? [] : [gone], more)).toEqual([]);
    expect(await inBlocks()).toEqual([]);
    expect(more.map(({ amount }) => amount)).toEqual([10n, 10n]);
  });
});
