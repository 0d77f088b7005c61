// The chain against the books: every difference is found by its outpoint, whatever was forgotten, invented or changed.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { readReconciled } from '../../src/store/chain/receipts.ts';
import { readChainTotals } from '../../src/store/ledger/reconciliation.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { askCli, runCli } from '../cli/run.ts';
import { bursar, eachWithReadChain, forget, node, paid, proxy, readOn, run, worker } from './read-twice.ts';
import { Refused } from './tampered-node.ts';

vi.setConfig({ testTimeout: 60_000 });
eachWithReadChain();

describe('the second reading', () => {
  test('finds everything green, says the sums, and reads each block once, at final depth', async () => {
    const deep = await paid(6);
    const short = await paid(6, 1_000n); // waits for more: not booked, and that is right
    await paid(2);
    await bursar.settle(worker);
    expect(await readOn()).toBeGreaterThan(5);
    expect(await readOn()).toBe(0);
    expect(await bursar.findings()).toEqual([]);
    const tip = node.state.active.length - 1;
    expect(await readChainTotals(bursar.ctx.db)).toEqual([
      {
        currency: 'BTC',
        height: tip - 5,
        received: deep.minor + short.minor,
        booked: deep.minor,
        waiting: { payments: 1, amount: short.minor, statuses: ['pending'] },
      },
    ]);
  });

  test('names a payment that nobody recorded; the rescan finds it, and once', async () => {
    // seen by the watcher only after its row is taken away again, before any judge looks
    const made = await paid(7, 2_000n);
    for (let i = 0; i < 5; i++) await worker.pass();
    await forget(made.txid);
    await bursar.settle(worker);
    await readOn();
    const finding = `RECON-1: BTC ${made.txid}:0 of 2000 in block ${made.height} to ${made.id} is no payment (bursar chain rescan --currency BTC --from ${made.height} finds it)`;
    const findings = await bursar.findings();
    expect(findings).toHaveLength(1);
    expect(findings[0]?.replace(/:\d+ of/, ':0 of')).toBe(finding);
    const done = await rescan(bursar.ctx, 'BTC', { fromHeight: made.height - 1 });
    expect(done).toMatchObject({ blocks: 8, found: [{ transactionId: made.id, height: made.height }] });
    expect((await rescan(bursar.ctx, 'BTC', { fromHeight: 1 })).found).toEqual([]);
    await bursar.settle(worker);
    expect(await bursar.findings()).toEqual([]);
    expect((await bursar.story(made.id)).statuses).toEqual(['started', 'pending']);
  });

  test('names a payment whose row was lost after it had been booked; nothing books it again, and the judge goes on', async () => {
    const made = await paid(7);
    await bursar.settle(worker);
    expect((await bursar.story(made.id)).statuses.at(-1)).toBe('succeeded');
    await readOn();
    await forget(made.txid);
    const says = (await bursar.findings()).filter((finding) => finding.startsWith('RECON-1'));
    expect(says).toEqual([
      expect.stringMatching(/ is no longer a payment, though the ledger has booked it: its row was deleted/),
    ]);
    const booked = async () => (await run('select count(*) as n, sum(amount * amount) as s from ledger.posting')).rows;
    const before = await booked();

    const missed = await paid(7, 2_000n);
    for (let i = 0; i < 5; i++) await worker.pass();
    await forget(missed.txid);
    const folder = mkdtempSync(join(tmpdir(), 'bursar-lost-'));
    const here = { DATABASE_URL: bursar.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest', BURSAR_BTC_RPC_URL: proxy.url };
    const args = ['chain', 'rescan', '--currency', 'BTC', '--from', '1'];
    const answer = await askCli<{ found: object[]; lost: object[] }>(args, here, 1);
    expect(answer.found).toMatchObject([{ transaction_id: missed.id }]);
    const { height, id, txid } = made;
    const outpoint = expect.stringMatching(`^${txid}:\\d$`);
    expect(answer.lost).toEqual([
      { outpoint, transaction_id: id, height, entry: expect.stringMatching(`^dep:btc:${txid}:\\d$`) },
    ]);
    expect(await runCli(args, here)).toMatchObject({
      code: 1,
      out: expect.stringMatching(new RegExp(`^LOST ${txid}:`, 'm')),
      // how far it is, where that takes seconds
      err: expect.stringMatching(/^(?:reading BTC again: .*\n)*$/),
    });
    await rm(folder, { recursive: true, force: true });

    // nor does a watcher that meets it again, in another block
    node.reorg(15, { drop: false });
    node.mine(15);
    await bursar.settle(worker);
    expect((await run('select count(*)::int as n from payments where txid = $1', [txid])).rows).toEqual([{ n: 0 }]);
    await run(`update transactions set due_at = '-infinity'`);
    await bursar.settle(worker);
    expect(await booked()).toEqual(before);
    expect((await run(`select id from transactions where due_at = '-infinity'`)).rows).toEqual([]);
  });

  test('an amount that was changed, a payment that was invented', async () => {
    const one = await paid(6);
    await bursar.settle(worker);
    await readOn();
    await run(
      'update payments set amount = amount + 1, in_available = in_available + 1, credited = credited + 1 where txid = $1',
      [one.txid],
    );
    const changed = (await bursar.findings()).filter((finding) => finding.startsWith('RECON'));
    expect(changed).toEqual([expect.stringContaining(`${one.txid}:`)]);
    await run(
      'update payments set amount = amount - 1, in_available = in_available - 1, credited = credited - 1 where txid = $1',
      [one.txid],
    );
    await run(
      `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, block_time, seen_at, caught_up_at, found_mined)
         select transaction_id, currency, repeat('ab', 32), 0, 5, '\\x01', state, height, block_hash, block_time, seen_at, caught_up_at, found_mined
           from payments where txid = $1`,
      [one.txid],
    );
    const invented = (await bursar.findings()).filter((finding) => finding.startsWith('RECON'));
    expect(invented).toEqual([expect.stringContaining(`${'ab'.repeat(32)}:0 of 5 is said to be in block ${one.height}`)]);
  });

  test('a payment that deep which is not booked', async () => {
    const one = await paid(6);
    await bursar.settle(worker);
    await readOn();
    await run('update payments set part_key = null where txid = $1', [one.txid]);
    expect((await bursar.findings()).filter((finding) => finding.startsWith('RECON'))).toEqual([
      expect.stringMatching(`RECON-3: BTC ${one.txid}:. of .* is booked as 0 while the transaction is succeeded`),
    ]);
  });

  test('a reorganisation deeper than final: nothing is red, the new branch is read', async () => {
    const one = await paid(8);
    await bursar.settle(worker);
    await readOn();
    node.reorg(9, { drop: false });
    await bursar.settle(worker);
    expect(await bursar.findings()).toEqual([]);
    node.mine(8);
    await bursar.settle(worker);
    await readOn();
    expect(await bursar.findings()).toEqual([]);
    const at = await readReconciled(bursar.ctx.db, 'BTC');
    expect(at?.hash).toBe(node.state.active[at?.height ?? 0]?.hash);
    expect((await readChainTotals(bursar.ctx.db))[0]).toMatchObject({ received: one.minor, booked: one.minor });
  });

  test.each([8, 30, 100])('a reorganisation of %i blocks that loses the payment: the next reading forgets it', async (depth) => {
    const one = await paid(depth);
    await bursar.settle(worker);
    await readOn();
    expect(await bursar.findings()).toEqual([]);
    node.reorg(depth, { drop: true });
    await bursar.settle(worker);
    expect(await bursar.findings()).toEqual([]);
    node.mine(5);
    await bursar.settle(worker);
    expect(await readOn()).toBe(depth + 1);
    expect(await bursar.findings()).toEqual([]);
    expect((await bursar.story(one.id)).statuses.at(-1)).toBe('review');
    expect((await readChainTotals(bursar.ctx.db))[0]).toMatchObject({ received: 0n, booked: 0n });
    expect(await bursar.available()).toBe(0n);
  });

  test.each([
    ['from where the branches part', false],
    ['from the beginning, when it no longer knows where they part', true],
  ])('what only the new branch holds is found: it is read %s', async (_, isForgotten) => {
    const before = await paid(3);
    const moved = await paid(9);
    await bursar.settle(worker);
    await readOn();
    if (isForgotten) await run('delete from chain_reconciled_blocks');
    const made = await bursar.owe(50_00n);
    node.rewind(10);
    node.mine(1);
    node.pay([{ minor: made.amountDue, script: await bursar.scriptOf(made.transactionId) }]);
    node.mine(10);
    await bursar.settle(worker);
    expect(await readOn()).toBe(isForgotten ? node.state.active.length - 5 - before.height + 1 : 11 - 5);
    expect(await bursar.findings()).toEqual([]);
    const all = before.minor + moved.minor + made.amountDue;
    expect((await readChainTotals(bursar.ctx.db))[0]).toMatchObject({ received: all, booked: all });
  });

  test('headers are kept for the newest blocks only', async () => {
    await run(
      `insert into chain_reconciled_blocks (currency, height, hash) select 'BTC', n, 'old' from generate_series(-3000, -1000) n`,
    );
    await paid(8);
    await bursar.settle(worker);
    await readOn();
    const at = (await readReconciled(bursar.ctx.db, 'BTC'))?.height ?? 0;
    const { rows } = await bursar.ctx.db.query<{ lowest: number }>({
      text: `select min(height) as lowest from chain_reconciled_blocks where currency = 'BTC'`,
      values: [],
    });
    expect(rows[0]?.lowest).toBe(at - 1_999);
  });

  test('a node that is down or lies: nothing is read, the reason is reported', async () => {
    await paid(8);
    await bursar.settle(worker);
    proxy.lie = (call, honest) => (call.method === 'getblock' ? `ff${(honest as string).slice(2)}` : honest);
    expect(await reconcile(bursar.ctx, 'BTC')).toMatchObject({ blocksRead: 0, trouble: expect.stringMatching(/hashes to/) });
    node.setTrouble({ down: true, fault: null, left: null });
    expect((await reconcile(bursar.ctx, 'BTC')).trouble).not.toBeNull();
  });

  test('a pruned node: a full audit changes nothing and says why; a reading that cannot go on is red until it can', async () => {
    await paid(8);
    await bursar.settle(worker);
    await readOn();
    const before = await readReconciled(bursar.ctx.db, 'BTC');
    const lost = new Set(node.state.active.slice(0, (before?.fromHeight ?? 0) + 3).map((block) => block.hash));
    proxy.lie = (call, honest) =>
      call.method === 'getblock' && lost.has(call.params[0] as string)
        ? new Refused(-1, 'Block not available (pruned data)')
        : honest;
    const here = { DATABASE_URL: bursar.url, BURSAR_NETWORK: 'regtest', BURSAR_BTC_RPC_URL: proxy.url };
    const full = await runCli(['audit', '--full'], here);
    expect(full).toMatchObject({ code: 1, err: expect.stringMatching(/chain of BTC cannot be read again: .*pruned/) });
    expect(await readReconciled(bursar.ctx.db, 'BTC')).toEqual(before);
    expect(await bursar.findings()).toEqual([]);

    await paid(12);
    await bursar.settle(worker);
    lost.add(node.state.active[(before?.height ?? 0) + 1]!.hash);
    for (let i = 0; i < 2; i++) expect(await reconcile(bursar.ctx, 'BTC')).toMatchObject({ blocksRead: 0, unread: true });
    expect(await bursar.findings()).toEqual([expect.stringMatching(/^RECON-0: BTC cannot be read on from block \d+: .*pruned/)]);
    proxy.lie = null;
    await readOn();
    expect(await bursar.findings()).toEqual([]);
  });
});
