// The first nonce of an address that payouts leave from is what the chain has used of it, as nodes say: one that lies about it for a moment would leave a
// gap before everything that ever leaves from there.
import { expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'f1'.repeat(20)}`;

dollarsOnTwoNodesForAll();

const used = (nonce: number): Alteration => ({
  instead: ({ method }) => (method === 'eth_getTransactionCount' ? { result: `0x${nonce.toString(16)}` } : null),
});

/** What holds payouts up, as /readyz and the log say it. */
const waiting = async (): Promise<string> => [...(await readReadiness(service.ctx, [])).problems, ...service.told].join();

test('a payout: one of two nodes that says that more are used leaves no gap before it', { timeout: TIMEOUT }, async () => {
  nodes.read.alter(used(3));
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  const { host } = new URL(nodes.read.url);
  expect(await waiting()).toMatch(
    new RegExp(`two nodes must say alike how many transactions 0x\\w+ has sent.*${host} says 3; [^;]* says 0`),
  );
  nodes.other.alter(SILENT);
  await service.work(LATER_MS);
  expect(await readPayoutDetails(service.db, id)).toMatchObject({ status: 'processing', step: 'queued' });
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await service.work(LATER_MS);
  for (let look = 0; look < 2; look++) {
    await service.mine(FINAL);
    await service.work(LATER_MS);
  }
  expect(await service.units(PAYEE)).toBe(50_000_000n);
  expect(await readPayoutDetails(service.db, id)).toMatchObject({ status: 'completed', trouble: null });
  expect(await openBreakers(service.db)).toEqual([]);
});

test('a payment in ether, which is moved from an address of its own: alike', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, 10n ** 17n);
  await service.mine(FINAL);
  nodes.read.alter(used(2));
  const sweeps = async () => (await service.batches('sweep')).filter(({ currency }) => currency === 'ETH');
  for (let look = 0; look < 3; look++) {
    await service.work(LATER_MS);
    await service.mine(1);
  }
  expect(await sweeps()).toEqual([]);
  // what says that nothing has left needs no second word: there can be no gap
  nodes.read.alter({});
  nodes.other.alter(SILENT);
  for (let look = 0; look < 3 && (await sweeps()).length === 0; look++) {
    await service.mine(1);
    await service.work(LATER_MS);
  }
  nodes.other.alter({});
  for (let look = 0; look < 3; look++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
  expect([await sweeps(), await service.ether(address)]).toMatchObject([[{ state: 'final', nonce: 0 }], 0n]);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});
