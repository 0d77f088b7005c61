// What the address that payouts leave from has sent without this database and its signer knowing, on a real EVM: it is found by its nonce, the
// payout that it pays is not paid again, and an operator has it booked by its hash.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b1'.repeat(20)}`;
const STRANGER = `0x${'5a'.repeat(20)}`;
const FIFTY = 50_000_000n;
const FINAL = 65;
const LATER_MS = 61_000;
let service: EvmService;
let hot: string;
const ours: string[] = [];

beforeAll(async () => {
  service = await openEvmService();
  hot = await service.hot('USDT');
  const { address } = await service.owe('USDT', 600_00n);
  ours.push(address, await service.hot('ETH'), hot);
  await service.pay('USDT', address, 600_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
});

const request = (): Promise<string> => service.request(PAYEE);
const shown = async (id: string) => {
  const found = await readPayout(service.db, id);
  return { status: found?.status, heldReason: found?.heldReason, error: found?.error, txid: found?.txid };
};
/** As a copy of this server with the same keys would. */
async function sentElsewhere(to: string, units: bigint): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, units);
  return service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: service.anvil.token, data, gas: '0x30d40' });
}
const recover = async (txid: string, acceptsLoss = false) => {
  await service.price();
  return recoverSent(service.ctx, txid, { by: 'test', acceptsLoss });
};
/** What an operator does when the audit is green again. */
async function goOn(): Promise<void> {
  expect(await service.findings()).toEqual([]);
  await service.goOn();
  service.restart();
}
async function completed(id: string): Promise<void> {
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await shown(id)).status).toBe('completed');
}

test('a payout that database and signer have forgotten to have paid is found, waits, and is not paid again', {
  timeout: TIMEOUT,
}, async () => {
  const first = await request();
  await completed(first);
  const id = await request();
  const txid = await sentElsewhere(PAYEE, FIFTY);
  await service.mine(1);
  service.restart();
  await service.work(LATER_MS);
  expect(service.told.join()).toContain(`transaction ${txid} was sent by our address ${hot} at nonce`);
  expect(await shown(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome', txid: null });
  expect((await service.findings()).join()).toMatch(/OUT-3/);
  // nobody decides by hand what is known to have left
  await expect(resolvePayout(service.ctx, { payoutId: id, outcome: 'failed', evidence: 'a look' })).rejects.toThrow(/recover/);
  await expect(recover(txid)).rejects.toThrow(/no final block yet/);
  await service.mine(FINAL);
  expect(await recover(txid)).toMatchObject({ payoutIds: [id], lost: 0n });
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', txid });
  await goOn();
  // the nonce after it, although the signer has never signed that one
  await completed(await request());
  expect(await service.units(PAYEE)).toBe(3n * FIFTY);
  await ledgerIsChain(service, ours);
});

test('what a stranger took is booked as lost where a person accepts that, and other hashes are told so', {
  timeout: TIMEOUT,
}, async () => {
  const id = await request();
  const txid = await sentElsewhere(STRANGER, 7_000_000n);
  await service.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  expect((await shown(id)).status).not.toBe('completed');
  await expect(recover(`0x${'00'.repeat(32)}`)).rejects.toThrow(/no block that a node of ours has/);
  const foreign = await service.anvil.send({ to: STRANGER, value: 1n });
  await service.mine(FINAL);
  await expect(recover(foreign.hash)).rejects.toThrow(/not sent by an address that payouts leave from/);
  await expect(recover(txid)).rejects.toThrow(/--accept-loss/);
  expect(await recover(txid, true)).toMatchObject({ payoutIds: [], lost: 7_000_000n });
  await expect(recover(txid, true)).rejects.toThrow(/is known/);
  await goOn();
  await completed(id);
  await ledgerIsChain(service, ours);
});

test('what was signed with a nonce that a stranger has used can never be mined: it fails at finality, not before, and is paid once when asked for again', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  const id = await request();
  await service.work(LATER_MS);
  expect((await shown(id)).status).toBe('processing');
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await sentElsewhere(STRANGER, 1_000_000n);
  await service.mine(2);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing', error: null });
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await recover(txid, true)).toMatchObject({ payoutIds: [], lost: 1_000_000n });
  await goOn();
  await completed(await request());
  expect(await service.units(PAYEE)).toBe(before + FIFTY);
  await ledgerIsChain(service, ours);
});

test('a nonce that was passed over in a block which was read before anybody watched for it is found all the same', {
  timeout: TIMEOUT,
}, async () => {
  const id = await request();
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await sentElsewhere(STRANGER, 2_000_000n);
  // as a copy of the database that did not watch for the nonce has read it
  const nonce = Number(await service.anvil.rpc<string>('eth_getTransactionCount', hot, 'latest'));
  await service.db.query({
    text: `update outgoing_inputs set freed = true where vout = $1 and currency = 'USDT'`,
    values: [nonce],
  });
  await service.mine(FINAL);
  await service.db.query({
    text: `update outgoing_inputs set freed = false where vout = $1 and currency = 'USDT'`,
    values: [nonce],
  });
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await recover(txid, true)).toMatchObject({ lost: 2_000_000n });
  await goOn();
  await ledgerIsChain(service, ours);
});

test('of two payouts that ask for the same the older one is found paid, and a person decides the other', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  const ids = [await request(), await request()] as const;
  const txid = await sentElsewhere(PAYEE, FIFTY);
  await service.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  for (const id of ids) expect(await shown(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(await recover(txid)).toMatchObject({ payoutIds: [ids[0]] });
  await service.work(LATER_MS);
  expect(await shown(ids[0])).toMatchObject({ status: 'completed', txid });
  expect(await shown(ids[1])).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  const decided = await resolvePayout(service.ctx, {
    payoutId: ids[1],
    outcome: 'failed',
    evidence: 'one transaction, one payment',
  });
  expect(decided.status).toBe('failed');
  await goOn();
  await service.work(LATER_MS);
  expect(await service.units(PAYEE)).toBe(before + FIFTY);
  await ledgerIsChain(service, ours);
});

test('one that a person has found paid is adopted by the transaction that comes to light later', {
  timeout: TIMEOUT,
}, async () => {
  const id = await request();
  const other = await request();
  const first = await sentElsewhere(PAYEE, FIFTY);
  await service.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  await recover(first);
  await service.work(LATER_MS);
  expect((await shown(id)).status).toBe('completed');
  await resolvePayout(service.ctx, { payoutId: other, outcome: 'paid', evidence: 'the payee says so' });
  const second = await sentElsewhere(PAYEE, FIFTY);
  await service.mine(FINAL);
  expect(await recover(second)).toMatchObject({ payoutIds: [other], lost: 0n });
  await goOn();
  await ledgerIsChain(service, ours);
});

test('the first payout to where something was lost that is requested after the recovery waits for a person, and no later one', {
  timeout: TIMEOUT,
}, async () => {
  const forgotten = `0x${'c7'.repeat(20)}`;
  const txid = await sentElsewhere(forgotten, 7_000_000n);
  await service.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  expect(await recover(txid, true)).toMatchObject({ payoutIds: [], lost: 7_000_000n, alike: [] });
  await goOn();
  const first = await service.request(forgotten);
  await completed(await request());
  expect(await shown(first)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome', txid: null });
  expect(service.told.join()).toContain(`${first} goes where a forgotten transaction has paid`);
  await resolvePayout(service.ctx, { payoutId: first, outcome: 'paid', evidence: 'the payee says so' });
  await completed(await service.request(forgotten));
  expect(await service.units(forgotten)).toBe(7_000_000n + FIFTY);
  await ledgerIsChain(service, ours);
});
