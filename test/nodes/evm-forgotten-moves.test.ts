// Database and signer were put back together, to before payments had been moved from the addresses of their transactions, and ether for the gas of that:
// what our addresses have sent to each other is booked by itself, and nothing stops.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { readMoves } from '../../src/store/sweeps/forgotten-moves.ts';
import { portOf } from '../../src/worker/chain/context.ts';
import { writeMovesBack } from '../../src/worker/payouts/evm/forgotten-moves.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { SILENT, WITHOUT_RECEIPTS } from './evm-lied-to.ts';
import { GAS_PRICE, ledgerIsChain, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'c7'.repeat(20)}`;
const STRANGER = `0x${'7c'.repeat(20)}`;
const TENTH = 10n ** 17n;
const UNITS = 300_000_000n;
const LATER_MS = 61_000;
const FINAL = 65;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const hex = (amount: bigint): string => `0x${amount.toString(16)}`;

/** Transactions that were paid whole, at final depth, which nothing has moved yet. */
async function paid() {
  const [ether, dollars] = [await service.owe('ETH', 300_00n), await service.owe('USDT', 300_00n)];
  await service.pay('ETH', ether.address, TENTH);
  await service.pay('USDT', dollars.address, UNITS);
  await service.mine(FINAL);
  for (const { address } of [ether, dollars]) ours.add(address);
  return { ether: ether.address, dollars: dollars.address };
}
/** The chain has moved both, and of that nothing is known here. */
async function movedBefore({ ether, dollars }: Awaited<ReturnType<typeof paid>>): Promise<{ readonly topUp: string }> {
  await sent(service, ether, await service.hot('ETH'), { value: TENTH - 21_000n * GAS_PRICE });
  const topUp = await sent(service, await service.hot('ETH'), dollars, { value: 100_000n * GAS_PRICE });
  await service.mine();
  await sent(service, dollars, service.anvil.token, { data: transfer(await service.hot('USDT'), UNITS) });
  return { topUp };
}
/** What "bursar payout recover" does. */
async function recovers(txid: string): Promise<void> {
  await service.price();
  expect(await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: true })).toMatchObject({ lost: 100n });
}
const ended = async (purpose: 'sweep' | 'top_up') => (await service.batches(purpose)).map(({ state }) => state);

test.each(['the first that ever left', 'later ones'])(
  'what was moved is booked, and the rest goes on: %s',
  { timeout: TIMEOUT },
  async () => {
    const [sweeps, topUps] = [await ended('sweep'), await ended('top_up')];
    const addresses = await paid();
    await movedBefore(addresses);
    await service.mine();
    service.restart();
    await service.work(LATER_MS);
    expect(service.told.join()).toMatch(/nothing new is paid in ETH: 0x\w+ has left for another address of ours/);
    expect(await openBreakers(service.db)).toEqual([]);
    await service.mine(FINAL);
    await works(service, 2, FINAL);
    expect(await openBreakers(service.db)).toEqual([]);
    expect(await ended('sweep')).toEqual([...sweeps, 'final', 'final']);
    expect(await ended('top_up')).toEqual([...topUps, 'final']);
    await ledgerIsChain(service, ours);
    // what comes there later is moved with the next nonce
    await service.pay('ETH', addresses.ether, TENTH);
    await service.pay('USDT', addresses.dollars, UNITS);
    await service.mine(FINAL);
    const before = await service.units(PAYEE);
    const id = await service.request(PAYEE);
    await works(service, 5, FINAL);
    expect([await service.ether(addresses.ether), await service.units(addresses.dollars)]).toEqual([0n, 0n]);
    expect((await readPayout(service.db, id))?.status).toBe('completed');
    expect((await service.units(PAYEE)) - before).toBe(50_000_000n);
    expect(await openBreakers(service.db)).toEqual([]);
    await ledgerIsChain(service, ours);
  },
);

test('ether for gas is booked after what had left before it, which is found first', { timeout: TIMEOUT }, async () => {
  const topUps = await ended('top_up');
  const [hot, dollars] = [await service.hot('ETH'), await service.hot('USDT')];
  const txid = await sent(service, hot, STRANGER, { value: 100n });
  await sent(service, hot, dollars, { value: TENTH });
  await service.mine(FINAL);
  service.restart();
  await works(service, 1, FINAL);
  expect((await openMovements(service.db)).map((one) => one.txid)).toEqual([txid]);
  expect(await ended('top_up')).toEqual(topUps);
  await recovers(txid);
  await service.goOn();
  service.restart();
  await works(service, 2, FINAL);
  expect(await ended('top_up')).toEqual([...topUps, 'final']);
  expect([await openBreakers(service.db), await openMovements(service.db)]).toEqual([[], []]);
  await ledgerIsChain(service, ours);
});

test('what only one of two nodes shows of a move is not booked', { timeout: TIMEOUT }, async () => {
  const sweeps = await ended('sweep');
  const { address } = await service.owe('ETH', 300_00n);
  ours.add(address);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  await sent(service, address, await service.hot('ETH'), { value: TENTH - 21_000n * GAS_PRICE });
  await service.mine(FINAL);
  nodes.other.alter(WITHOUT_RECEIPTS);
  service.restart();
  await works(service, 1, FINAL);
  expect(await ended('sweep')).toEqual(sweeps);
  nodes.other.alter({});
  service.restart();
  await works(service, 1, FINAL);
  expect(await ended('sweep')).toEqual([...sweeps, 'final']);
  await ledgerIsChain(service, ours);
});

const NOT_FINAL_YET: Alteration = {
  instead: ({ params: [tag] }) =>
    tag === 'finalized' ? { error: { code: -32000, message: 'finalized block not found' } } : null,
};
test.each([
  ['calls its block final later', NOT_FINAL_YET],
  ['is silent for a while', SILENT],
])('nothing stops by a move while the second node %s', { timeout: TIMEOUT }, async (_, says) => {
  const [sweeps, topUps] = [await ended('sweep'), await ended('top_up')];
  const { topUp } = await movedBefore(await paid());
  await service.mine(FINAL);
  nodes.other.alter(says);
  service.restart();
  service.told.length = 0;
  await service.work(LATER_MS);
  await service.mine();
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/nothing new is paid in ETH: 0x\w+ has left for another address of ours/);
  expect(await openBreakers(service.db)).toEqual([]);
  // that there is more than is known where it went stops nothing
  expect((await service.findings()).filter((finding) => !finding.startsWith('EVM-2'))).toEqual([]);
  expect([await ended('sweep'), await ended('top_up')]).toEqual([sweeps, topUps]);
  nodes.other.alter({});
  await service.price();
  // ours where it has gone: no loss, whatever an operator accepts
  await expect(recoverSent(service.ctx, topUp, { by: 'test', acceptsLoss: true })).rejects.toThrow('another address of ours');
  await works(service, 2, FINAL);
  expect([await ended('sweep'), await ended('top_up')]).toEqual([
    [...sweeps, 'final', 'final'],
    [...topUps, 'final'],
  ]);
  expect([await openBreakers(service.db), await openMovements(service.db)]).toEqual([[], []]);
  await ledgerIsChain(service, ours);
});

test('a move of our address is known however many others were noted before it', { timeout: TIMEOUT }, async () => {
  const [sweeps, topUps] = [await ended('sweep'), await ended('top_up')];
  const noted = `insert into forgotten_moves select 'ETH', '0x' || lpad(to_hex(n), 64, '0'), 'address ' || n, 0, height, hash from generate_series(1, 5000) n,
                   lateral (select height, hash from blocks where currency = 'ETH' order by height desc limit 1) newest`;
  await service.db.query({ text: noted, values: [] });
  await movedBefore(await paid());
  await service.mine(FINAL);
  nodes.other.alter(NOT_FINAL_YET);
  service.restart();
  service.told.length = 0;
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/nothing new is paid in ETH: 0x\w+ has left for another address of ours/);
  expect([await openBreakers(service.db), await openMovements(service.db)]).toEqual([[], []]);
  nodes.other.alter({});
  await service.db.query({ text: `delete from forgotten_moves where sender like 'address %'`, values: [] });
  await works(service, 2, FINAL);
  expect([await ended('sweep'), await ended('top_up')]).toEqual([
    [...sweeps, 'final', 'final'],
    [...topUps, 'final'],
  ]);
  await ledgerIsChain(service, ours);
});

test('a move whose block is replaced while moves are looked at is noted in its new one', { timeout: TIMEOUT }, async () => {
  const sweeps = await ended('sweep');
  const { address } = await service.owe('ETH', 300_00n);
  ours.add(address);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  const value = TENTH - 21_000n * GAS_PRICE;
  const to = await service.hot('ETH');
  const txid = await sent(service, address, to, { value });
  await service.mine();
  const again = { from: address, to, value: hex(value), gas: hex(21_000n), gasPrice: hex(GAS_PRICE), nonce: '0x0' };
  let isReplaced = false;
  nodes.read.alter({
    async before({ params: [tag] }) {
      if (tag !== 'finalized' || isReplaced) return;
      isReplaced = true;
      await service.anvil.rpc('anvil_reorg', 2, [[again, 0]]);
      await service.mine();
    },
  });
  await writeMovesBack(service.ctx, { currency: 'ETH', port: portOf(service.ctx, 'ETH') as EvmPort });
  nodes.read.alter({});
  const height = Number((await service.anvil.rpc<{ blockNumber: string }>('eth_getTransactionByHash', txid)).blockNumber);
  expect((await readMoves(service.db, 'ETH', 10)).map((one) => [one.txid, one.block.height])).toEqual([[txid, height]]);
  await service.mine(FINAL);
  service.restart();
  await works(service, 1, FINAL);
  expect(await ended('sweep')).toEqual([...sweeps, 'final']);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
});
