// Database and signer were put back together, and all nodes were behind: what moves a payment was signed for a nonce that a forgotten move had used. Once
// a block shows that, the forgotten one is booked, and nothing stops.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { GAS_PRICE, ledgerIsChain, sent, sweepIsSigned, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const TENTH = 10n ** 17n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

/** A transaction that was paid whole, and whose payment is about to be moved by a signed transaction that no block has. */
async function signed(currency: 'ETH' | 'USDT'): Promise<string> {
  const { address } = await service.owe(currency, 300_00n);
  await service.pay(currency, address, currency === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  ours.add(address);
  await sweepIsSigned(service, currency);
  await service.anvil.rpc('anvil_dropAllTransactions');
  return address;
}
const ended = async () => (await service.batches('sweep')).map(({ currency, state, nonce }) => `${currency} ${state} ${nonce}`);

test.each(['ETH', 'USDT'] as const)('%s', { timeout: TIMEOUT }, async (currency) => {
  const before = await ended();
  const address = await signed(currency);
  const hot = await service.hot(currency);
  const gas = 70_000n;
  // of a token, all the ether that was brought for its gas
  await (currency === 'ETH'
    ? sent(service, address, hot, { value: TENTH - 21_000n * GAS_PRICE })
    : sent(service, address, service.anvil.token, {
        data: transfer(hot, UNITS),
        gas,
        gasPrice: (await service.ether(address)) / gas,
      }));
  await service.mine();
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await ended()).at(-1)).toBe(`${currency} signed 0`);
  await service.mine(FINAL);
  await works(service, 3);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await ended()).sort()).toEqual([...before, `${currency} dead 0`, `${currency} final 0`].sort());
  await ledgerIsChain(service, ours);
  // what comes there later is moved with the next nonce
  await service.pay(currency, address, currency === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  await service.work(6 * 3_600_000);
  await works(service, 3);
  expect((await ended()).filter((one) => one === `${currency} final 1`)).toHaveLength(1);
  await ledgerIsChain(service, ours);
});

test('a failed one', { timeout: TIMEOUT }, async () => {
  const before = await ended();
  const address = await signed('USDT');
  const data = transfer(await service.hot('USDT'), UNITS);
  await service.anvil.whilePaused(async () => {
    await sent(service, address, service.anvil.token, {
      data,
      gas: 50_000n,
      gasPrice: (await service.ether(address)) / 100_000n,
    });
    await service.mine();
  });
  await service.settle();
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  await service.mine(FINAL);
  await works(service, 3);
  expect(await openBreakers(service.db)).toEqual([]);
  await service.work(6 * 3_600_000);
  await works(service, 4);
  expect((await ended()).sort()).toEqual([...before, 'USDT dead 0', 'USDT dead 0', 'USDT final 1'].sort());
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain(service, ours);
});

test('ether for gas', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  ours.add(address);
  const topUps = async () => (await service.batches('top_up')).map(({ state, nonce }) => `${state} ${nonce}`);
  const before = await topUps();
  const nonce = before.length;
  for (let turn = 0; turn < 4 && (await topUps()).at(-1) !== `signed ${nonce}`; turn++) await service.work(LATER_MS);
  expect((await topUps()).at(-1)).toBe(`signed ${nonce}`);
  const hot = await service.hot('ETH');
  const pending = async (): Promise<number> => {
    await service.anvil.rpc('anvil_dropAllTransactions');
    return Number(await service.anvil.rpc<string>('eth_getTransactionCount', hot, 'pending'));
  };
  await expect.poll(pending).toBe(nonce);
  await sent(service, hot, address, { value: TENTH });
  await service.mine();
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  await service.mine(FINAL);
  await works(service, 4);
  // a worker compares nonces when it starts, as the audit does every hour
  service.restart();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await topUps()).sort()).toEqual([...before, `dead ${nonce}`, `final ${nonce}`].sort());
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain(service, ours);
});

test('a reimbursement in ether that ether for gas has displaced is told, and goes out once it is approved', {
  timeout: TIMEOUT,
}, async () => {
  const customer = `0x${'74'.repeat(20)}`;
  const { id, address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, TENTH);
  const dollars = await service.owe('USDT', 3_00n);
  // too little to be moved
  await service.pay('USDT', dollars.address, 3_000_000n);
  await service.mine(FINAL);
  for (const one of [address, dollars.address]) ours.add(one);
  await works(service, 3);
  const before = (await service.batches('top_up')).length;
  const reimburse = async () => {
    await service.price();
    const { merchantId } = service;
    await reimburseTransaction(service.ctx, { merchantId, transactionId: id, destination: customer, part: null, currency: null });
    await service.work(LATER_MS);
  };
  await reimburse();
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await sent(service, await service.hot('ETH'), dollars.address, { value: TENTH });
  await service.mine();
  await service.work(LATER_MS);
  expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain(`is spent by ${txid}`);
  await service.mine(FINAL);
  await works(service, 2);
  await service.settle();
  expect(await readRefund(service.ctx, id)).toMatchObject({ status: 'failed' });
  // a worker compares nonces when it starts, as the audit does every hour
  service.restart();
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await service.batches('top_up')).slice(before)).toMatchObject([{ state: 'final' }]);
  await ledgerIsChain(service, ours);
  await reimburse();
  expect(await readRefund(service.ctx, id)).toMatchObject({ status: 'pending', txid: null });
  const { rows } = await service.db.query<{ id: string }>({
    text: `select id from payouts where reimburses = $1 and step = 'held'`,
    values: [id],
  });
  await approvePayout(service.ctx, { payoutId: rows[0]?.id as string, by: 'test' });
  await works(service, 3);
  await service.settle();
  const shown = await readRefund(service.ctx, id);
  expect(shown).toMatchObject({ status: 'completed', amount: await service.ether(customer) });
  expect(await service.status(id)).toBe('reimbursed');
  await ledgerIsChain(service, ours);
});
