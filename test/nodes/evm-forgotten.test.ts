// Database and signer were put back together, to before a transaction that had paid a payout, and no look at what our address has sent could see it:
// the payout is signed again at a nonce that is used. The block that shows this gives nobody's money back that the payee has.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b2'.repeat(20)}`;
const OTHER = `0x${'b3'.repeat(20)}`;
const FIFTY = 50_000_000n;
const FINAL = 65;
const LATER_MS = 61_000;
let service: EvmService;
let hot: string;

beforeAll(async () => {
  service = await openEvmService();
  hot = await service.hot('USDT');
  const { address } = await service.owe('USDT', 600_00n);
  await service.pay('USDT', address, 600_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
});

const shown = async (id: string) => {
  const found = await readPayout(service.db, id);
  return { status: found?.status, heldReason: found?.heldReason, error: found?.error, txid: found?.txid };
};
/** As this server did before it was put back. */
async function paidBefore(to: string): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, FIFTY);
  return service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: service.anvil.token, data, gas: '0x30d40' });
}
const recover = async (txid: string) => {
  await service.price();
  return recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: false });
};
async function goOn(): Promise<void> {
  expect(await service.findings()).toEqual([]);
  await service.goOn();
  service.restart();
}

test('a payout that is displaced by what had paid it is not given back, and is booked as paid by that', {
  timeout: TIMEOUT,
}, async () => {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await paidBefore(PAYEE);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing', error: null });
  expect((await service.findings()).join()).toMatch(new RegExp(`OUT-3: .*${txid}`));
  expect(service.told.join()).toContain(`bursar payout recover ${txid}`);
  expect(await recover(txid)).toMatchObject({ payoutIds: [id], lost: 0n });
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', txid });
  await goOn();
  expect(await service.units(PAYEE)).toBe(FIFTY);
});

test('one that is displaced by what had paid another is given back, and the other one is not paid again', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await paidBefore(OTHER);
  await service.mine(1);
  await service.work(LATER_MS);
  const other = await service.request(OTHER);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await shown(other)).toMatchObject({ heldReason: 'unknown_outcome', txid: null });
  expect((await service.findings()).join()).toMatch(new RegExp(`OUT-3: .*${txid}`));
  expect(await recover(txid)).toMatchObject({ payoutIds: [other], lost: 0n });
  await service.work(LATER_MS);
  await goOn();
  await service.work(LATER_MS);
  expect([(await service.units(PAYEE)) - before, await service.units(OTHER)]).toEqual([0n, FIFTY]);
});
