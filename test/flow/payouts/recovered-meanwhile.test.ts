// A forgotten transaction is booked while somebody decides, or stores a signature for, the payout that it pays: whoever comes second is told to look again.
// And what a reorganisation puts in the place of one that is booked.
import { expect, test, vi } from 'vitest';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, nextOwn, type Output, scriptOf } from './forgotten-transactions.ts';

batchServiceForEach();

const AMOUNT = 200_000n;
async function freeOutput(): Promise<Output> {
  const { rows } = await service.admin.query(
    'select txid, vout from payments p where part_key is not null and not spent and not exists (select from outgoing_inputs i where i.txid = p.txid) limit 1',
  );
  return rows[0];
}
const waiting = (count: number) =>
  vi.waitFor(async () => {
    const text = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    expect((await service.admin.query(text)).rows[0].n).toBe(count);
  }, 10_000);
/** Booked while `first` has the payout; what the booking is refused with. */
async function bookedBehind(id: string, first: () => Promise<unknown>, output: Output) {
  const pays = [
    { script: await scriptOf(id), amountMinor: AMOUNT },
    { script: await nextOwn(1), amountMinor: 797_500n },
  ];
  const { recover } = await found([output], pays, [id]);
  const blocker = await service.admin.connect();
  try {
    await blocker.query('begin');
    await blocker.query('select from payouts where id = $1 for update', [id]);
    const one = first();
    await waiting(1);
    const refused = expect(recover()).rejects.toMatchObject({
      code: 'not_resolvable',
      message: expect.stringContaining('at this moment'),
    });
    await waiting(2);
    await blocker.query('rollback');
    await one;
    await refused;
  } finally {
    blocker.release();
  }
  return { recover };
}

test.each(['paid', 'failed'] as const)('decided as %s meanwhile: it is booked by what was decided', async (outcome) => {
  await batches.earn(3);
  const id = await batches.request();
  // whoever decides has looked before it was found
  const setOpen = (isOpen: boolean) =>
    service.admin.query(
      isOpen
        ? 'update unknown_movements set resolved_at = null, resolved_by = null, resolution = null'
        : `update unknown_movements set resolved_at = now(), resolved_by = 'a test', resolution = 'a test'`,
    );
  const decide = async () => {
    await setOpen(false);
    return resolvePayout(ctx, { payoutId: id, outcome, evidence: 'asked' });
  };
  const { recover } = await bookedBehind(id, decide, await freeOutput());
  await setOpen(true);
  expect(await recover()).toMatchObject({ payoutIds: [id], lost: 0n });
  await service.mine(6);
  expect(await service.findings()).toEqual([]);
});

test('its signature is stored meanwhile: it stays in its batch, and what was booked is lost', async () => {
  await batches.earn(4);
  const id = await batches.request();
  const batch = await batches.formed();
  const { recover } = await bookedBehind(id, () => batches.signed(batch), await freeOutput());
  expect(await batches.row(id)).toMatchObject({ step: 'batched', batch_id: batch.id });
  expect(await recover()).toMatchObject({ payoutIds: [], lost: AMOUNT });
  expect(await batches.row(id)).toMatchObject({ step: 'batched', batch_id: batch.id });
});

test.each(['pays a payout', 'pays none'])(
  'a reorganisation puts another one in its place, which %s: what both have lost is lost once',
  async (which) => {
    await batches.earn(2);
    const [input, own] = [await freeOutput(), await nextOwn()];
    const asked = which === 'pays none' ? [] : [await batches.request()];
    const paid = AMOUNT * BigInt(asked.length);
    const before = await service.balance('asset:chain:BTC');
    const scripts = await Promise.all(asked.map(scriptOf));
    const sent = (fee: bigint) => {
      const pays = scripts.map((script) => ({ script, amountMinor: AMOUNT }));
      const change = { script: own, amountMinor: 900_000n - paid - fee };
      return found([input], [...pays, { script: '0014aa', amountMinor: 100_000n }, change], asked);
    };
    const goesOn = async () => {
      const { rows } = await service.admin.query<{ id: string }>('select id from outgoing_batches');
      for (const { id } of rows) await progress(ctx, id);
    };
    const first = await sent(500n);
    expect(await first.recover()).toMatchObject({ payoutIds: asked, lost: 100_000n });
    await goesOn();
    await service.vanish('BTC', 1);
    await goesOn();
    const second = await sent(1_000n);
    expect(await second.recover()).toMatchObject({ payoutIds: asked, lost: 100_000n });
    await service.mine(6);
    await goesOn();
    expect(await service.balance('asset:chain:BTC')).toBe(before - 100_000n - paid - 1_000n);
    expect(await service.balance('expense:unknown_outflow:BTC')).toBe(which === 'pays none' ? 101_000n : 100_000n);
  },
);
