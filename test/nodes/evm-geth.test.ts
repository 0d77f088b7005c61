// The whole service on a real geth: payments of every kind, what is moved, a payout, what a block pays by itself, reorganisations, and what geth
// says to each transaction that it does not take.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEvmSending } from '../../src/outside/evm/paying.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import { secretOf, signTransaction, type Unsigned } from '../../src/sandbox/evm/transaction.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { callData, rawOf } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Geth, startGeth } from '../support/evm/geth.ts';
import { authorization, carrying } from '../support/evm/set-code.ts';
import { openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openEvmServiceOn } from './evm-service.ts';
import { watchChain } from './watched-chain.ts';

const TIMEOUT = 300_000;
const FINAL = 65;
const LATER_MS = 61_000;
const TENTH = 10n ** 17n;
const GWEI = 10n ** 9n;
const STRANGER = `0x${'57'.repeat(20)}`;
const PAYEE = '0x00000000000000000000000000000000000a11ce';
let geth: Geth;
let service: Awaited<ReturnType<typeof openEvmServiceOn<Geth>>>;
const ours: string[] = [];

beforeAll(async () => {
  geth = await startGeth();
  service = await openEvmServiceOn(geth);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

async function owe(currency: 'ETH' | 'USDT') {
  const owed = await service.owe(currency, 300_00n);
  ours.push(owed.address);
  return owed;
}
const halves = (address: string) => callData(FORWARDER, 'halves(address)', address);
/** What all our addresses hold on the chain is what the ledger holds, and the audit finds nothing. */
async function ledgerIsChain(): Promise<void> {
  const all = [...ours, await service.hot('ETH'), await service.hot('USDT')];
  const total = async (read: (address: string) => Promise<bigint>): Promise<bigint> =>
    (await Promise.all(all.map(read))).reduce((a, b) => a + b, 0n);
  expect(await service.balance('asset:chain:ETH')).toBe(await total(service.ether));
  expect(await service.balance('asset:chain:USDT')).toBe(await total(service.units));
  expect(await service.findings()).toEqual([]);
}

/** An account that takes a contract's code (EIP-7702) and calls itself in the same transaction. */
async function callByDelegate(secret: Buffer, self: string, code: string, value: bigint, input: string): Promise<string> {
  const { raw, txid } = carrying(secret, { to: self, value, input, list: [authorization(secret, { code, nonce: 1 })] });
  await geth.rpc('eth_sendRawTransaction', raw);
  return txid;
}

test('payments by accounts, contracts and delegates, and USDT, are credited and moved, and the ledger is the chain', {
  timeout: TIMEOUT,
}, async () => {
  const [plain, inner, reverted, delegated, tokens] = [
    await owe('ETH'),
    await owe('ETH'),
    await owe('ETH'),
    await owe('ETH'),
    await owe('USDT'),
  ];
  await service.pay('ETH', plain.address, TENTH);
  await geth.send({ to: geth.forwarder, value: TENTH, input: halves(inner.address) });
  const reverting = callData(FORWARDER, 'sendInReverted(address)', reverted.address);
  await geth.send({ to: geth.forwarder, value: TENTH, input: reverting });
  const secret = secretOf('geth delegate');
  const { from } = signTransaction({ nonce: 0, to: STRANGER, value: 0n, input: '0x', maxFee: 1n, tip: 1n, gas: 21_000 }, secret);
  await geth.send({ to: from, value: 10n ** 18n });
  await service.pay('USDT', tokens.address, 300_000_000n);
  await service.mine();
  const byDelegate = await callByDelegate(secret, from, geth.forwarder, TENTH, halves(delegated.address));
  await service.mine();
  expect(await geth.rpc('eth_getTransactionReceipt', byDelegate)).toMatchObject({ status: '0x1', type: '0x4' });
  await service.mine(FINAL);
  for (const { id } of [plain, inner, delegated, tokens]) expect(await service.status(id)).toBe('succeeded');
  expect(await service.status(reverted.id)).toBe('started');
  for (let turn = 0; turn < 8; turn++) {
    await service.work(LATER_MS);
    await service.mine();
  }
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await service.batches('sweep')).map(({ state }) => state)).toEqual(['final', 'final', 'final', 'final']);
  for (const { address } of [plain, inner, delegated]) expect(await service.ether(address)).toBe(0n);
  expect(await service.units(tokens.address)).toBe(0n);
  await ledgerIsChain();
});

