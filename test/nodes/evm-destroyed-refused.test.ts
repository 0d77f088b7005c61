// What of a token is gone from our addresses is written off whoever's address it was, and only where all that these have sent is known, in the block that
// nodes were asked about, and no more than is booked.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evmScript } from '../../src/core/currencies/evm.ts';
import { writeOff } from '../../src/flow/sweeps/write-off.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { isDestroyed, ledgerIsChain, ownerCall, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();
const lost = () => service.balance('expense:written_off:USDT');
const asked = { takesBack: false, by: 'operator test', evidence: 'its issuer says so' };
const writtenOff = async (address: string) =>
  (await writeOffAt(service.ctx, { address, ...asked })).flatMap(({ written }) => written);
const refusal = (what: string) => expect.objectContaining({ code: 'not_resolvable', message: expect.stringContaining(what) });

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function destroyed(address: string): Promise<void> {
  await isDestroyed(service, address);
  await service.mine(FINAL);
  await service.findings();
}

test('at an address of ether, from which that was moved meanwhile', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('ETH', 3000_00n);
  ours.add(address);
  await service.pay('USDT', address, UNITS);
  await service.mine();
  await service.pay('ETH', address, 10n ** 18n);
  await service.mine(FINAL);
  await works(service, 3);
  expect(await service.batches('sweep')).toMatchObject([{ currency: 'ETH', state: 'final', nonce: 0 }]);
  await destroyed(address);
  expect((await service.findings()).join()).toMatch(new RegExp(`^EVM-1: ${address} .* 300000000 are missing`));
  expect(await writtenOff(address)).toEqual([{ address, amount: UNITS }]);
  await ledgerIsChain(service, ours);
});

test('looked at after a block that was replaced meanwhile', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  ours.add(address);
  await service.mine();
  await service.anvil.asOwner(ownerCall('setBlacklisted(address,bool)', address, 1n));
  await service.mine(FINAL);
  const script = Buffer.from(evmScript(address), 'hex');
  const height = Number(await service.anvil.rpc('eth_blockNumber')) - 10;
  const held = [{ script, address, units: 0n, said: 'two nodes, of a block that is no longer there' }] as const;
  const block = { height, hash: `0x${'d0'.repeat(32)}` };
  const of = { currency: 'USDT', block, held, unclear: null, ...asked } as const;
  await expect(writeOff(service.ctx, of)).rejects.toEqual(refusal('was replaced meanwhile: say it again'));
  expect(await lost()).toBe(before);
  await ledgerIsChain(service, ours);
});

test('more than is booked altogether', { timeout: TIMEOUT }, async () => {
  const [before, booked] = [await lost(), await service.balance('asset:chain:USDT')];
  const { id, address } = await service.owe('USDT', 9_000_00n);
  // a part is booked once its transaction has ended
  const part = booked + 1n;
  await service.pay('USDT', address, part);
  ours.add(address);
  await service.mine(FINAL);
  expect(await service.status(id)).toBe('pending');
  await destroyed(address);
  await expect(writtenOff(address)).rejects.toEqual(refusal('lacks more than is booked of USDT altogether'));
  expect(await lost()).toBe(before);
  await service.work(3 * 86_400_000);
  await service.mine(2);
  await service.findings();
  expect(await service.balance('asset:chain:USDT')).toBe(booked + part);
  expect(await writtenOff(address)).toEqual([{ address, amount: part }]);
  expect(await lost()).toBe(before + part);
  await ledgerIsChain(service, ours);
});

test('taken by what was forgotten, and has displaced a payout', { timeout: TIMEOUT }, async () => {
  const [before, hot] = [await lost(), await service.hot('USDT')];
  await receiveDollars(service, 500n);
  await works(service, 3);
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  for (const { address } of rows) ours.add(address);
  await service.request(`0x${'c7'.repeat(20)}`);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const txid = await sent(service, hot, service.anvil.token, { data: transfer(`0x${'c8'.repeat(20)}`, 50_000_000n) });
  await service.mine(FINAL);
  await works(service, 2);
  expect((await service.findings()).join()).toMatch(/EVM-1: .* of USDT .* 50000000 are missing/);
  await expect(writtenOff(hot)).rejects.toEqual(refusal(`has sent ${txid}, which was not signed here`));
  expect(await lost()).toBe(before);
  // once it is booked as what it was, nothing more is missing
  await recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss: true });
  await expect(writtenOff(hot)).rejects.toEqual(refusal('lacks nothing'));
  expect(await lost()).toBe(before);
  await ledgerIsChain(service, ours);
});
