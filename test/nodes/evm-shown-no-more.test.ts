// What a block pays on Ethereum's chain is a node's word: one that has shown what never was, and shows it no more, leaves it in the books of a block
// that stays. A rescan takes it back, by the word of two nodes where there are several, and brings back what is shown again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { type Rescanned, rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';
import { ledgerIsChain, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const NOBODY = `0x${'aa'.repeat(20)}`;
const UNITS = 90_000_000n;
const QUARTER_HOUR_MS = 900_000;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const both = (alteration: Alteration): void => {
  for (const node of [nodes.read, nodes.other]) node.alter(alteration);
};
const word = (hex: string): string => `0x${hex.replace('0x', '').padStart(64, '0')}`;
/** Nodes show in a transaction that it pays so much to these addresses, instead of what it does. */
const paying = (hash: string, units: bigint, to: readonly string[]): Alteration =>
  receipts((one) => {
    const [log] = one.logs;
    if (one.transactionHash !== hash || log === undefined) return one;
    const [event, from] = log.topics;
    const logs = to.map((address, n) => ({
      ...log,
      logIndex: `0x${(90 + n).toString(16)}`,
      topics: [event, from, word(address)],
      data: word(units.toString(16)),
    }));
    return { ...one, logs };
  });
async function owed(): Promise<{ readonly id: string; readonly address: string }> {
  const one = await service.owe('USDT', 90_00n);
  ours.add(one.address);
  return one;
}
/** As the command does: nothing that the worker has read is remembered. */
async function rescanned(fromHeight: number): Promise<Rescanned> {
  const { ctx, anvil } = service;
  const urls = new Map([['USDT' as const, [nodes.read.url, nodes.other.url]]]);
  const { clock } = ctx.ports;
  const { chains, close } = createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  const done = await rescan({ ...ctx, ports: { ...ctx.ports, chains } }, 'USDT', { fromHeight });
  await close();
  return done;
}
const height = async (): Promise<number> => Number(await service.anvil.rpc<string>('eth_blockNumber'));
/** Payments that are gone are so for ten minutes before they are reversed. */
async function later(): Promise<void> {
  await service.work(QUARTER_HOUR_MS);
  await service.mine();
}
/** What is moved to the address that payouts leave from has left by then, or has arrived. */
async function booksAreRight(): Promise<void> {
  await works(service, 3);
  await ledgerIsChain(service, ours);
}

test.each([
  ['before it is final', 10],
  ['and was read twice', FINAL + 10],
] as const)('a made-up payment that was booked, %s', { timeout: TIMEOUT }, async (_, blocks) => {
  const { id, address } = await owed();
  const { hash } = await service.pay('USDT', NOBODY, 5n);
  both(paying(hash, UNITS, [address, await service.hot('USDT')]));
  await service.mine();
  const fromHeight = await height();
  await service.mine(blocks);
  await service.findings();
  expect(await service.status(id)).toBe('succeeded');
  both({});
  await service.mine(FINAL);
  expect((await service.findings()).join()).toContain('bursar chain rescan');
  const { takenBack, doubted, found } = await rescanned(fromHeight);
  expect(takenBack).toMatchObject([
    { height: fromHeight, amount: UNITS },
    { height: fromHeight, amount: UNITS },
  ]);
  expect([doubted, found]).toEqual([[], []]);
  await later();
  expect(await service.status(id)).toBe('review');
  await booksAreRight();
});

test('a raised one: what is there stays', { timeout: TIMEOUT }, async () => {
  const { id, address } = await owed();
  const { hash } = await service.pay('USDT', address, UNITS / 2n);
  both(paying(hash, UNITS, [address]));
  await service.mine();
  const fromHeight = await height();
  await service.mine(FINAL);
  expect(await service.status(id)).toBe('succeeded');
  both({});
  const { takenBack } = await rescanned(fromHeight);
  expect(takenBack).toMatchObject([{ amount: UNITS }]);
  await service.mine();
  await later();
  await later();
  await booksAreRight();
});

test('what nodes hid while it was read again is credited again once they show it', { timeout: TIMEOUT }, async () => {
  const { id, address } = await owed();
  const { hash } = await service.pay('USDT', address, UNITS);
  await service.mine();
  const fromHeight = await height();
  await service.mine(FINAL);
  both(paying(hash, UNITS, []));
  expect((await rescanned(fromHeight)).takenBack).toHaveLength(1);
  await later();
  expect(await service.status(id)).toBe('review');
  both({});
  expect((await rescanned(fromHeight)).found).toMatchObject([{ transactionId: id }]);
  await service.mine();
  expect(await service.status(id)).toBe('succeeded');
  await booksAreRight();
});

test('of two nodes both must show the block without it', { timeout: TIMEOUT }, async () => {
  const { id, address } = await owed();
  const { hash } = await service.pay('USDT', address, UNITS);
  await service.mine();
  const fromHeight = await height();
  await service.mine(FINAL);
  for (const alteration of [SILENT, {}]) {
    nodes.read.alter(paying(hash, UNITS, []));
    nodes.other.alter(alteration);
    const { takenBack, doubted } = await rescanned(fromHeight);
    expect(takenBack).toEqual([]);
    expect(doubted).toMatchObject([{ amount: UNITS, height: fromHeight }]);
    both({});
    // one that was silent rests for a while
    await service.work(LATER_MS);
  }
  await later();
  expect(await service.status(id)).toBe('succeeded');
  await booksAreRight();
});
