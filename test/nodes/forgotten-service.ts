// A service that pays by a real bitcoind, and copies of its database and signer from which another one begins later: what tests of forgotten payouts share.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import type { ChainPort, TransactionFacts } from '../../src/core/ports.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { recoverTransaction } from '../../src/flow/payouts/after-restore/recover-utxo.ts';
import { requestAutomaticPayouts } from '../../src/flow/payouts/automatic-payouts.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { bookCapital, newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { encoderOf } from '../../src/outside/utxo/address-encoder.ts';
import { SigningRefused } from '../../src/signer/refused.ts';
import { heightOf } from '../../src/store/chain/blocks.ts';
import { clearBreakers } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import { EVERYTHING } from '../../src/worker/chain/watch-list.ts';
import type { Job } from '../../src/worker/loop.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner } from '../support/payout-signer.ts';
import { copyDatabase, type TestDatabase } from '../support/postgres.ts';
import { openBursar } from './bursar.ts';

const usd = parseRate('50000') as Rate;
const folders: string[] = [];
const newFolder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'bursar-forgotten-'));
  folders.push(made);
  return made;
};
export let daemon: Awaited<ReturnType<typeof startBitcoind>>;
/** `skew`: by how much clocks are ahead. `feeRate`: what our node says that a transaction costs, in satoshi per 1,000 virtual bytes. */
export const world = { skew: 0, feeRate: 2_000n };
/** Of each test its own, of nobody's wallet here. */
export let destination: string;

/** Starts the node before the tests of the file, and ends it afterwards. */
export function forgottenServiceForAll(): void {
  beforeAll(async () => {
    daemon = await startBitcoind();
    await daemon.mine(110);
  }, 60_000);
  beforeEach(() => {
    world.feeRate = 2_000n;
    destination = encoderOf('BTC', 'regtest')(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), true)).address;
  });
  afterAll(async () => {
    await daemon.remove();
    for (const one of folders) rmSync(one, { recursive: true, force: true });
  });
}
export const mempool = () => daemon.rpc<string[]>('getrawmempool');
/** What blocks have brought to it, in as many outputs. */
export async function received(): Promise<readonly [btc: number, outputs: number]> {
  type Found = { total_amount: number; unspents: unknown[] };
  const { total_amount: amount, unspents } = await daemon.rpc<Found>('scantxoutset', 'start', [`addr(${destination})`]);
  return [amount, unspents.length];
}

