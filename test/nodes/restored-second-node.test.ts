// Database and signer were put back together, to before a transaction that the node which is read does not have: it is in the mempool of another
// one, or in a block that only that has. The payout that it pays is not signed again.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { recoverTransaction } from '../../src/flow/payouts/after-restore/recover-utxo.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { createNodeGroup } from '../../src/outside/utxo/node/group.ts';
import { clearBreakers, openBreakers } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { waitingForOperator } from '../../src/store/payouts/waiting-for-operator.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import { EVERYTHING } from '../../src/worker/chain/watch-list.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { tellFee } from '../support/funded.ts';
import { openNodeRelay } from '../support/nodes/node-relay.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner, type PayoutSigner } from '../support/payout-signer.ts';
import { portsFor } from '../support/ports.ts';
import { copyDatabase } from '../support/postgres.ts';
import { copyBlocks, node, startTwoBitcoinds } from './two-bitcoinds.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

vi.setConfig({ testTimeout: 120_000 });
const FINAL = 6;
/** A port at which nothing listens. */
const NOBODY = 'http://user:x@127.0.0.1:9';
let read: CoreDaemon;
let other: CoreDaemon;
let chain: WatchedChain;
let ctx: Context;
let merchantId: bigint;
let signer: PayoutSigner;
let folder: string;
let told: string[] = [];
const folders: string[] = [];
const newFolder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'bursar-second-node-'));
  folders.push(made);
  return made;
};

