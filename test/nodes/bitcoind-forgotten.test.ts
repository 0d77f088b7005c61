// Payouts and reimbursements that database and signer have both forgotten, on a real bitcoind with two workers: what left is not sent again before a person
// has said whether it was the same, whatever fees and blocks do meanwhile.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { ChainPort, TransactionFacts } from '../../src/core/ports.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { recoverTransaction } from '../../src/flow/payouts/after-restore/recover-utxo.ts';
import { requestAutomaticPayouts } from '../../src/flow/payouts/automatic-payouts.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { setPayoutSettings } from '../../src/flow/payouts/settings.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { encoderOf } from '../../src/outside/utxo/address-encoder.ts';
import { heightOf } from '../../src/store/chain/blocks.ts';
import { clearBreakers } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import { EVERYTHING } from '../../src/worker/chain/watch-list.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner } from '../support/payout-signer.ts';
import { copyDatabase, type TestDatabase } from '../support/postgres.ts';
import { openBursar } from './bursar.ts';

vi.setConfig({ testTimeout: 240_000 });
const DAY_MS = 86_400_000;
const usd = parseRate('50000') as Rate;
const folders: string[] = [];
const newFolder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'bursar-forgotten-'));
  folders.push(made);
  return made;
};
let daemon: Awaited<ReturnType<typeof startBitcoind>>;
let skew = 0;
/** What our node says that a transaction costs: satoshi per 1,000 virtual bytes. */
let feeRate: bigint;
/** Of each test its own, of nobody's wallet here. */
let destination: string;
beforeAll(async () => {
  daemon = await startBitcoind();
  await daemon.mine(110);
}, 60_000);
beforeEach(() => {
  feeRate = 2_000n;
  destination = encoderOf('BTC', 'regtest')(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), true)).address;
});
afterAll(async () => {
  await daemon.remove();
  for (const one of folders) rmSync(one, { recursive: true, force: true });
});
const mempool = () => daemon.rpc<string[]>('getrawmempool');
/** What blocks have brought to it, in as many outputs. */
async function received(): Promise<readonly [btc: number, outputs: number]> {
  type Found = { total_amount: number; unspents: unknown[] };
  const { total_amount: amount, unspents } = await daemon.rpc<Found>('scantxoutset', 'start', [`addr(${destination})`]);
  return [amount, unspents.length];
}

async function open(folder: string, database?: TestDatabase) {
  const bursar = await openBursar('BTC', null, [daemon.url], database === undefined ? {} : { database });
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() };
  const node = payingPortOf(bursar.ctx, 'BTC');
  const priced = { get: (of: object, name: string) => (name === 'feeRate' ? async () => feeRate : Reflect.get(of, name)) };
  const chains = new Map([['BTC' as const, new Proxy(node, priced) as ChainPort]]);
  const ports = { ...bursar.ctx.ports, chains, clock, intentKey: await openIntentKey(folder) };
  const ctx = { ...bursar.ctx, ports };
  const signer = await openPayoutSigner({ db: ctx.db, url: bursar.url }, { folder, currencies: ['BTC'], tokenContract: null });
  const watcher = bursar.worker(500);
  const state = { isSignerAway: false, troubles: [] as object[] };
  const signing: typeof signer.signing = {
    ...signer.signing,
    async sign(request) {
      if (state.isSignerAway) throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
      return signer.signing.sign(request);
    },
  };
  const worker = (owner: string) =>
    oneAfterTheOther(payoutJobs(ctx, ['BTC'], { signing, owner, intents: async () => null }, (made) => made(tellingTo([]))));
  return {
    ctx,
    url: bursar.url,
    state,
    merchantId: bursar.merchantId,
    /** Two workers look at the same time, each minute. */
    async work(minutes = 1): Promise<void> {
      for (let n = 0; n < minutes; n++) {
        skew += 60_000;
        await saveRates(ctx.db, ports.seals, [{ currency: 'BTC', usd, used: [], leftOut: [] }], clock.now());
        await saveFeeRate(ctx.db, 'BTC', feeRate, clock.now());
        await bursar.settle(watcher);
        await Promise.all(['one', 'two'].map((owner) => worker(owner).run()));
      }
    },
    async automatic(): Promise<string> {
      await saveFeeRate(ctx.db, 'BTC', feeRate, clock.now());
      const which = { overLightning: false, silent: new Map() };
      await requestAutomaticPayouts(ctx, which, (merchant, error) => state.troubles.push({ merchant, error }));
      expect(state.troubles).toEqual([]);
      return (await this.payouts()).at(-1)?.id as string;
    },
    async payouts() {
      type Row = { id: string; amount: string; status: string; step: string; held_reason: string | null };
      const text = 'select id, amount, status, step, held_reason from payouts order by created_at, id';
      return (await ctx.db.query<Row>({ text })).rows;
    },
    /** "bursar payout recover --accept-loss" of what was found. */
    async recovers() {
      const found = await openMovements(ctx.db);
      expect(found).toHaveLength(1);
      const { txid, blockHash: hash } = found[0] as { txid: string; blockHash: string };
      const block = { height: (await heightOf(ctx.db, 'BTC', hash)) as number, hash };
      const raw = (await node.rawTransaction(txid, hash)) as Uint8Array;
      const facts = node.readRaw(raw, EVERYTHING) as TransactionFacts;
      return recoverTransaction(ctx, { currency: 'BTC', block, facts, raw, by: 'ann', acceptsLoss: true });
    },
    clear: () => clearBreakers(ctx.db, 'ann', clock.now()),
    /** No payment has brought what was lent. */
    findings: async () => (await bursar.findings()).filter((what) => !what.startsWith('BOOK-3')),
    async end(): Promise<void> {
      await signer.close();
      await bursar.close();
    },
  };
}
type Service = Awaited<ReturnType<typeof open>>;

