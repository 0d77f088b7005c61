// What a call uses is a node's word, and the most that it is given: with less than it takes before anything is run no block ever has it, nor whatever has a
// later nonce, and with less than it uses it fails at our cost.
import { expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { transferCall } from '../../src/core/evm/transaction.ts';
import { gasLimit, leastGas } from '../../src/core/payouts/gas.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';

const TIMEOUT = 300_000;

dollarsOnTwoNodesForAll();

const uses = (gas: number): Alteration => ({
  instead: ({ method }) => (method === 'eth_estimateGas' ? { result: `0x${gas.toString(16)}` } : null),
});
async function paid(destination: string) {
  const id = await service.request(destination);
  await service.work(LATER_MS);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  for (let look = 0; look < 2; look++) {
    await service.mine(FINAL);
    await service.work(LATER_MS);
  }
  const { rows } = await service.db.query<{ gas: number }>({
    text: 'select b.gas_limit as gas from outgoing_batches b join payouts p on p.batch_id = b.id where p.id = $1',
    values: [id],
  });
  const { status, error } = (await readPayoutDetails(service.db, id)) ?? {};
  return { status, error, got: await service.units(destination), gas: rows[0]?.gas ?? 0 };
}

test.each([
  ['what a plain transfer takes', 'read', 21_000],
  ['less than it uses', 'read', 30_000],
  ['more than any is given', 'other', 10_000_000],
  ['much', 'other', 190_000],
] as const)('one of two nodes that says %s changes nothing', { timeout: TIMEOUT }, async (_, who, gas) => {
  nodes[who].alter(uses(gas));
  const said = await paid(`0x${gas.toString(16).padStart(8, '0').repeat(5)}`);
  expect(said).toMatchObject({ status: 'completed', error: null, got: 50_000_000n });
  expect(said.gas).toBeLessThanOrEqual(200_000);
  expect(await openBreakers(service.db)).toEqual([]);
});

test('where the other one is silent, what the one says may fail, and holds up nothing behind it', {
  timeout: TIMEOUT,
}, async () => {
  nodes.read.alter(uses(21_000));
  nodes.other.alter(SILENT);
  const first = `0x${'d1'.repeat(20)}`;
  expect(await paid(first)).toMatchObject({ status: 'failed', error: 'reverted', got: 0n });
  const next = `0x${'d2'.repeat(20)}`;
  expect(await paid(next)).toMatchObject({ status: 'completed', got: 50_000_000n });
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});

test('the least that a call takes is that of its bytes', () => {
  expect(leastGas('0x')).toBe(21_000);
  // four bytes that are 0 and one that is not: what they cost, or the floor of EIP-7623
  expect(leastGas('0x0000000001')).toBe(21_000 + Math.max(4 * 4 + 16, 10 * 8));
  expect(leastGas(`0x${'ff'.repeat(10)}`)).toBe(21_000 + Math.max(160, 400));
  expect(gasLimit(20_000, '0x')).toBe(21_000);
  expect(gasLimit(20_000, '0xff')).toBe(Math.ceil(21_040 * 1.25));
  expect(gasLimit(190_000, '0xff')).toBe(200_000);
});

test('of what is charged whole, or brought to an address, no other node makes it more', { timeout: TIMEOUT }, async () => {
  const port = service.ctx.ports.chains.get('USDT') as unknown as EvmPort;
  const from = await service.hot('USDT');
  const call = { from, to: service.anvil.token, value: 0n, input: transferCall(`0x${'d3'.repeat(20)}`, 1_000_000n) };
  const alone = (await port.gasOf(call)) as { readonly gas: number };
  nodes.other.alter(uses(190_000));
  expect(await port.gasOf({ ...call, asksAll: true })).toEqual({ gas: 190_000 });
  expect(await port.gasOf(call)).toEqual(alone);
});
