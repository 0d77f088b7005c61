// A transaction that strangers pay in too many outputs is set aside with its reason, and one of very many takes turns: others are delayed by
// one portion at most.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { reconsiderLarge } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MOST = 1_000;
let service: ServiceOnDatabase;
let troubles: string[];
let run: () => Promise<boolean>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  troubles = [];
  const onTrouble = (id: string, error: unknown) => void troubles.push(`${id} ${(error as Error).message}`);
  run = createJudgeDue(service.ctx, onTrouble, undefined, MOST);
});
afterEach(() => service.drop());

const dust = (count: number): bigint[] => Array.from({ length: count }, (_, n) => BigInt(600 + (n % 400)));
const lastOf = async (id: string): Promise<string> => (await service.path(id)).at(-1) as string;
async function judgeAll(): Promise<void> {
  while (await run());
}

test('one with more payments than the judge decides is set aside with its reason; others go on, and so does it below', async () => {
  const { transactionId } = await service.create(50_000_00n);
  await service.pay(transactionId, dust(MOST));
  await judgeAll();
  expect([await lastOf(transactionId), troubles]).toEqual(['pending', []]);
  await service.pay(transactionId, 700n);
  const other = await service.create();
  await service.pay(other.transactionId, 50_000n);
  await judgeAll();
  expect(await lastOf(other.transactionId)).toBe('pending');
  const reason = `it has more than ${MOST} payments, which the judge does not decide`;
  expect(troubles).toEqual([`${transactionId} ${reason}`]);
  const { problems } = await readReadiness(service.ctx, ['BTC']);
  expect(problems.filter((problem) => problem.includes(transactionId) && problem.includes(reason))).toHaveLength(1);
  expect(await reconsiderLarge(service.ctx, transactionId)).toBe('pending');
  expect((await service.admin.query('select 1 from set_aside')).rows).toEqual([]);
  await service.pay(transactionId, 701n);
  await judgeAll();
  expect(troubles).toHaveLength(2);
  await service.admin.query('delete from payments where transaction_id = $1 and amount in (700, 701)', [transactionId]);
  await service.admin.query('update set_aside set rests_until = clock_timestamp()');
  await judgeAll();
  expect((await service.admin.query('select 1 from set_aside')).rows).toEqual([]);
});

test('while others are due, a large one rests between its portions; alone it gets every turn', async () => {
  const { transactionId: large } = await service.create(50_000_00n);
  await judgeAll();
  const decided = async (): Promise<number> => {
    const { rows } = await service.admin.query('select count(*)::int as n from payments where transaction_id = $1 and present', [
      large,
    ]);
    return rows[0].n;
  };
  let portions = 0;
  const turns = 12;
  for (let n = 0; n < turns; n++) {
    await service.pay(large, dust(n === 0 ? 400 : 5));
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    const before = await decided();
    await run();
    if ((await decided()) > before) portions++;
    expect(await lastOf(transactionId)).toBe('pending');
  }
  expect(portions).toBeGreaterThanOrEqual(1);
  expect(portions).toBeLessThanOrEqual(turns / 2);
  await judgeAll();
  expect(await decided()).toBe(400 + 5 * (turns - 1));
});
