// Database and signer were put back to before the first that ever left, an operator has let payouts go on after that, and has it booked later: ether for
// gas that was among it is booked too, although what was signed since has a higher nonce.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readMoves } from '../../src/store/sweeps/forgotten-moves.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 120_000;
const STRANGER = `0x${'7d'.repeat(20)}`;
const UNITS = 300_000_000n;
const FINAL = 65;
const LATER_MS = 61_000;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

async function sent(to: string, value: string): Promise<string> {
  const from = await service.hot('ETH');
  await service.anvil.rpc('anvil_impersonateAccount', from);
  return service.anvil.rpc<string>('eth_sendTransaction', { from, to, value, gas: '0x5208' });
}
async function works(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
}

test('ether for gas from before what was signed first is booked', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  const loss = await sent(STRANGER, '0x64');
  const move = await sent(address, '0x64');
  await service.mine(FINAL);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  service.restart();
  await works(1);
  expect((await openBreakers(service.db)).map(({ name }) => name)).toEqual(['payouts']);
  await service.goOn();
  service.restart();
  await works(4);
  expect((await service.batches('top_up')).map(({ nonce, state }) => [nonce, state])).toContainEqual([2, 'final']);
  service.restart();
  await works(1);
  expect((await readMoves(service.db, 'ETH', 10)).map(({ txid }) => txid)).toEqual([]);
  await service.price();
  expect(await recoverSent(service.ctx, loss, { by: 'test', acceptsLoss: true })).toMatchObject({ lost: 100n });
  await service.goOn();
  await works(2);
  expect((await service.batches('top_up')).map(({ nonce, state }) => `${nonce} ${state}`).sort()).toEqual(['1 final', '2 final']);
  expect([await openBreakers(service.db), await service.findings(), move]).toEqual([[], [], move]);
  const held = [await service.hot('ETH'), await service.hot('USDT'), address];
  const ether = (await Promise.all(held.map((one) => service.ether(one)))).reduce((a, b) => a + b, 0n);
  expect(await service.balance('asset:chain:ETH')).toBe(ether);
});