test('a payout arrives once, and is completed after twelve blocks', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await service.mine(12);
  await service.work(LATER_MS);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  expect(await service.units(PAYEE)).toBe(50_000_000n);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await ledgerIsChain();
});

test('withdrawals of validators and the fees of a block are nobody’s payment, to the wei', { timeout: TIMEOUT }, async () => {
  const owed = await owe('ETH');
  await geth.send({ to: STRANGER, value: 1n });
  await geth.propose({ feeRecipient: owed.address, withdrawals: [{ address: owed.address, gwei: 7n }] });
  await service.mine(FINAL);
  const there = await service.ether(owed.address);
  expect(there).toBeGreaterThan(7n * GWEI);
  expect(await service.status(owed.id)).toBe('started');
  expect(await service.balance(`suspense:${owed.id}:ETH`)).toBe(there);
  await ledgerIsChain();
});

test('what geth answers to a transaction is understood', async () => {
  const source = createEvmSource({ url: geth.url });
  const sending = createEvmSending(source, null);
  const secret = secretOf('geth answers');
  const one = (change: Partial<Unsigned> = {}, by = secret) =>
    signTransaction(
      { nonce: 0, to: STRANGER, value: 1n, input: '0x', gas: 21_000, maxFee: 80n * GWEI, tip: 8n * GWEI, ...change },
      by,
    );
  const send = async (made: ReturnType<typeof one>): Promise<string> =>
    (await sending.send(Buffer.from(rawOf(made).slice(2), 'hex'))).state;
  expect(await send(one())).toBe('policy');
  await geth.send({ to: one().from, value: 10n ** 18n });
  await geth.mine();
  expect(await send(one())).toBe('accepted');
  expect(await send(one())).toBe('accepted');
  expect(await send(one({ maxFee: 90n * GWEI }))).toBe('conflict');
  expect(await send(one({ maxFee: 84n * GWEI, tip: 8n * GWEI + 1n }))).toBe('conflict');
  expect(await send(one({ gas: 20_000, nonce: 1 }))).toBe('invalid');
  expect(await send(one({ value: 10n ** 20n, nonce: 1 }))).toBe('policy');
  expect(await send(one({ maxFee: 90n * GWEI, tip: 9n * GWEI }))).toBe('accepted');
  await geth.mine();
  expect(await send(one())).toBe('inputs_missing');
  const foreign = rawOf(one({ nonce: 1 }));
  await expect(sending.send(Buffer.from(foreign.slice(2, -2), 'hex'))).resolves.toMatchObject({ state: 'invalid' });
  await source.close();
});

test('without its traces what contracts send is found by balances, also after a reorganisation', async () => {
  const relay = await openAlteredNode(geth.url);
  relay.alter(WITHOUT_TRACES);
  const chain = await watchChain('ETH', relay.url);
  await chain.catchUp();
  const owed = await chain.owe();
  const sent = await geth.send({
    to: geth.forwarder,
    value: TENTH,
    input: halves(`0x${owed.script.subarray(3).toString('hex')}`),
  });
  await geth.mine(2);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ amount: TENTH, state: 'mined' }]);
  await geth.rewind(2);
  await geth.mine();
  await geth.rpc('eth_sendRawTransaction', rawOf(sent));
  await geth.mine(2);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ amount: TENTH, state: 'mined', gone: false, height: geth.height() - 1 }]);
  await chain.close();
  relay.close();
});
