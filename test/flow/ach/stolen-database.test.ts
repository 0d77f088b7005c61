// Whoever has the database's password, as the role of the service, moves nothing by ach: what reaches the bank is compared with what an API has
// signed, with the ledger, which this role cannot rewrite, and with our folder.
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeNachaFile } from '../../../src/core/ach/nacha-file.ts';
import { achHandOverEntry } from '../../../src/core/payouts/ach-postings.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { SANDBOX_BANK } from '../../../src/sandbox/bank/bank.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { testBank } from '../../support/bank.ts';
import { owe } from '../../support/funded.ts';
import { approvalAbove, BTC, ctx, merchantsForAll, row, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const ACCOUNT = 'ach:021000021:123456789';
let bank: ReturnType<typeof testBank>;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: false });
  bank.state.isWitness = true;
  await bank.look();
});
afterEach(() => clearBreakers(ctx.db, 'test', world.now()));

/** As the service's own role. */
const asService = (text: string, values: unknown[] = []) => ctx.db.query({ text, values });
const refused = (text: string, values: unknown[] = []): Promise<string> =>
  asService(text, values).then(
    () => 'it was allowed',
    (error: Error) => error.message,
  );
const requested = async (merchantId?: bigint) =>
  requestAchPayout(ctx, {
    merchantId: merchantId ?? (await shopWith(BTC)),
    amount: '100',
    destination: ACCOUNT,
    sourceCurrency: null,
  });
const findings = async (): Promise<string> => (await openBreakers(ctx.db)).flatMap((breaker) => breaker.findings).join();
const stateOf = async (name: string): Promise<string> =>
  (await world.admin.query('select state from ach_files where name = $1', [name])).rows[0].state;
const fileOf = async (id: string): Promise<string> =>
  (await world.admin.query('select file from ach_entries where payout_id = $1', [id])).rows[0].file;

type Line = { readonly account: string; readonly cents: bigint; readonly id: string };
let traces = 4_000_000;
function nacha(name: string, lines: readonly Line[]) {
  const entries = lines.map(({ account, cents, id }) => {
    traces += 1;
    const trace = `09100001${traces}`;
    return {
      transactionCode: 22 as const,
      routing: '021000021',
      account,
      cents,
      id: id.slice(-15).toUpperCase(),
      name: 'SHOP',
      trace,
    };
  });
  const text = writeNachaFile({
    origin: SANDBOX_BANK,
    date: name.slice(0, 10),
    time: '1700',
    modifier: name.slice(-1),
    entryClass: 'CCD',
    description: 'PAYOUT',
    effective: '2026-06-02',
    entries,
  });
  const bytes = Buffer.from(text);
  return { name, bytes, sha256: createHash('sha256').update(bytes).digest(), traces: entries.map(({ trace }) => trace) };
}
/** Plants a file that waits for its hand-over. */
async function planted(name: string, lines: readonly Line[], change = (bytes: Buffer): Buffer => bytes) {
  const file = nacha(name, lines);
  const bytes = change(file.bytes);
  const sha256 = createHash('sha256').update(bytes).digest();
  await asService(
    `insert into ach_files (name, day, modifier, bytes, sha256, credits, state, settles_on, returns_end, created_at)
       values ($1, $2::date, $3, $4, $5, $6, 'built', '2026-06-02', '2026-06-05', now())`,
    [name, name.slice(0, 10), name.slice(-1), bytes, sha256, lines.reduce((total, { cents }) => total + cents, 0n).toString()],
  );
  return file;
}
/** Makes a payout look as if a file had it. */
async function filed(id: string, file: { readonly name: string; readonly traces: readonly string[] }, at = 0): Promise<void> {
  const payout = await row(id);
  const source = { currency: 'BTC' as const, amount: BigInt(payout.source_amount as string) };
  const posted = { id, merchantId: BigInt(payout.merchant_id as string), amount: 99_00n, feeMax: 1_00n, source };
  await asService('insert into ach_entries (trace, file, payout_id, cents) values ($1, $2, $3, 9900)', [
    file.traces[at],
    file.name,
    id,
  ]);
  await asService(`update payouts set step = 'batched' where id = $1`, [id]);
  await postEntries(ctx.db, [{ entry: achHandOverEntry(posted), transactionId: null, payoutId: id, atMs: world.now() }]);
}
const day = (n: number): string => `2026-05-${String(n).padStart(2, '0')}-A`;