async function capital({ ctx, work }: Service, ...amounts: string[]): Promise<void> {
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  for (const amount of amounts) await daemon.pay(own?.address as string, amount);
  await daemon.mine(7);
  await work(2);
}
async function lend({ ctx, merchantId }: Service, amount: bigint): Promise<void> {
  const postings = [
    { account: 'equity:operator:BTC', amount },
    { account: `merchant:${merchantId}:available:BTC`, amount: -amount },
  ];
  const atMs = ctx.ports.clock.now();
  await postEntries(ctx.db, [
    { entry: { key: `test:lent:${atMs}`, kind: 'test_funds', postings, parts: [] }, transactionId: null, atMs },
  ]);
}
/** A service whose copies of now, of database and signer, another one begins with later. */
async function copied(prepare: (first: Service) => Promise<void>) {
  const folder = newFolder();
  const first = await open(folder);
  await first.work();
  await prepare(first);
  const dump = await copyDatabase(first.url);
  const then = newFolder();
  cpSync(folder, then, { recursive: true });
  return { first, reopened: () => open(then, dump) };
}
/** It pays out all of 0.3 bitcoin by itself. */
const automatic = () =>
  copied(async (first) => {
    await capital(first, '0.5', '0.5');
    await lend(first, 30_000_000n);
    const none = { enabled: null, leave: null, sourceCurrency: null, paused: null } as const;
    const change = { ...none, method: 'bitcoin', destination, threshold: '0.1' } as const;
    await setPayoutSettings(first.ctx, { merchantId: first.merchantId, change });
    skew += DAY_MS + 1;
    await first.work();
  });
const WAITS = { status: 'processing', step: 'held', held_reason: 'unknown_outcome' };

test('an automatic payout asks again after a spike of fees, and a reorganisation takes the forgotten one out of its block', async () => {
  const { first, reopened } = await automatic();
  await first.automatic();
  await first.work();
  const [sent] = await mempool();
  await daemon.mine(1);
  await first.end();
  feeRate = 40_000n;
  const second = await reopened();
  const id = await second.automatic();
  await second.work();
  expect(await second.recovers()).toMatchObject({ payoutIds: [], lost: 29_996_000n, alike: [id] });
  await daemon.rpc('invalidateblock', await daemon.rpc('getbestblockhash'));
  for (let n = 0; n < 2; n++) await daemon.rpc('generateblock', await daemon.address(), []);
  await second.work(2);
  expect(await mempool()).toEqual([sent]);
  await daemon.mine(7);
  await second.work(2);
  expect(await second.findings()).toEqual([]);
  await second.clear();
  await second.work(3);
  expect(await second.payouts()).toMatchObject([WAITS]);
  await resolvePayout(second.ctx, { payoutId: id, outcome: 'paid', evidence: 'an explorer' });
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.29996, 1], [], []]);
  // a little is left of what was lost
  await lend(second, 20_000_000n);
  await second.automatic();
  await second.work(2);
  expect([(await second.payouts())[1], await mempool()]).toMatchObject([WAITS, []]);
  await second.end();
});

