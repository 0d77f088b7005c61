// The clock of the service is set back a day, or jumps a month, while payouts are on their way on a real EVM: they are replaced, completed and swept
// all the same, once each.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const DAY_MS = 86_400_000;
const FINAL = 70;
const LATER_MS = 61_000;
const FIFTY = 50_000_000n;
const PAYEE = `0x${'cb'.repeat(20)}`;
let service: EvmService;
let shiftMs = 0;

beforeAll(async () => {
  service = await openEvmService();
  const { clock } = service.ctx.ports;
  const before = clock.now.bind(clock);
  // what is measured by the steady clock goes on
  Object.assign(clock, { now: () => before() + shiftMs });
  const { address } = await service.owe('USDT', 600_00n);
  await service.pay('USDT', address, 600_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

const status = async (id: string): Promise<string | undefined> => (await readPayout(service.db, id))?.status;

test.each([
  ['is set back a day', -DAY_MS],
  ['jumps a month', 31 * DAY_MS],
])('the clock %s while a payout is under way', { timeout: TIMEOUT }, async (_, jumpMs) => {
  const before = await service.units(PAYEE);
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_dropAllTransactions');
  // blocks ask for more than it offers
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${(20n * 10n ** 9n).toString(16)}`);
  shiftMs += jumpMs;
  await service.mine(1);
  await service.work();
  await service.work(1);
  const { rows } = await service.db.query<{ n: number }>({
    text: 'select count(*)::int as n from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
    values: [id],
  });
  expect(rows).toEqual([{ n: 2 }]);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect([await status(id), (await service.units(PAYEE)) - before]).toEqual(['completed', FIFTY]);
  await service.work(LATER_MS);
  expect(await service.findings()).toEqual([]);
});
