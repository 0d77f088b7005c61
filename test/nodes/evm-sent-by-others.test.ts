// A transaction of the address that USDT is paid from, made with the words elsewhere, in which a contract, or somebody else, sends USDT of its own: nothing
// of ours has left but the gas.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { authorization, carrying } from '../support/evm/set-code.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { earnsDollars, ledgerIsChain, sendsOn, sendsToAll, sent, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const FIFTY = 50_000_000n;
const PAYEE = `0x${'b5'.repeat(20)}`;
const WALLET = `0x${'c0'.repeat(20)}`;
const BATCHING = `0x${'cb'.repeat(20)}`;
const OTHER = `0x${'b6'.repeat(20)}`;
const LAST = `0x${'b7'.repeat(20)}`;
const SEVENTY = 70_000_000n;
let payee = PAYEE;
let service: EvmService;
const ours = new Set<string>();
const recovers = (txid: string, acceptsLoss = false) => recoverSent(service.ctx, txid, { by: 'test', acceptsLoss });

beforeAll(async () => {
  service = await openEvmService();
  for (const one of await earnsDollars(service)) ours.add(one);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** A payout is paid once, now; one that is requested before, where it is named. */
async function goesOn(to: string, before?: string): Promise<void> {
  await ledgerIsChain(service, ours);
  await service.goOn();
  service.restart();
  const id = before ?? (await service.request(to));
  const had = await service.units(to);
  await service.work(3_600_000);
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  expect((await service.units(to)) - had).toBe(FIFTY);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
}

test('a contract sends its own to the payee of a payout', { timeout: TIMEOUT }, async () => {
  await service.pay('USDT', WALLET, FIFTY);
  await service.anvil.rpc('anvil_setCode', WALLET, sendsOn(service.anvil.token, PAYEE, FIFTY));
  await service.mine();
  const id = await service.request(PAYEE);
  const txid = await sent(service, await service.hot('USDT'), WALLET, { data: '0x01' });
  await service.mine(FINAL);
  expect(await service.units(PAYEE)).toBe(FIFTY);
  service.restart();
  await service.work(LATER_MS);
  const done = await recovers(txid, true);
  expect(done).toMatchObject({ payoutIds: [], lost: 0n });
  await goesOn(PAYEE, id);
});

test('somebody lets the address send his', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const [from] = await service.anvil.rpc<string[]>('eth_accounts');
  const approved = callData(QUIRKY_TOKEN, 'approve(address,uint256)', hot, FIFTY);
  await service.anvil.rpc('eth_sendTransaction', { from, to: service.anvil.token, data: approved, gas: '0x100000' });
  await service.mine();
  const data = callData(QUIRKY_TOKEN, 'transferFrom(address,address,uint256)', from as string, WALLET, FIFTY);
  const txid = await sent(service, hot, service.anvil.token, { data });
  await service.mine(FINAL);
  expect(await service.anvil.rpc('eth_getTransactionReceipt', txid)).toMatchObject({ status: '0x1' });
  const id = await service.request(PAYEE);
  service.restart();
  await service.work(LATER_MS);
  expect(await recovers(txid, true)).toMatchObject({ payoutIds: [], lost: 0n });
  await goesOn(PAYEE, id);
});

/** The address calls itself as the code that its key has authorized: it sends to two. */
async function sendsToTwo(): Promise<string> {
  const hot = await service.hot('USDT');
  const two = [
    { to: payee, units: FIFTY },
    { to: WALLET, units: SEVENTY },
  ];
  const code = sendsToAll(service.anvil.token, two);
  await service.anvil.rpc('anvil_setCode', BATCHING, code);
  const nonce = Number(await service.anvil.rpc<string>('eth_getTransactionCount', hot, 'latest'));
  const secret = await service.secret('USDT', { chain: 1, index: 0 });
  const list = [authorization(secret, { code: BATCHING, nonce: nonce + 1 })];
  const { raw, txid } = carrying(secret, { nonce, to: hot, list });
  await service.anvil.rpc('eth_sendRawTransaction', raw);
  await service.mine(FINAL);
  expect(await service.anvil.rpc('eth_getTransactionReceipt', txid)).toMatchObject({ status: '0x1', logs: [{}, {}] });
  return txid;
}

test('the address sends to two by its own code, one of whom a payout asks for', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  const txid = await sendsToTwo();
  service.restart();
  await service.work(LATER_MS);
  await expect(recovers(txid)).rejects.toThrow('pays 70.000000 USDT to nobody that this database knows');
  expect(await recovers(txid, true)).toMatchObject({ payoutIds: [id], besides: [{ currency: 'USDT', lost: SEVENTY }] });
  await works(service, 1);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  await goesOn(OTHER);
});

test('the same in the place of what was signed for that payout', { timeout: TIMEOUT }, async () => {
  const id = await service.request(OTHER);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await sendsToTwo();
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await recovers(txid, true)).toMatchObject({ payoutIds: [], lost: FIFTY + SEVENTY });
  await goesOn(OTHER);
});

test('the same, which has paid that', { timeout: TIMEOUT }, async () => {
  const id = await service.request(OTHER);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  payee = OTHER;
  const txid = await sendsToTwo();
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'processing' });
  expect(await recovers(txid, true)).toMatchObject({ payoutIds: [id], besides: [{ currency: 'USDT', lost: SEVENTY }] });
  await works(service, 1);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  await goesOn(LAST);
});