async function open(folder: string, database?: TestDatabase) {
  const bursar = await openBursar('BTC', null, [daemon.url], database === undefined ? {} : { database });
  const clock = { now: () => Date.now() + world.skew, steady: () => performance.now() };
  const node = payingPortOf(bursar.ctx, 'BTC');
  const own: Partial<typeof node> = {
    feeRate: async () => world.feeRate,
    // as of a node without an index of transactions, which need not have one
    async rawTransaction(txid, blockHash) {
      await state.beforeRaw();
      return blockHash === null && !(await mempool()).includes(txid) ? null : node.rawTransaction(txid, blockHash);
    },
  };
  const chains = new Map([['BTC' as const, { ...node, ...own } as ChainPort]]);
  const ports = { ...bursar.ctx.ports, chains, clock, intentKey: await openIntentKey(folder) };
  const ctx = { ...bursar.ctx, ports };
  const signer = await openPayoutSigner({ db: ctx.db, url: bursar.url }, { folder, currencies: ['BTC'], tokenContract: null });
  const watcher = bursar.worker(500);
  const state = {
    isSignerAway: false,
    losesAnswers: false,
    /** It answers all but what it has signed for one batch. */
    namesNoBatch: false,
    troubles: [] as object[],
    /** Happens each time before the node is asked for a transaction. */
    beforeRaw: async (): Promise<void> => undefined,
  };
  const signing: typeof signer.signing = {
    ...signer.signing,
    async sign(request) {
      if (state.isSignerAway) throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
      const signed = await signer.signing.sign(request).catch((error) => {
        throw error instanceof SigningRefused ? Object.assign(error, { fault: 'refused' }) : error;
      });
      if (state.losesAnswers) throw Object.assign(new Error('its answer was lost'), { fault: 'unreachable' });
      return signed;
    },
    async signed(asked) {
      if (state.namesNoBatch && asked.batchId !== undefined)
        throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
      return signer.signing.signed(asked);
    },
  };
  const worker = (owner: string) =>
    oneAfterTheOther(payoutJobs(ctx, ['BTC'], { signing, owner, intents: async () => null }, (made) => made(tellingTo([]))));
  return {
    ctx,
    url: bursar.url,
    state,
    merchantId: bursar.merchantId,
    /** A worker that lives on, for {@link work}. */
    worker,
    /** Blocks are read to the end. */
    reads: () => bursar.settle(watcher),
    /** Two workers look at the same time, each minute; without `jobs` they are new each time. */
    async work(minutes = 1, jobs?: readonly Job[]): Promise<void> {
      for (let n = 0; n < minutes; n++) {
        world.skew += 60_000;
        await saveRates(ctx.db, ports.seals, [{ currency: 'BTC', usd, used: [], leftOut: [] }], clock.now());
        await saveFeeRate(ctx.db, 'BTC', world.feeRate, clock.now());
        await bursar.settle(watcher);
        await Promise.all((jobs ?? ['one', 'two'].map(worker)).map((job) => job.run()));
      }
    },
    async automatic(): Promise<string> {
      await saveFeeRate(ctx.db, 'BTC', world.feeRate, clock.now());
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
export type Service = Awaited<ReturnType<typeof open>>;

export async function capital(service: Service, ...amounts: string[]): Promise<void> {
  await paid(service, amounts);
  await service.work(2);
}
/** The same while no worker runs. */
export async function capitalWithoutWorker(service: Service, ...amounts: string[]): Promise<void> {
  await paid(service, amounts);
  await service.work(1, []);
  await bookCapital(service.ctx, 'BTC');
}
async function paid({ ctx }: Service, amounts: readonly string[]): Promise<void> {
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  for (const amount of amounts) await daemon.pay(own?.address as string, amount);
  await daemon.mine(7);
}
export async function lend({ ctx, merchantId }: Service, amount: bigint): Promise<void> {
  const postings = [
    { account: 'equity:operator:BTC', amount },
    { account: `merchant:${merchantId}:available:BTC`, amount: -amount },
  ];
  const atMs = ctx.ports.clock.now();
  await postEntries(ctx.db, [
    { entry: { key: `test:lent:${atMs}`, kind: 'test_funds', postings, parts: [] }, transactionId: null, atMs },
  ]);
}
/** A payout in bitcoin of the service's merchant. */
export const request = ({ ctx, merchantId }: Service, amount: string, to: string) =>
  requestPayout(ctx, { merchantId, amount, destination: to });

/**
 * A service whose copies of now, of database and signer, another one begins with later.
 * @param isRestoredTwice the database is put back to the same copy a second time
 */
export async function copied(prepare: (first: Service) => Promise<void>, isRestoredTwice = false) {
  const folder = newFolder();
  const first = await open(folder);
  await first.work();
  await prepare(first);
  const dump = await copyDatabase(first.url);
  const again = isRestoredTwice ? await copyDatabase(first.url) : undefined;
  const then = newFolder();
  cpSync(folder, then, { recursive: true });
  return {
    first,
    reopened: () => open(then, dump),
    /** The signer has forgotten nothing. */ reopenedWithSigner: () => open(folder, dump),
    /** … since it was put back with the first copy. */ reopenedAgain: () => open(then, again),
  };
}

/** A service that has sent one transaction ends, and the node has it no more: no node has it when outputs are compared. @returns its bytes */
export async function endsUnseen(first: Pick<Service, 'end'>): Promise<string> {
  const raw = await daemon.rpc<string>('getrawtransaction', (await mempool())[0]);
  await first.end();
  await daemon.stop();
  await daemon.start({ extra: ['-persistmempool=0'] });
  return raw;
}
