// What a transaction on Ethereum's chain pays has its place there, and nodes that have shown a block otherwise may show other places later: whatever
// was booked and has changed places is booked under keys that nothing else has had.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { ledgerIsChain, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const NOBODY = `0x${'aa'.repeat(20)}`;
const QUARTER_HOUR_MS = 900_000;
const PLACES = 8;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const word = (hex: string): string => `0x${hex.replace('0x', '').padStart(64, '0')}`;
/** Nodes show that a transaction pays so much to an address at these places, and nothing to it elsewhere. */
const paying = (hash: string, address: string, units: Readonly<Record<number, bigint>>): Alteration =>
  receipts((one) => {
    const [log] = one.logs;
    if (one.transactionHash !== hash || log === undefined) return one;
    const [event, from] = log.topics;
    const logs = Array.from({ length: PLACES }, (_, place) => ({
      ...log,
      logIndex: `0x${(90 + place).toString(16)}`,
      topics: [event, from, word(units[place] === undefined ? NOBODY : address)],
      data: word((units[place] ?? 1n).toString(16)),
    }));
    return { ...one, logs };
  });
/** As another process reads the chain: nothing that the worker has read is remembered. */
async function reads<T>(read: (ctx: ChainContext) => Promise<T>): Promise<T> {
  const { ctx, anvil } = service;
  const urls = new Map([['USDT' as const, [nodes.read.url, nodes.other.url]]]);
  const { clock } = ctx.ports;
  const { chains, close } = createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  const done = await read({ ...ctx, ports: { ...ctx.ports, chains } });
  await close();
  return done;
}
const rescanned = (fromHeight: number) => reads((ctx) => rescan(ctx, 'USDT', { fromHeight }));
/** Payments that are gone are so for ten minutes before they are reversed. */
async function later(): Promise<void> {
  await service.mine();
  await service.work(QUARTER_HOUR_MS);
  await service.mine();
}

/** A transaction that pays nobody we know, and of which nodes show that it pays an address of ours. */
async function madeUp(address: string) {
  const { hash } = await service.pay('USDT', NOBODY, 5n);
  let fromHeight = 0;
  return {
    /** In millions of units, by place: in its next block, and afterwards by what a rescan makes of its block. */
    async shows(units: Readonly<Record<number, bigint>>): Promise<void> {
      const scaled = Object.fromEntries(Object.entries(units).map(([place, amount]) => [place, amount * 1_000_000n]));
      for (const node of [nodes.read, nodes.other]) node.alter(paying(hash, address, scaled));
      if (fromHeight > 0) {
        await rescanned(fromHeight);
        return later();
      }
      await service.mine();
      fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
      await service.mine(FINAL);
      await service.work(LATER_MS);
    },
    async isShownAsItIs(): Promise<void> {
      for (const node of [nodes.read, nodes.other]) node.alter({});
      await rescanned(fromHeight);
      await later();
      await works(service, 3);
      await ledgerIsChain(service, ours);
    },
  };
}

test.each([
  [
    'one after the other stands behind all places',
    [
      { 0: 10n, 7: 30n },
      { 5: 60n, 7: 11n },
      { 0: 60n, 7: 30n },
    ],
  ],
  [
    'two come to a place that neither has had',
    [
      { 0: 30n, 7: 60n },
      { 3: 60n, 7: 11n },
      { 3: 30n, 5: 60n },
      { 3: 60n, 5: 30n },
    ],
  ],
])('payments that were booked: %s', { timeout: TIMEOUT }, async (_, all) => {
  const { id, address } = await service.owe('USDT', 90_00n);
  ours.add(address);
  const paid = await madeUp(address);
  await paid.shows({ 0: 60n, 7: 30n });
  expect(await service.status(id)).toBe('succeeded');
  for (const units of all) {
    await paid.shows(units);
    const { rows } = await service.db.query<{ vout: number; amount: string }>({
      text: 'select vout, amount from decided_payments where transaction_id = $1 and part_key is not null',
      values: [id],
    });
    expect(Object.fromEntries(rows.map(({ vout, amount }) => [vout, BigInt(amount) / 1_000_000n]))).toEqual(units);
    // none of it is there, and what only has other places was not read a second time
    expect((await service.findings()).filter((one) => !/^(EVM|RECON)-/.test(one))).toEqual([]);
  }
  await paid.isShownAsItIs();
});