test('one whose batch waits for the signer is not paid when a forgotten one comes to light', async () => {
  const { first, reopened } = await automatic();
  await first.automatic();
  await first.work();
  const raw = await daemon.rpc<string>('getrawtransaction', (await mempool())[0]);
  await first.end();
  // no node has it when outputs are compared
  await daemon.stop();
  await daemon.start({ extra: ['-persistmempool=0'] });
  const second = await reopened();
  await capital(second, '2.0');
  feeRate = 40_000n;
  second.state.isSignerAway = true;
  const id = await second.automatic();
  await second.work();
  expect(await second.payouts()).toMatchObject([{ id, step: 'batched' }]);
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await second.work();
  expect(await second.recovers()).toMatchObject({ payoutIds: [], lost: 29_996_000n, alike: [] });
  await daemon.mine(6);
  await second.clear();
  second.state.isSignerAway = false;
  await second.work(3);
  expect(await second.payouts()).toMatchObject([{ id, ...WAITS }]);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.29996, 1], [], []]);
  await second.end();
});

test.each([
  ['a spike of fees', 200_000n, 1_000n],
  ['low fees', 1_000n, 200_000n],
])('a reimbursement that left in %s is asked for again, and goes back once', async (_, then, now) => {
  let transactionId = '';
  const { first, reopened } = await copied(async (service) => {
    const { ctx, merchantId } = service;
    const owed = await createTransaction(ctx, { merchantId, usdMinor: 20_000_00n, method: 'BTC', label: null, email: null });
    ({ transactionId } = owed);
    await daemon.pay(owed.address, '0.4');
    await capital(service, '0.5');
  });
  const asked = { transactionId, destination, part: null, currency: null };
  feeRate = then;
  await first.work();
  await reimburseTransaction(first.ctx, { ...asked, merchantId: first.merchantId });
  await first.work(2);
  expect(await mempool()).toHaveLength(1);
  await daemon.mine(1);
  await first.end();
  feeRate = now;
  const second = await reopened();
  await saveFeeRate(second.ctx.db, 'BTC', feeRate, second.ctx.ports.clock.now());
  await reimburseTransaction(second.ctx, { ...asked, merchantId: second.merchantId });
  await second.work();
  const { payoutIds, alike } = await second.recovers();
  await daemon.mine(6);
  await second.work();
  await second.clear();
  await second.work(3);
  for (const payoutId of alike ?? []) await resolvePayout(second.ctx, { payoutId, outcome: 'paid', evidence: 'an explorer' });
  await second.work(2);
  expect([...payoutIds, ...(alike ?? [])]).toHaveLength(1);
  expect(await readRefund(second.ctx, transactionId)).toMatchObject({ status: 'completed' });
  expect([(await received())[1], await mempool(), await second.findings()]).toEqual([1, [], []]);
  await second.end();
});

test('a replacement in a spike of fees, which both have forgotten, is booked as the payout that it pays', async () => {
  const { first, reopened } = await copied(async (service) => {
    await capital(service, '0.5', '0.5');
    await lend(service, 30_000_000n);
    await requestPayout(service.ctx, { merchantId: service.merchantId, amount: '0.1', destination });
    await service.work();
  });
  const [before] = await mempool();
  feeRate = 20_000n;
  await first.work(45);
  const [replaced] = await mempool();
  expect(replaced).not.toBe(before);
  await daemon.mine(1);
  await first.end();
  const second = await reopened();
  await second.work(45);
  expect(await second.recovers()).toMatchObject({ lost: 0n, alike: [] });
  await daemon.mine(6);
  await second.work();
  await second.clear();
  await second.work(3);
  expect(await second.payouts()).toMatchObject([{ status: 'completed' }]);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.1, 1], [], []]);
  await second.end();
});
