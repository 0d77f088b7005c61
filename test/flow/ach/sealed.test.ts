// Outside the sandbox account numbers are sealed wherever they are kept: the whole way of a payout, and nobody finds its account in the database
// or in our folder without the key.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openText, sealText } from '../../../src/core/sealed-text.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import type { Context } from '../../../src/flow/context.ts';
import { answerOnce } from '../../../src/flow/idempotency.ts';
import { getSettings, setSettings } from '../../../src/flow/merchants/settings.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { checkPayoutStatus, listPayouts } from '../../../src/flow/payouts/reads.ts';
import { getPayoutSettings, setPayoutSettings } from '../../../src/flow/payouts/settings.ts';
import { folderBank } from '../../../src/outside/bank/folder-bank.ts';
import { keptFiles } from '../../../src/outside/bank/kept-files.ts';
import { createSealing } from '../../../src/outside/sealing.ts';
import { SANDBOX_BANK } from '../../../src/sandbox/bank/bank.ts';
import { achJob } from '../../../src/worker/payouts/ach/driver.ts';
import { checkedByMoov } from '../../support/moov-ach.ts';
import { tellingTo } from '../../support/payout-jobs.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, refusedWith, row, SCOPES, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const NUMBER = '8675309123';
const ACCOUNT = `ach:021000021:${NUMBER}:savings`;
const folder = mkdtempSync(join(tmpdir(), 'bursar-sealed-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const key = (fill: number) => createSealing(new Uint8Array(32).fill(fill));

/** Every table in which a text is found. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows } = await world.admin.query(
    `select schemaname || '.' || tablename as name from pg_tables where schemaname in ('public', 'ledger') order by 1`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const hit = await world.admin.query(
      `select exists (select from ${name} t where t::text like '%' || $1 || '%' or t::text like '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%') as hit`,
      [text],
    );
    if (hit.rows[0].hit) found.push(name);
  }
  return found;
}
const filesWith = (text: string): string[] =>
  readdirSync(join(folder, 'bank'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ach') || name.endsWith('.json'))
    .filter((name) => readFileSync(join(folder, 'bank', name)).includes(text));

test('a payout, its settings, its allow-list, its answers and its files keep no account number that can be read', async () => {
  const sealed: Context = { ...ctx, ports: { ...ctx.ports, sealing: key(1) } };
  const merchantId = await shopWith(BTC);
  await setSettings(sealed, { merchantId, scopes: SCOPES, change: { payoutAllowList: [ACCOUNT] } });
  expect((await getSettings(sealed, { merchantId })).payoutAllowList).toEqual([ACCOUNT]);
  const asked = { merchantId, amount: '100', sourceCurrency: null };
  const elsewhere = requestAchPayout(sealed, { ...asked, destination: 'ach:021000021:1111' });
  expect(await refusedWith(elsewhere)).toBe('destination_not_allowed');

  const call = { merchantId, operation: 'x', key: 'k', bodyHash: Buffer.alloc(32), kept: 'a day' } as const;
  const answers = [1, 2].map(() => answerOnce(sealed, call, async () => `{"destination":"${ACCOUNT}"}`, String).catch(String));
  await Promise.all(answers);
  const again = await answerOnce(sealed, call, async () => 'never', String);
  expect(again).toMatchObject({ text: `{"destination":"${ACCOUNT}"}`, replayed: true });

  const change = {
    enabled: null,
    method: 'ach',
    destination: ACCOUNT,
    threshold: '150',
    leave: null,
    sourceCurrency: null,
    paused: null,
  } as const;
  await setPayoutSettings(sealed, { merchantId, change });
  expect((await getPayoutSettings(sealed, { merchantId })).destination).toBe(ACCOUNT);
  const { id: payoutId } = await requestAchPayout(sealed, { ...asked, destination: ACCOUNT });
  await world.wait(86_400_000);
  await requestAutomaticPayouts(sealed, { overLightning: false, silent: new Map() }, (_merchant, error) => {
    throw error;
  });
  expect((await checkPayoutStatus(sealed, { merchantId, payoutId })).destination).toBe(ACCOUNT);
  const filter = { merchantId, limit: 9, startingAfter: null, status: null, method: null, createdGteMs: null, createdLtMs: null };
  const { data } = await listPayouts(sealed, filter);
  expect(data.map(({ destination }) => destination)).toEqual([ACCOUNT, ACCOUNT]);

  const troubles: string[] = [];
  const job = achJob(sealed, {
    bank: folderBank(join(folder, 'exchange')),
    files: keptFiles(join(folder, 'bank'), sealed.ports.sealing),
    origin: SANDBOX_BANK,
    intents: async () => () => true,
    owner: 'test',
    ...tellingTo(troubles),
  });
  await world.wait(86_400_000);
  await job.run();
  const [name = ''] = readdirSync(join(folder, 'exchange', 'outgoing'));
  const moov = checkedByMoov(join(folder, 'exchange', 'outgoing', name));
  expect(moov.errors).toEqual([]);
  expect(moov.batches[0]?.entries.map(({ account, transactionCode }) => [account, transactionCode])).toEqual([
    [NUMBER, 32],
    [NUMBER, 32],
  ]);
  // the bank's tools take it away
  rmSync(join(folder, 'exchange', 'outgoing', name));
  await job.run();
  await world.wait(30 * 86_400_000);
  await job.run();
  expect((await row(payoutId)).status).toBe('completed');
  expect(troubles).toEqual([]);

  expect(await tablesWith(payoutId)).toContain('public.payouts');
  expect(await tablesWith(NUMBER)).toEqual([]);
  expect(filesWith(NUMBER)).toEqual([]);
  expect(readdirSync(join(folder, 'bank'))).toContain(name);
  expect(await ledgerFindings()).toEqual([]);
});

test('what is sealed opens with its key and for what it belongs to only, and what was never sealed stays', () => {
  const text = sealText(key(1), ACCOUNT, 'payout 1');
  expect(text).not.toContain(NUMBER);
  expect(sealText(key(1), ACCOUNT, 'payout 1')).not.toBe(text);
  expect(openText(key(1), text, 'payout 1')).toBe(ACCOUNT);
  expect(() => openText(key(2), text, 'payout 1')).toThrow();
  expect(() => openText(key(1), text, 'payout 2')).toThrow();
  expect(() => openText(key(1), `${text.slice(0, -8)}AAAAAAA=`, 'payout 1')).toThrow();
  expect(openText(key(1), ACCOUNT, 'payout 1')).toBe(ACCOUNT);
  // a bank file or a report that anybody without the key has written
  expect(() => key(1).open(Buffer.from('101 091000019'), '2026-06-01-A')).toThrow('2026-06-01-A is not sealed');
});
