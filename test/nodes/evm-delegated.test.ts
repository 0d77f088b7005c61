// An address of ours has code: its key has authorized a contract elsewhere (EIP-7702). What is paid there counts as ever; ether that is brought there, or
// moved there, would fail for want of gas, each time again, so it waits and is told until that is taken back.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressOf, secretOf } from '../../src/sandbox/evm/transaction.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { authorization, carrying } from '../support/evm/set-code.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain, sendsToAll, sweepIsSigned, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const NOBODY = `0x${'e7'.repeat(20)}`;
const NONE = `0x${'00'.repeat(20)}`;
/** Takes ether, and needs more gas for that than a plain payment has: it writes to its storage. */
const COUNTS = '0x60016000540160005500';
const WALLET = `0x${'c0'.repeat(20)}`;
let service: EvmService;
const ours = new Set<string>();

beforeAll(async () => {
  service = await openEvmService();
  await service.anvil.rpc('anvil_setCode', WALLET, COUNTS);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

const count = async (address: string): Promise<number> =>
  Number(await service.anvil.rpc<string>('eth_getTransactionCount', address, 'latest'));
let strangers = 0;
/** An address gets the code of a contract. @returns the hash of the transaction that carries what its key has signed */
async function getsCode(
  currency: 'ETH' | 'USDT',
  of: { readonly chain: 0 | 1; readonly index: number },
  address: string,
  code: string,
) {
  const stranger = secretOf(`delegating ${++strangers}`);
  await service.anvil.rpc('anvil_setBalance', addressOf(stranger), '0xde0b6b3a7640000');
  const list = [authorization(await service.secret(currency, of), { code, nonce: await count(address) })];
  const { raw, txid } = carrying(stranger, { to: NOBODY, list });
  await service.anvil.rpc('eth_sendRawTransaction', raw);
  await service.mine();
  expect(await service.anvil.rpc<string>('eth_getCode', address, 'latest')).toBe(
    code === NONE ? '0x' : `0xef0100${code.slice(2)}`,
  );
  return txid;
}
async function owed(currency: 'ETH' | 'USDT') {
  const { id, address } = await service.owe(currency, 300_00n);
  const { rows } = await service.db.query<{ index: string }>({
    text: 'select address_index as index from transactions where id = $1',
    values: [id],
  });
  ours.add(address);
  return { id, address, at: { chain: 0, index: Number(rows[0]?.index) } as const };
}

test('addresses of transactions: payments by accounts and contracts are credited, and moved once their code is taken back', {
  timeout: TIMEOUT,
}, async () => {
  const [plain, inner, dollars] = [await owed('ETH'), await owed('ETH'), await owed('USDT')];
  for (const [currency, { at, address }] of [
    ['ETH', plain],
    ['ETH', inner],
    ['USDT', dollars],
  ] as const)
    await getsCode(currency, at, address, WALLET);
  await service.pay('ETH', plain.address, TENTH);
  await service.anvil.send({
    to: service.anvil.forwarder,
    value: TENTH,
    input: callData(FORWARDER, 'halves(address)', inner.address),
  });
  await service.pay('USDT', dollars.address, 300_000_000n);
  await service.mine(FINAL);
  for (const { id } of [plain, inner, dollars]) expect(await service.status(id)).toBe('succeeded');
  await works(service, 4);
  for (const { address } of [plain, inner]) expect(await service.ether(address)).toBe(0n);
  expect(await service.batches('top_up')).toEqual([]);
  expect(service.told.join()).toMatch(new RegExp(`stay at their addresses: our address ${dollars.address} has code`));
  await getsCode('USDT', dollars.at, dollars.address, NONE);
  await service.mine(FINAL);
  await works(service, 4);
  expect(await service.units(dollars.address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
});

test('the address that ether is paid from', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('ETH');
  const first = await getsCode('ETH', { chain: 1, index: 0 }, hot, WALLET);
  await service.mine(FINAL);
  await recoverSent(service.ctx, first, { by: 'test', acceptsLoss: false });
  const { address } = await owed('ETH');
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  const sweeps = (await service.batches('sweep')).length;
  service.told.length = 0;
  service.restart();
  await works(service, 3);
  expect((await service.batches('sweep')).length).toBe(sweeps);
  expect(service.told.join()).toMatch(new RegExp(`stay at their addresses: our address ${hot} has code`));
  const second = await getsCode('ETH', { chain: 1, index: 0 }, hot, NONE);
  await service.mine(FINAL);
  await recoverSent(service.ctx, second, { by: 'test', acceptsLoss: false });
  await service.goOn();
  service.restart();
  await service.work(7 * 3_600_000);
  await works(service, 3);
  expect(await service.ether(address)).toBe(0n);
  await ledgerIsChain(service, ours);
});

test('the same once what moves ether there is signed: that fails, is paid for, and goes on afterwards', {
  timeout: TIMEOUT,
}, async () => {
  const hot = await service.hot('ETH');
  const { address } = await owed('ETH');
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  await sweepIsSigned(service, 'ETH');
  await service.anvil.rpc('anvil_dropAllTransactions');
  const first = await getsCode('ETH', { chain: 1, index: 0 }, hot, WALLET);
  await works(service, 3);
  expect((await service.batches('sweep')).at(-1)).toMatchObject({ state: 'dead', attempts: 1 });
  expect(await service.ether(address)).toBeLessThan(TENTH);
  const second = await getsCode('ETH', { chain: 1, index: 0 }, hot, NONE);
  await service.mine(FINAL);
  for (const txid of [first, second]) await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: false });
  await service.goOn();
  service.restart();
  service.told.length = 0;
  await service.work(7 * 3_600_000);
  await works(service, 2);
  expect(await service.ether(address)).toBe(0n);
  // its gas was taken from what is booked there
  expect(service.told.join()).not.toContain('stay at their addresses');
  await ledgerIsChain(service, ours);
});

test('ether that its code has sent, and USDT at the call of somebody else, are written off', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const sending = `0x${'c1'.repeat(20)}`;
  // calls nobody known with a thousand wei, and sends five dollars there
  const dollars = sendsToAll(service.anvil.token, [{ to: NOBODY, units: 5_000_000n }]).slice(2);
  await service.anvil.rpc('anvil_setCode', sending, `0x60006000600060006103e873${NOBODY.slice(2)}5af150${dollars}`);
  const gone = { address: hot, takesBack: false, by: 'operator test', evidence: 'the wallet has batched it' };
  await service.findings();
  await expect(writeOffAt(service.ctx, gone)).rejects.toThrow('lacks nothing');
  const txid = await getsCode('USDT', { chain: 1, index: 0 }, hot, sending);
  await service.anvil.send({ to: hot, input: '0x01' });
  await service.mine(FINAL);
  expect([(await service.ether(NOBODY)) > 0n, await service.units(NOBODY)]).toEqual([true, 5_000_000n]);
  const findings = (await service.findings()).join();
  expect(findings).toContain('1000 are missing');
  expect(findings).toContain('5000000 are missing');
  await expect(writeOffAt(service.ctx, gone)).rejects.toThrow('has sent 1 transactions, and 0 of them are known here');
  await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: false });
  expect((await service.findings()).join()).toContain('where code that its key has authorized has sent it');
  const written = (await writeOffAt(service.ctx, gone)).flatMap((one) =>
    one.written.map(({ amount }) => `${amount} ${one.currency}`),
  );
  expect(written).toEqual(['1000 ETH', '5000000 USDT']);
  await ledgerIsChain(service, ours);
});
