// That an authorization (EIP-7702) has used a nonce of ours is a node's word, which only the counts around its block show; most nodes forget these soon.
// So two must say it, now or when it was found. The address of a transaction is told alike, and emptied once it is booked.
import { afterEach, expect, test } from 'vitest';
import { addressOf, secretOf } from '../../src/sandbox/evm/transaction.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { authorization, carrying } from '../support/evm/set-code.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';
import { works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'f1'.repeat(20)}`;
const NOBODY = `0x${'e7'.repeat(20)}`;
/** No contract: what was authorized before is taken back. */
const NONE = `0x${'00'.repeat(20)}`;
const HOUR_MS = 3_600_000;
const recovers = (txid: string) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss: false });

dollarsOnTwoNodesForAll();
afterEach(() => {
  service.told.length = 0;
});

const isOfThePast = (params: unknown): boolean => String((params as readonly unknown[])[1]).startsWith('0x');
/** A node that knows no state of the past; another one says that it was used before. */
const FORGETS: Alteration = {
  instead: ({ method, params }) =>
    method === 'eth_getTransactionCount' && isOfThePast(params)
      ? { error: { code: -32000, message: 'missing trie node' } }
      : null,
};
const DENIES: Alteration = {
  instead: ({ method, params }) => (method === 'eth_getTransactionCount' && isOfThePast(params) ? { result: '0x99' } : null),
};
const count = async (address: string): Promise<number> =>
  Number(await service.anvil.rpc<string>('eth_getTransactionCount', address, 'latest'));

let strangers = 0;
/** Somebody sends what the key of an address has signed with its next nonce. */
async function carried(address: string, secret: Uint8Array): Promise<string> {
  const stranger = secretOf(`carrier ${++strangers}`);
  await service.anvil.rpc('anvil_setBalance', addressOf(stranger), '0xde0b6b3a7640000');
  const list = [authorization(secret, { code: NONE, nonce: await count(address) })];
  const { raw, txid } = carrying(stranger, { to: NOBODY, list });
  await service.anvil.rpc('eth_sendRawTransaction', raw);
  return txid;
}
const ofHot = async (): Promise<string> =>
  carried(await service.hot('USDT'), await service.secret('USDT', { chain: 1, index: 0 }));
/** A payout is requested before, and paid now. */
async function goesOn(id: string): Promise<void> {
  await service.goOn();
  service.restart();
  await service.work(HOUR_MS);
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
}

test('one of two nodes is not enough', { timeout: TIMEOUT }, async () => {
  const txid = await ofHot();
  await service.mine(FINAL);
  const id = await service.request(PAYEE);
  for (const alteration of [DENIES, SILENT]) {
    nodes.other.alter(alteration);
    service.restart();
    await service.work(LATER_MS);
    expect(await openMovements(service.db)).toEqual([]);
    await expect(recovers(txid)).rejects.toThrow('two nodes');
  }
  nodes.other.alter({});
  // one that was silent rests for a while
  await service.work(HOUR_MS);
  expect(await recovers(txid)).toMatchObject({ currency: 'USDT', payoutIds: [] });
  await goesOn(id);
});

test('where nodes have forgotten the counts of then, what was found before is enough', { timeout: TIMEOUT }, async () => {
  const txid = await ofHot();
  await service.mine();
  const id = await service.request(PAYEE);
  service.restart();
  await service.work(LATER_MS);
  expect(await openMovements(service.db)).toMatchObject([{ txid }]);
  await service.mine(FINAL);
  for (const node of [nodes.read, nodes.other]) node.alter(FORGETS);
  expect(await recovers(txid)).toMatchObject({ currency: 'USDT', payoutIds: [] });
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await goesOn(id);
});

test('what nobody has found in time waits for a node that keeps older states', { timeout: TIMEOUT }, async () => {
  const txid = await ofHot();
  await service.mine(FINAL);
  for (const node of [nodes.read, nodes.other]) node.alter(FORGETS);
  await expect(recovers(txid)).rejects.toThrow(/one that keeps older states.*does not know any more what 0x/);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await recovers(txid);
  await goesOn(await service.request(PAYEE));
});

test('the address of a transaction from which was moved before', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  const { rows } = await service.db.query<{ index: string }>({
    text: 'select address_index as index from transactions where lower(address) = $1',
    values: [address],
  });
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  await works(service, 4);
  expect(await service.units(address)).toBe(0n);
  const secret = await service.secret('USDT', { chain: 0, index: Number(rows[0]?.index) });
  const txid = await carried(address, secret);
  await service.pay('USDT', address, 400_000_000n);
  await service.mine(FINAL);
  await works(service, 4);
  expect(await service.units(address)).toBe(400_000_000n);
  expect(service.told.join()).toContain(`(bursar payout recover ${txid})`);
  await recovers(txid);
  await service.work(7 * HOUR_MS);
  await works(service, 4);
  expect(await service.units(address)).toBe(0n);
  expect(await service.findings()).toEqual([]);
  expect(await openBreakers(service.db)).toEqual([]);
});
