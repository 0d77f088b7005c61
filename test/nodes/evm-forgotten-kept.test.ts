// Database and signer were put back together, and what our addresses have sent to each other meanwhile is noted: it is kept until it is booked, whichever
// key is in use then, and however much else is noted that no node shows.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ETHER } from '../../src/core/currency.ts';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { distrustKey, importKey, listKeys } from '../../src/store/chain/xpubs.ts';
import { readMoves } from '../../src/store/sweeps/forgotten-moves.ts';
import { portOf } from '../../src/worker/chain/context.ts';
import { writeMovesBack } from '../../src/worker/payouts/evm/forgotten-moves.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const GAS_PRICE = 20n * 10n ** 9n;
const FINAL = 65;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
/** As this server did before it was put back. */
async function sent(from: string, to: string, value: bigint, data = '0x'): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', from);
  const gas = hex(data === '0x' ? 21_000n : 100_000n);
  return service.anvil.rpc<string>('eth_sendTransaction', { from, to, value: hex(value), data, gas, gasPrice: hex(GAS_PRICE) });
}
const writesBack = (currency: 'ETH' | 'USDT') =>
  writeMovesBack(service.ctx, { currency, port: portOf(service.ctx, currency) as EvmPort });
const noted = async () =>
  (await Promise.all((['ETH', 'USDT'] as const).map((code) => readMoves(service.db, code, 10_000)))).flat();
const ended = async (purpose: 'sweep' | 'top_up') =>
  (await service.batches(purpose)).map(({ currency, state }) => [currency, state]);

/** Payments in both currencies, moved, and ether that was brought for the gas of USDT; all in one final block, noted and not booked. */
async function moved(): Promise<void> {
  const [ether, dollars] = [await service.owe('ETH', 300_00n), await service.owe('USDT', 300_00n)];
  await service.pay('ETH', ether.address, TENTH);
  await service.pay('USDT', dollars.address, 300_000_000n);
  await service.mine(FINAL);
  const hot = await service.hot('ETH');
  await sent(ether.address, hot, TENTH - 21_000n * GAS_PRICE);
  await sent(hot, dollars.address, 100_000n * GAS_PRICE);
  await service.mine();
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', await service.hot('USDT'), 300_000_000n);
  await sent(dollars.address, service.anvil.token, 0n, data);
  await service.mine(FINAL);
}

test.each([
  ['the signer has not confirmed its keys again', false],
  ['an imported key is in use', true],
])('what was moved is booked where %s', { timeout: TIMEOUT }, async (_, isImported) => {
  const [sweeps, topUps] = [await ended('sweep'), await ended('top_up')];
  await moved();
  const keys = (await listKeys(service.db)).filter(({ origin, retiredAt }) => origin === 'signer' && retiredAt === null);
  expect(keys.map(({ currency }) => currency).sort()).toEqual(['ETH', 'USDT']);
  const at = new Date();
  for (const { id, currency } of keys)
    if (isImported) await importKey(service.db, { currency, xpub: `another account of ${currency}`, at });
    else await distrustKey(service.db, id);
  for (const currency of ['ETH', 'USDT'] as const) await writesBack(currency);
  expect(await noted()).toEqual([]);
  const query = (text: string) => service.db.query({ text, values: [] });
  if (isImported) for (const { currency, xpub } of keys) await importKey(service.db, { currency, xpub, at });
  else await query('update account_xpubs set confirmed_at = created_at');
  service.restart();
  await service.work(61_000);
  await service.mine();
  await service.work(61_000);
  expect(await ended('sweep')).toEqual([...sweeps, [ETHER, 'final'], ['USDT', 'final']]);
  expect(await ended('top_up')).toEqual([...topUps, [ETHER, 'final']]);
  expect(await service.findings()).toEqual([]);
});

test('what no node shows, of however many addresses, hides nothing of our sending address', { timeout: TIMEOUT }, async () => {
  const topUps = await ended('top_up');
  await moved();
  const many = `insert into forgotten_moves select 'ETH', '0x' || lpad(to_hex(n), 64, '0'), 'address ' || n % 1000, n / 1000, height, hash
                  from generate_series(1, 4000) n, lateral (select height, hash from blocks where currency = 'ETH' order by height limit 1) oldest`;
  await service.db.query({ text: many, values: [] });
  await writesBack('ETH');
  expect((await ended('top_up')).length).toBe(topUps.length + 1);
  // of each sender only the first that is not shown counts
  await service.db.query({
    text: `delete from forgotten_moves where substr(sender, 9)::int > 9 and sender like 'address %'`,
    values: [],
  });
  const { address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  const txid = await sent(address, await service.hot('ETH'), TENTH - 21_000n * GAS_PRICE);
  await service.mine(FINAL);
  await service.db.query({ text: `delete from forgotten_moves where sender = 'address 9'`, values: [] });
  await writesBack('ETH');
  expect((await noted()).map((one) => one.txid)).not.toContain(txid);
});
