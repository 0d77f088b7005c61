// Database and signer were put back together, and the node keeps no old states, so it finds only the newest of what our address has sent since: what
// was sent before that is not passed over once the newest is booked.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b8'.repeat(20)}`;
const STRANGER = `0x${'8b'.repeat(20)}`;
const FIFTY = 50_000_000n;
let service: EvmService;
let node: Awaited<ReturnType<typeof openAlteredNode>>;
let hot: string;

beforeAll(async () => {
  const through = async (url: string): Promise<string> => {
    node = await openAlteredNode(url);
    return node.url;
  };
  service = await openEvmService({ through });
  hot = await service.hot('USDT');
  await receiveDollars(service, 300n);
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  node?.close();
}, TIMEOUT);

async function sent(to: string, units: bigint): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, units);
  return service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: service.anvil.token, data, gas: '0x30d40' });
}

test('what was sent before the newest is looked for as long as it is not known', { timeout: TIMEOUT }, async () => {
  await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await service.units(PAYEE)).toBe(FIFTY);
  const id = await service.request(PAYEE);
  // payouts were stopped when this one was requested
  await service.stop('INV-7');
  const held = await service.request(PAYEE);
  await service.goOn();
  const txid = await sent(PAYEE, FIFTY);
  await service.mine(FINAL);
  const newest = await sent(STRANGER, 7n);
  await service.mine(FINAL);
  const tip = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  node.alter({
    instead: ({ method, params: [, at] }) =>
      method === 'eth_getTransactionCount' && Number(at) < tip - FINAL - 10
        ? { error: { code: -32000, message: 'missing trie node' } }
        : null,
  });
  service.restart();
  await service.work(LATER_MS);
  expect((await openMovements(service.db)).map((one) => one.txid)).toEqual([newest]);
  await service.price();
  expect(await recoverSent(service.ctx, newest, { by: 'test', acceptsLoss: true })).toMatchObject({ lost: 7n });
  await service.goOn();
  const signed = service.journal.count();
  service.restart();
  service.told.length = 0;
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  expect([service.journal.count(), await service.units(PAYEE)]).toEqual([signed, 2n * FIFTY]);
  expect(service.told.join()).toMatch(/nothing new is paid in USDT: our address 0x\w+ has sent 3 transactions, .*payout recover/);
  const cancel = () => cancelPayout(service.ctx, { merchantId: service.merchantId, payoutId: held });
  await expect(cancel()).rejects.toMatchObject({ code: 'payout_not_cancellable', passes: true });
  await service.price();
  expect(await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: false })).toMatchObject({ payoutIds: [id] });
  await service.goOn();
  service.restart();
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await readPayout(service.db, id))?.status).toBe('completed');
  expect(await service.units(PAYEE)).toBe(2n * FIFTY);
  expect((await cancel()).status).toBe('failed');
  const more = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await readPayout(service.db, more))?.status).toBe('completed');
  expect(await service.units(PAYEE)).toBe(3n * FIFTY);
});

test('a node that says that our address has sent two thousand million transactions stops payouts, and no worker', {
  timeout: TIMEOUT,
}, async () => {
  const lies = { result: '0x77359400' };
  node.alter({
    instead: ({ method, params: [of] }) =>
      method === 'eth_getTransactionCount' && String(of).toLowerCase() === hot ? lies : null,
  });
  const signed = service.journal.count();
  await service.request(PAYEE);
  service.restart();
  service.told.length = 0;
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/nothing new is paid in USDT: our address 0x\w+ has sent 2000000000 transactions/);
  expect(service.journal.count()).toBe(signed);
  node.alter({});
});
