// At which price a late payment is valued (behaviour §3, rule 11): that of its arrival, at most five minutes old; where nobody had one, the first after
// it, and nothing is decided before.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MINUTE = 60_000;
/** 50 USD at 100,000. */
const DUE = 50_000n;
let service: ServiceOnDatabase;
let id: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ transactionId: id } = await service.create());
  await service.wait(17 * MINUTE);
  await service.judge();
});
afterEach(() => service.drop());

const status = async (): Promise<string> => (await service.row(id)).status as unknown as string;
async function valuedAt(): Promise<string | null> {
  const { rows } = await service.admin.query('select value_rate from payments where transaction_id = $1', [id]);
  return rows[0].value_rate;
}
/** Time passes, and nobody has a price. */
async function silence(ms: number): Promise<void> {
  service.pass(ms);
  await service.catchUp();
}
async function paid(): Promise<void> {
  await service.pay(id, DUE);
  await service.mine(1);
  await service.judge();
}

test.each([
  ['that is worth the price', '100000.00', 'succeeded'],
  ['that is within the tolerance', '99000.00', 'succeeded'],
  ['that is below the tolerance', '98999.99', 'review'],
])('without a price in the five minutes before, the first one after counts: one %s', async (_, price, after) => {
  await silence(5 * MINUTE + 1_001);
  await paid();
  expect([await status(), await valuedAt()]).toEqual(['review', null]);
  await silence(30 * MINUTE);
  await service.judge();
  expect([await status(), await valuedAt()]).toEqual(['review', null]);
  await service.rate(price);
  await silence(5_000);
  await service.rate('100000.00');
  await service.judge();
  expect([await status(), Number(await valuedAt())]).toEqual([after, Number(price)]);
  expect(await service.findings()).toEqual([]);
});

test('a price of five minutes before counts, whatever came after', async () => {
  await silence(5 * MINUTE);
  await paid();
  await service.rate('50000.00');
  await service.mine(1);
  await service.judge();
  expect([await status(), Number(await valuedAt())]).toEqual(['succeeded', 100_000]);
});

test('a price that moves within the second of the arrival does not make the required depth less than its value needs', async () => {
  // 50 USD were asked for; when the payment is noticed it is worth 1,000 and needs 3 confirmations
  await service.rate('2000000.00');
  await service.pay(id, DUE);
  await service.judge();
  expect([await status(), Number(await valuedAt())]).toEqual(['review', 2_000_000]);
  service.pass(500);
  await service.rate('100000.00');
  await service.catchUp();
  const seen: string[] = [];
  for (let n = 0; n < 3; n++) {
    await service.mine(1);
    await service.judge();
    seen.push(await status());
  }
  expect(seen).toEqual(['review', 'review', 'succeeded']);
  expect(await service.findings()).toEqual([]);
});