describe('a planted file', () => {
  test('of bytes that no payout asked for is not handed over, and stops payouts', async () => {
    await planted(day(1), [{ account: '66666666', cents: 198_000n, id: 'payout_thief00000000' }]);
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(bank.copies.size).toBe(0);
    expect(await findings()).toContain(`bank file ${day(1)} is not handed over`);
    await asService(`update ach_files set state = 'refused' where name = $1`, [day(1)]);
  });

  test.each<[string, (id: string) => readonly Line[]]>([
    ['another account than its payout', (id) => [{ account: '66666666', cents: 9_900n, id }]],
    ['another amount than its payout', (id) => [{ account: '123456789', cents: 9_901n, id }]],
    ['another payout than its entry', () => [{ account: '123456789', cents: 9_900n, id: 'payout_thief00000000' }]],
    [
      'an account besides',
      (id) => [
        { account: '123456789', cents: 9_900n, id },
        { account: '66666666', cents: 198_000n, id: 'payout_thief00000000' },
      ],
    ],
  ])('with %s is not handed over', async (_, lines) => {
    const { id } = await requested();
    const name = day(2 + (traces % 9));
    await filed(id, await planted(name, lines(id)));
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(await findings()).toContain(name);
    await asService(`update ach_files set state = 'refused' where name = $1`, [name]);
  });

  test('whose payout was changed after its API had signed it waits, even when file and payout agree', async () => {
    const { id } = await requested();
    const name = day(12);
    // the service's role may not even do that
    await world.admin.query(`update payouts set destination = 'ach:021000021:66666666' where id = $1`, [id]);
    await filed(id, await planted(name, [{ account: '66666666', cents: 9_900n, id }]));
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(bank.troubles.join()).toContain(`payout ${id} is not what an API that is trusted has signed`);
    await asService(`update ach_files set state = 'refused' where name = $1`, [name]);
  });

  test('with bytes that this server does not write is not handed over', async () => {
    const { id } = await requested();
    const name = day(13);
    const changed = (bytes: Buffer): Buffer => Buffer.from(bytes.toString().replace(/^([58])220/gm, '$1200'));
    await filed(id, await planted(name, [{ account: '123456789', cents: 9_900n, id }], changed));
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(await findings()).toContain('not as this server writes them');
    await asService(`update ach_files set state = 'refused' where name = $1`, [name]);
  });

  test('whose payout nobody has approved, although it needs that, waits', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '50');
    const { id } = await requested(merchantId);
    await asService(
      `update payouts set status = 'processing', step = 'queued', held_reason = null, approved_at = now() where id = $1`,
      [id],
    );
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(await row(id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
    expect(bank.troubles.join()).toContain(`payout ${id} is not what an API that is trusted has signed`);
    await cancelPayout(ctx, { merchantId, payoutId: id });
  });

  test('whose payout has no hold any more is not handed over', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '50');
    const { id } = await requested(merchantId);
    await cancelPayout(ctx, { merchantId, payoutId: id });
    await asService(`update payouts set status = 'processing', step = 'queued', error = null, given_back = null where id = $1`, [
      id,
    ]);
    const name = day(14);
    await filed(id, await planted(name, [{ account: '123456789', cents: 9_900n, id }]));
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(await findings()).toContain(`the hold of payout ${id} was released`);
    await asService(`update ach_files set state = 'refused' where name = $1`, [name]);
  });
});