beforeAll(async () => {
  [read, other] = await startTwoBitcoinds();
  folder = newFolder();
  await open(await watchChain('BTC', read.url));
  const shop = { username: 'shop', password: 'shop-shop-shop', email: 'shop@example.com', businessName: 'Shop' };
  const { affiliateId } = await addMerchant(ctx, shop);
  const text = 'select id from merchants where affiliate_id = $1';
  const { rows } = await chain.db.query<{ id: bigint }>({ text, values: [affiliateId] });
  merchantId = (rows[0] as { id: bigint }).id;
  await brings('1');
  const postings = [
    { account: 'equity:operator:BTC', amount: 50_000_000n },
    { account: `merchant:${merchantId}:available:BTC`, amount: -50_000_000n },
  ];
  const entry = { key: 'test:lent', kind: 'test_funds', postings, parts: [] };
  await postEntries(chain.db, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}, 120_000);
afterAll(async () => {
  await signer?.close();
  await chain?.close();
  await read?.remove();
  await other?.remove();
  for (const one of folders) rmSync(one, { recursive: true, force: true });
});

/** The service on a database, with the signer's folder of the same moment. */
async function open(on: WatchedChain): Promise<void> {
  chain = on;
  const { clock, chains } = chain.ctx.ports;
  ctx = {
    db: chain.db,
    ports: { ...portsFor('regtest', clock), clock, chains, intentKey: await openIntentKey(folder) },
    network: 'regtest',
    currencies: ['BTC'],
    tokenContract: null,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    contestedLimitMinor: 100_000n,
  } as unknown as Context;
  signer = await openPayoutSigner(chain, { folder, currencies: ['BTC'], tokenContract: null });
  await useNodes(read, other);
}

/** From now on these are configured, the first of which is read. */
async function useNodes(...daemons: readonly Pick<CoreDaemon, 'url'>[]): Promise<void> {
  const { clock, chains } = chain.ctx.ports;
  const nodes = daemons.map((daemon) => node(daemon as CoreDaemon));
  (chains as Map<string, unknown>).set('BTC', createNodeGroup(nodes, { clock }));
  await chain.restart();
}

/** Another worker, later than any lease or retry. */
async function work(): Promise<void> {
  chain.skew += 60_000;
  const rate = { currency: 'BTC', usd: parseRate('50000') as Rate, used: [], leftOut: [] } as const;
  await saveRates(chain.db, ctx.ports.seals, [rate], ctx.ports.clock.now());
  await chain.catchUp();
  const signing = signer.signing;
  const options = { signing, owner: 'test', intents: async () => null };
  told = [];
  await oneAfterTheOther(payoutJobs(ctx, ['BTC'], options, (made) => made(tellingTo(told)))).run();
}

/** Capital of ours, final at both nodes, which is larger than what there was: the next batch spends it first. */
async function brings(amount: string, at: readonly CoreDaemon[] = [read, other]): Promise<void> {
  await chain.catchUp();
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  await read.pay(own?.address as string, amount);
  await read.mine(FINAL);
  if (at.includes(other)) await copyBlocks(read, other);
  await tellFee(ctx);
  await work();
}

/** A payout that the other node alone was sent, and which the copies of database and signer's folder that are used from now on believe queued. */
async function paidBefore(): Promise<{ readonly id: string; readonly destination: string; readonly txid: string }> {
  const destination = await other.address();
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.01', destination });
  const dump = await copyDatabase(chain.url);
  const then = newFolder();
  cpSync(folder, then, { recursive: true });
  await useNodes(other);
  await work();
  const [txid, ...more] = await other.rpc<string[]>('getrawmempool');
  expect([typeof txid, more]).toEqual(['string', []]);
  expect(await read.rpc('getrawmempool')).toEqual([]);
  const { skew } = chain;
  await signer.close();
  await chain.close();
  folder = then;
  await open(await watchChain('BTC', read.url, { database: dump }));
  chain.skew = skew;
  return { id, destination, txid: txid as string };
}

/** As "bursar payout recover" does. */
async function recovers(txid: string, acceptsLoss: boolean): Promise<void> {
  const { blockhash: hash } = await read.rpc<{ blockhash: string }>('getrawtransaction', txid, 1);
  const { height } = await read.rpc<{ height: number }>('getblockheader', hash);
  const port = payingPortOf(ctx, 'BTC');
  const raw = (await port.rawTransaction(txid, hash)) as Uint8Array;
  const facts = port.readRaw(raw, EVERYTHING) as TransactionFacts;
  await recoverTransaction(ctx, { currency: 'BTC', block: { height, hash }, facts, raw, by: 'ann', acceptsLoss });
  // what the merchant was lent no payment has brought, so an audit is not green here
  await clearBreakers(chain.db, 'ann', ctx.ports.clock.now());
}

const arrived = async (at: string): Promise<number> =>
  (await other.rpc<{ txids: string[] }[]>('listreceivedbyaddress', 0, true, true, at)).reduce(
    (all, one) => all + one.txids.length,
    0,
  );
const signed = async (): Promise<number> =>
  Number((await chain.db.query<{ n: string }>({ text: 'select count(*) as n from outgoing_attempts', values: [] })).rows[0]?.n);
const problems = async () =>
  (await waitingForOperator(chain.db, { limit: 9, nowMs: ctx.ports.clock.now() })).map(({ why }) => why);

/** A block shows it: it is found and recorded as at any time, and the payout waits for whoever books it. */
async function isFound({ id, destination, txid }: Awaited<ReturnType<typeof paidBefore>>, acceptsLoss = false): Promise<void> {
  await work();
  expect((await openMovements(chain.db)).map((one) => one.txid)).toEqual([txid]);
  expect((await readPayout(chain.db, id))?.heldReason).toBe('unknown_outcome');
  expect(await arrived(destination)).toBe(1);
  expect((await problems()).join()).not.toContain(new URL(other.url).host);
  await recovers(txid, acceptsLoss);
  await work();
  expect((await readPayout(chain.db, id))?.status).toBe('completed');
}

test('what only the mempool of another node has', async () => {
  const before = await paidBefore();
  const count = await signed();
  await brings('5');
  await work();
  expect([await signed(), await arrived(before.destination)]).toEqual([count, 1]);
  expect([await openBreakers(chain.db), await openMovements(chain.db)]).toEqual([[], []]);
  expect(told.join()).toMatch(/nothing new is paid in BTC: 127.0.0.1:\d+ has what the node that is read has not/);
  expect((await problems()).join()).toContain(`waits: ${new URL(other.url).host} has`);
  await other.mine(1);
  await copyBlocks(other, read);
  await isFound(before);
});

test('what only a block of another node has, while the one that is read is behind', async () => {
  const before = await paidBefore();
  const count = await signed();
  await other.mine(1);
  await work();
  expect([await signed(), await arrived(before.destination)]).toEqual([count, 1]);
  expect([await openBreakers(chain.db), await openMovements(chain.db)]).toEqual([[], []]);
  expect(told.join()).toMatch(/nothing new is paid in BTC: 127.0.0.1:\d+ is at block/);
  await copyBlocks(other, read);
  await isFound(before);
});

test('what is in a block of another branch that another node has', async () => {
  const before = await paidBefore();
  const count = await signed();
  await other.mine(1);
  await read.mine(2);
  await work();
  expect([await signed(), await arrived(before.destination)]).toEqual([count, 1]);
  expect(told.join()).toContain('is spent, and nothing was found that spends it');
  await other.mine(3);
  await copyBlocks(other, read);
  await isFound(before);
});

test('what a node has that was away when outputs were compared first: nothing of it is cancelled either', async () => {
  const before = await paidBefore();
  // what its merchant was paid was not final then
  const text = `update payouts set status = 'pending', step = 'held', held_reason = 'not_final' where id = $1`;
  await chain.db.query({ text, values: [before.id] });
  await useNodes(read, { url: NOBODY });
  await work();
  await useNodes(read, other);
  await work();
  const cancelled = cancelPayout(ctx, { merchantId, payoutId: before.id });
  await expect(cancelled).rejects.toMatchObject({ code: 'payout_not_cancellable', passes: true });
  await other.mine(1);
  await copyBlocks(other, read);
  await isFound(before);
});

test('what enters a block of another node while its mempool is read', async () => {
  await brings('11');
  const before = await paidBefore();
  // the copies were made before what it spends had come
  const admin = new pg.Client({ connectionString: chain.url });
  await admin.connect();
  const { rowCount } = await admin.query('delete from own_outputs where amount = 1100000000');
  await admin.end();
  const relay = await openNodeRelay(other.url, 'getrawmempool');
  relay.set('hold_call');
  await useNodes(read, { url: relay.url });
  const count = await signed();
  expect(rowCount).toBe(1);
  const working = work();
  await vi.waitUntil(() => relay.held() !== null, { timeout: 30_000 });
  await other.mine(1);
  await relay.letGo();
  await working;
  expect([await signed(), await arrived(before.destination)]).toEqual([count, 1]);
  await copyBlocks(other, read);
  await isFound(before, true);
  await useNodes(read, other);
  relay.close();
});

test('who pays the destination of a payout himself, at the other node only, holds up that payout only', async () => {
  const destination = await other.address();
  await requestPayout(ctx, { merchantId, amount: '0.01', destination: await other.address() });
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.013', destination });
  const count = await signed();
  await other.pay(destination, '0.013');
  await work();
  expect([await signed(), await arrived(destination)]).toEqual([count + 1, 1]);
  expect((await readPayout(chain.db, id))?.heldReason).toBe('unknown_outcome');
});

test('a node that is away, or behind, holds up nothing', async () => {
  const destination = await other.address();
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.01', destination });
  const count = await signed();
  await useNodes(read, { url: NOBODY });
  await work();
  expect(await signed()).toBe(count + 1);
  await read.mine(1);
  await work();
  expect((await readPayout(chain.db, id))?.status).toBe('completed');
  // the other has nothing of what the next payout spends
  await useNodes(read, other);
  await brings('7', [read]);
  await requestPayout(ctx, { merchantId, amount: '0.01', destination });
  await work();
  expect(await signed()).toBe(count + 2);
  expect((await problems()).join()).not.toContain(new URL(other.url).host);
});
