// The address of a transaction has sent what it held to nobody known: its key was used elsewhere, or a token's contract has kept all of what database and
// signer have forgotten. Payouts stop, until an operator has it booked as lost; what comes there later is moved as any other.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { FINAL } from './evm-lied-to.ts';
import { asOwnerFirst, GAS_PRICE, isDestroyed, ledgerIsChain, ownerCall, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const TENTH = 10n ** 17n;
const NOBODY = `0x${'e7'.repeat(20)}`;
const by = 'operator test';
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();
const recovers = (txid: string, acceptsLoss = true) => recoverSent(service.ctx, txid, { by, acceptsLoss });
const lost = (currency: string) => service.balance(`expense:unknown_outflow:${currency}`);

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function paid(currency: 'ETH' | 'USDT', address?: string): Promise<string> {
  const to = address ?? (await service.owe(currency, 300_00n)).address;
  await service.pay(currency, to, currency === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  ours.add(to);
  return to;
}
/** Its payment to come is moved, after what was lost. */
async function goesOn(currency: 'ETH' | 'USDT', address: string): Promise<void> {
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  await paid(currency, address);
  await works(service, 4);
  expect((await service.batches('sweep')).at(-1)).toMatchObject({ currency, state: 'final', nonce: 1 });
  await ledgerIsChain(service, ours);
}

test('ether', { timeout: TIMEOUT }, async () => {
  const address = await paid('ETH');
  const txid = await sent(service, address, NOBODY, { value: TENTH - 21_000n * GAS_PRICE });
  await service.mine(2);
  await expect(recovers(txid)).rejects.toThrow('is in no final block yet');
  await service.mine(FINAL);
  expect((await service.findings()).join()).toContain(`${address} of txn_`);
  await expect(recovers(txid, false)).rejects.toThrow('--accept-loss');
  const done = await recovers(txid);
  expect(done).toMatchObject({ currency: 'ETH', payoutIds: [], lost: await service.ether(NOBODY) });
  await expect(recovers(txid)).rejects.toThrow('is known');
  await ledgerIsChain(service, ours);
  await goesOn('ETH', address);
});

test('a token', { timeout: TIMEOUT }, async () => {
  const address = await paid('USDT');
  await sent(service, await service.hot('ETH'), address, { value: 10n ** 16n });
  await service.mine();
  const txid = await sent(service, address, service.anvil.token, { data: transfer(NOBODY, UNITS) });
  await service.mine(FINAL);
  service.restart();
  await works(service, 2);
  await service.findings();
  const gone = { address, takesBack: false, by, evidence: 'it is gone' };
  await expect(writeOffAt(service.ctx, gone)).rejects.toThrow('has sent 1 transactions, and 0 of them are known here');
  expect(await recovers(txid)).toMatchObject({ currency: 'USDT', lost: UNITS });
  await ledgerIsChain(service, ours);
  await goesOn('USDT', address);
});

test('a forgotten sweep of which all was kept', { timeout: TIMEOUT }, async () => {
  const address = await paid('USDT');
  await sent(service, await service.hot('ETH'), address, { value: 10n ** 16n });
  await service.mine();
  await asOwnerFirst(service, ownerCall('setFee(uint256)', 10_000n));
  const txid = await sent(service, address, service.anvil.token, { data: transfer(await service.hot('USDT'), UNITS) });
  await service.mine();
  await asOwnerFirst(service, ownerCall('setFee(uint256)', 0n));
  await service.mine(FINAL);
  service.restart();
  await works(service, 2);
  expect((await service.findings()).join()).toContain('EVM-1');
  const before = await lost('USDT');
  expect(await recovers(txid)).toMatchObject({ currency: 'USDT', lost: UNITS });
  await ledgerIsChain(service, ours);
  await goesOn('USDT', address);
  expect(await lost('USDT')).toBe(before + UNITS);
});

test('ether of an address whose token is destroyed', { timeout: TIMEOUT }, async () => {
  const address = await paid('ETH');
  await paid('USDT', address);
  const txid = await sent(service, address, NOBODY, { value: TENTH - 21_000n * GAS_PRICE });
  await service.mine();
  await isDestroyed(service, address);
  await service.mine(FINAL);
  await service.findings();
  const gone = { address, takesBack: false, by, evidence: 'its issuer says so' };
  await expect(writeOffAt(service.ctx, gone)).rejects.toThrow('are known here');
  await recovers(txid);
  expect((await writeOffAt(service.ctx, gone)).flatMap(({ written }) => written)).toEqual([{ address, amount: UNITS }]);
  await ledgerIsChain(service, ours);
});