describe('a payout that was paid, or cancelled,', () => {
  test('stays in its file: the role of the service can neither delete nor change what was handed over', async () => {
    const { id } = await requested();
    bank.cutOff();
    await bank.look();
    for (const text of [
      `delete from ach_entries`,
      `delete from ach_files`,
      `update ach_entries set payout_id = payout_id`,
      `update ach_entries set trace = trace`,
      `update ach_entries set file = file, cents = cents`,
      `update ach_files set bytes = bytes`,
      `update ach_files set sha256 = sha256, name = name`,
    ])
      expect(await refused(text)).toContain('permission denied');
    expect(await fileOf(id)).toBe(bank.executed[0]?.name);
  });

  test('is not filed again when its entry is gone: the ledger remembers it, and so does our folder', async () => {
    const { id } = await requested();
    bank.cutOff();
    await bank.look();
    const name = await fileOf(id);
    await world.admin.query('delete from ach_entries where payout_id = $1', [id]);
    await asService(`update payouts set step = 'queued' where id = $1`, [id]);
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect(await findings()).toContain(`payout ${id} waits, and is paid by our copy of bank file ${name}`);
    await clearBreakers(ctx.db, 'test', world.now());
    bank.copies.clear();
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect(await findings()).toContain(`payout ${id} waits, and was handed over before`);
    await asService(`update payouts set step = 'batched' where id = $1`, [id]);
  });

  test('is not filed again when it was cancelled and looks as if it waited', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '50');
    const { id } = await requested(merchantId);
    await cancelPayout(ctx, { merchantId, payoutId: id });
    const back = `update payouts set status = $2, step = $3, error = $4, given_back = $5 where id = $1`;
    const before = await row(id);
    await asService(back, [id, 'processing', 'queued', null, null]);
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toEqual([]);
    expect(await findings()).toContain(`the hold of payout ${id} was released`);
    await asService(back, [id, 'failed', 'ended', before.error, before.given_back]);
  });

  test('is not handed over again when its file looks as if it had never been', async () => {
    const { id } = await requested();
    bank.cutOff();
    await bank.look();
    const name = await fileOf(id);
    await asService(`update ach_files set state = 'built' where name = $1`, [name]);
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect(await stateOf(name)).toBe('acked');
  });
});

/** A file whose first hand-over did not reach the bank, and a merchant in it that owes something since. */
async function waitingFile() {
  const merchantId = await shopWith(BTC);
  const { id } = await requested(merchantId);
  bank.cutOff();
  bank.state.next = ['lost_request'];
  bank.state.onHandOver = async () => {
    bank.state.isSilent = true;
  };
  await bank.look();
  const name = await fileOf(id);
  expect(await stateOf(name)).toBe('unknown');
  await owe(ctx, merchantId, 30_000n, 'BTC');
  bank.state.isSilent = false;
  bank.state.onHandOver = async () => undefined;
  await bank.look();
  expect(bank.executed).toEqual([]);
  expect(bank.troubles.join()).toContain(`the merchant of payout ${id} owes something`);
  return { name, merchantId };
}

test('a file that the bank does not have waits while a merchant of it owes something, and is named by /readyz', async () => {
  const { name, merchantId } = await waitingFile();
  expect((await readReadiness(ctx, ['BTC'])).problems.join()).toContain(`bank file ${name}: it waits`);
  await owe(ctx, merchantId, -30_000n, 'BTC');
  await bank.look();
  expect(bank.executed.map((file) => file.name)).toEqual([name]);
  expect(await stateOf(name)).toBe('acked');
  expect((await readReadiness(ctx, ['BTC'])).problems.join()).not.toContain(name);
});

test('the others in such a file wait no longer than to the end of the next business day', async () => {
  const { name, merchantId } = await waitingFile();
  await world.wait(4 * 86_400_000);
  await bank.look();
  expect(bank.executed.map((file) => file.name)).toContain(name);
  await owe(ctx, merchantId, -30_000n, 'BTC');
});