test('capital that an entry says is gone, and other capital at its place', { timeout: TIMEOUT }, async () => {
  const paid = await madeUp(await service.hot('USDT'));
  const before = await service.balance('asset:chain:USDT');
  for (const units of [10n, null, 20n, 30n, null, 10n]) {
    await paid.shows(units === null ? {} : { 0: units });
    await service.mine(FINAL);
    await service.work(LATER_MS);
    expect((await service.balance('asset:chain:USDT')) - before).toBe((units ?? 0n) * 1_000_000n);
  }
  await paid.isShownAsItIs();
});

test('of two nodes one names other places of what both show: nothing is taken back', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 90_00n);
  const { hash } = await service.pay('USDT', NOBODY, 5n);
  for (const node of [nodes.read, nodes.other]) node.alter(paying(hash, address, { 0: 60_000_000n, 7: 30_000_000n }));
  await service.mine(FINAL);
  nodes.read.alter(paying(hash, address, { 0: 30_000_000n, 7: 60_000_000n }));
  await reads(async (ctx) => {
    while ((await deepScan(ctx, 'USDT')) > 0);
  });
  await later();
  expect(await service.status(id)).toBe('succeeded');
  const { rows } = await service.db.query({
    text: 'select vout, amount, state from payments where transaction_id = $1 order by vout',
    values: [id],
  });
  expect(rows).toEqual([
    { vout: 0, amount: '30000000', state: 'mined' },
    { vout: 7, amount: '60000000', state: 'mined' },
  ]);
});

test('of two nodes one names other places in the second reading: what is recorded is found', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 90_00n);
  const { hash } = await service.pay('USDT', NOBODY, 5n);
  for (const node of [nodes.read, nodes.other])
    node.alter(paying(hash, address, { 0: 60_000_000n, 2: 10_000_000n, 7: 20_000_000n }));
  await service.mine(FINAL);
  nodes.read.alter(paying(hash, address, { 2: 60_000_000n, 7: 10_000_000n, 3: 20_000_000n }));
  expect((await service.findings()).filter((one) => one.includes(hash))).toEqual([]);
});

test.each([
  ['a new one', { 3: 30n, 7: 60n }],
  ['each that of the other', { 0: 30n, 7: 60n }],
] as const)(
  'of two nodes one names other places after the second reading, %s: it is read anew',
  {
    timeout: TIMEOUT,
  },
  async (_, units) => {
    const { id, address } = await service.owe('USDT', 90_00n);
    const { hash } = await service.pay('USDT', NOBODY, 5n);
    for (const node of [nodes.read, nodes.other]) node.alter(paying(hash, address, { 0: 60n, 7: 30n }));
    await service.mine(FINAL);
    const found = async () => (await service.findings()).filter((one) => one.includes(hash));
    expect(await found()).toEqual([]);
    nodes.read.alter(paying(hash, address, units));
    await reads(async (ctx) => {
      while ((await deepScan(ctx, 'USDT')) > 0);
    });
    const { rows } = await service.db.query<{ vout: number; amount: string }>({
      text: 'select vout, amount from payments where transaction_id = $1',
      values: [id],
    });
    expect(Object.fromEntries(rows.map(({ vout, amount }) => [vout, BigInt(amount)]))).toEqual(units);
    expect(await found()).toEqual([]);
  },
);

test('of two nodes one names other places of equal payments after the second reading: each is read anew', {
  timeout: TIMEOUT,
}, async () => {
  const [one, two] = [await service.owe('USDT', 90_00n), await service.owe('USDT', 90_00n)];
  const { hash } = await service.pay('USDT', NOBODY, 5n);
  /** Ninety dollars to each, in this order. */
  const inOrder = (...all: readonly { readonly address: string }[]): Alteration =>
    receipts((receipt) => {
      const [log] = receipt.logs;
      if (receipt.transactionHash !== hash || log === undefined) return receipt;
      const [event, from] = log.topics;
      const logs = all.map(({ address }, place) => ({
        ...log,
        logIndex: `0x${(90 + place).toString(16)}`,
        topics: [event, from, word(address)],
        data: word(90_000_000n.toString(16)),
      }));
      return { ...receipt, logs };
    });
  for (const node of [nodes.read, nodes.other]) node.alter(inOrder(one, two));
  await service.mine(FINAL);
  const found = async () => (await service.findings()).filter((finding) => finding.includes(hash));
  expect(await found()).toEqual([]);
  nodes.read.alter(inOrder(two, one));
  await reads(async (ctx) => {
    while ((await deepScan(ctx, 'USDT')) > 0);
  });
  expect(await found()).toEqual([]);
  expect([await service.status(one.id), await service.status(two.id)]).toEqual(['succeeded', 'succeeded']);
});
