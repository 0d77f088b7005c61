// USDT's owner switches its fee on while a payout is out: its payee gets less than was sent. All of it has left for good, so the payout is completed once
// its block is final, and nobody else's wait.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { asOwnerFirst, ledgerIsChain, ownerCall, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'d5'.repeat(20)}`;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const fee = (points: bigint): string => ownerCall('setFee(uint256)', points);
const status = async (id: string) => (await readPayout(service.db, id))?.status;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await receiveDollars(service, 500n);
  await works(service, 3);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

test('is completed once it is final', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  expect(await status(id)).toBe('processing');
  await asOwnerFirst(service, fee(100n));
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine(12);
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await status(id)).toBe('processing');
  await service.mine(FINAL);
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await status(id)).toBe('completed');
  expect(await service.units(PAYEE)).toBe(49_500_000n);
  const { rows: told } = await service.db.query<{ reason: string }>({
    text: `select reason from events where object_id = $1 and status = 'completed'`,
    values: [id],
  });
  expect(told).toEqual([{ reason: "the token's contract has kept 0.500000 USDT of it" }]);
  const other = await service.request(PAYEE);
  await works(service, 2);
  expect(await status(other)).toBe('completed');
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
});
