// Database and signer were put back together, to before a transaction that the node which is read does not show yet: it is in the mempool, or in a
// block that another node has. The payout that it pays is not signed again.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { readReadiness } from '../../src/flow/readiness.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { FINAL, LATER_MS, receiveDollars, SILENT } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b4'.repeat(20)}`;
const FIFTY = 50_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let hot: string;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  hot = await service.hot('USDT');
  await receiveDollars(service, 900n);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
beforeEach(() => {
  for (const node of [nodes.read, nodes.other]) node.alter({});
  service.told.length = 0;
});

const shown = async (id: string) => {
  const found = await readPayout(service.db, id);
  return { status: found?.status, heldReason: found?.heldReason, error: found?.error, txid: found?.txid };
};
const count = async (): Promise<number> => Number(await service.anvil.rpc<string>('eth_getTransactionCount', hot, 'latest'));
const problems = async () => (await readReadiness(service.ctx, [])).problems;
/** As this server did before it was put back. */
async function paidBefore(): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', PAYEE, FIFTY);
  return service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: service.anvil.token, data, gas: '0x30d40' });
}
/** It is found, booked as what has paid the payout, and nothing was paid twice. */
async function isFound(id: string, txid: string, before: bigint): Promise<void> {
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  await service.price();
  expect(await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: false })).toMatchObject({ payoutIds: [id], lost: 0n });
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', txid });
  expect(await service.findings()).toEqual([]);
  await service.goOn();
  expect((await service.units(PAYEE)) - before).toBe(FIFTY);
}

test.each([
  ['the first that ever left', false],
  ['a later one', true],
])('what waits in the mempool and was signed by nobody here: %s', { timeout: TIMEOUT }, async () => {
  const before = await service.units(PAYEE);
  const id = await service.request(PAYEE);
  const txid = await paidBefore();
  const signed = service.journal.count();
  service.restart();
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(
    /nothing new is paid in USDT: a node knows of \d+ transactions that our address 0x\w+ has sent/,
  );
  expect([service.journal.count(), await openBreakers(service.db)]).toEqual([signed, []]);
  expect((await problems()).join()).toMatch(new RegExp(`${id} waits: a node knows of`));
  await isFound(id, txid, before);
  await service.work(LATER_MS);
  expect((await problems()).join()).not.toMatch(/a node knows of/);
});

test('what another node has in a block, while the one that is read is behind', { timeout: TIMEOUT }, async () => {
  const before = await service.units(PAYEE);
  const id = await service.request(PAYEE);
  const used = await count();
  const txid = await paidBefore();
  await service.mine(1);
  nodes.read.alter({
    instead: ({ method, params: [address] }) =>
      method === 'eth_getTransactionCount' && String(address).toLowerCase() === hot ? { result: `0x${used.toString(16)}` } : null,
  });
  const signed = service.journal.count();
  service.restart();
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(
    new RegExp(`a node knows of ${used + 1} transactions.*: .* says ${used}; .* says ${used + 1}`),
  );
  expect([service.journal.count(), await openBreakers(service.db)]).toEqual([signed, []]);
  nodes.read.alter({});
  await isFound(id, txid, before);
});

test('what a node has that was away when nonces were compared first: nothing of it is cancelled either', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  // payouts were stopped when it was requested
  await service.stop('INV-7');
  const id = await service.request(PAYEE);
  const txid = await paidBefore();
  // the node that is read does not look at what waits
  nodes.read.alter({ instead: ({ params: [, at] }) => (at === 'pending' ? { result: null } : null) });
  nodes.other.alter(SILENT);
  service.restart();
  await service.work(LATER_MS);
  await service.goOn();
  nodes.other.alter({});
  service.restart();
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/nothing new is paid in USDT: a node knows of \d+ transactions/);
  const cancelled = cancelPayout(service.ctx, { merchantId: service.merchantId, payoutId: id });
  await expect(cancelled).rejects.toMatchObject({ code: 'payout_not_cancellable', passes: true });
  nodes.read.alter({});
  await isFound(id, txid, before);
});

test('after a start payouts go on with one node of two, and while what was signed here waits for a block', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  const ids = [await service.request(PAYEE)];
  await service.work(LATER_MS);
  nodes.other.alter(SILENT);
  // some nodes do not say what waits
  nodes.read.alter({ instead: ({ params: [, at] }) => (at === 'pending' ? { result: null } : null) });
  ids.push(await service.request(PAYEE));
  service.restart();
  await service.work(LATER_MS);
  nodes.other.alter({});
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  expect((await service.units(PAYEE)) - before).toBe(2n * FIFTY);
  expect(await Promise.all(ids.map(async (id) => (await shown(id)).status))).toEqual(['completed', 'completed']);
});
