// Payouts by a real bitcoind. While the worker dies at the three worst steps (the signer has signed and nobody has stored it, it is stored and not
// sent, the node has it and nobody knows), the next worker goes on; the payee gets the amount once, and the books balance. And where a deep
// reorganisation takes what they spend, an operator gives them up.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { giveUpPayout, newestToGiveUp } from '../../src/flow/payouts/give-up.ts';
import { newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { type PayoutDetails, readPayout, readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import type { Job } from '../../src/worker/loop.ts';
import type { PayoutDriverStep } from '../../src/worker/payouts/driver-options.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { tellFee } from '../support/funded.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner, type PayoutSigner } from '../support/payout-signer.ts';
import { portsFor } from '../support/ports.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

vi.setConfig({ testTimeout: 120_000 });
let daemon: CoreDaemon;
let chain: WatchedChain;
let ctx: Context;
let merchantId: bigint;
let signer: PayoutSigner;
let newJob: () => Job;
/** Where the worker dies next. */
let diesAt: PayoutDriverStep | null = null;
class Died extends Error {}
const LENT = 100_000_000n;
const folder = mkdtempSync(join(tmpdir(), 'bursar-bitcoind-payouts-'));

beforeAll(async () => {
  daemon = await startBitcoind();
  await daemon.mine(110);
  chain = await watchChain('BTC', daemon.url);
  const { clock, chains } = chain.ctx.ports;
  const intentKey = await openIntentKey(folder);
  ctx = {
    db: chain.db,
    ports: { ...portsFor('regtest', clock), clock, chains, intentKey },
    network: 'regtest',
    currencies: ['BTC'],
    tokenContract: null,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    contestedLimitMinor: 100_000n,
  } as unknown as Context;
  signer = await openPayoutSigner(chain, { folder, currencies: ['BTC'], tokenContract: null });
  const payouts = {
    signing: signer.signing,
    owner: 'test',
    intents: async () => null,
    reached: async (step: PayoutDriverStep) => {
      if (step !== diesAt) return;
      diesAt = null;
      throw new Died();
    },
  };
  newJob = () => oneAfterTheOther(payoutJobs(ctx, ['BTC'], payouts, (made) => made(tellingTo([]))));
  await openShop();
}, 120_000);
afterAll(async () => {
  await signer?.close();
  await chain?.close();
  await daemon?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** A merchant whose balance real outputs at our own address cover. */
async function openShop(): Promise<void> {
  const shop = { username: 'shop', password: 'shop-shop-shop', email: 'shop@example.com', businessName: 'Shop' };
  const { affiliateId } = await addMerchant(ctx, shop);
  const { rows } = await chain.db.query<{ id: bigint }>({
    text: 'select id from merchants where affiliate_id = $1',
    values: [affiliateId],
  });
  merchantId = (rows[0] as { id: bigint }).id;
  await chain.catchUp();
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  for (let n = 0; n < 3; n++) await daemon.pay(own?.address as string, '0.5');
  await mine(6);
  await tellFee(ctx);
  await newJob().run();
  const postings = [
    { account: 'equity:operator:BTC', amount: LENT },
    { account: `merchant:${merchantId}:available:BTC`, amount: -LENT },
  ];
  const entry = { key: 'test:lent', kind: 'test_funds', postings, parts: [] };
  await postEntries(chain.db, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}

async function mine(blocks: number): Promise<void> {
  await daemon.mine(blocks);
  await chain.catchUp();
}
/** Another worker, later than any lease or retry. */
async function work(): Promise<void> {
  chain.skew += 60_000;
  const rate = { currency: 'BTC', usd: parseRate('50000') as Rate, used: [], leftOut: [] } as const;
  await saveRates(chain.db, ctx.ports.seals, [rate], ctx.ports.clock.now());
  await chain.catchUp();
  await newJob().run();
}
const statusOf = async (id: string) => (await readPayout(chain.db, id))?.status;
/** What the audit names, and how much more the merchant has than payments have brought: no payment has brought what was lent. */
async function audited(): Promise<{ readonly red: readonly string[]; readonly lent: number }> {
  const found = (await runAudit(ctx)).answers.flatMap(({ id, findings }) => findings.map((what) => `${id}: ${what}`));
  const lent = found.map((what) => /^BOOK-3: .* ledger (\d+), payments (-?\d+)$/.exec(what));
  return {
    red: found.filter((_, at) => lent[at] === null),
    lent: lent.reduce((all, one) => all + Number(one?.[1] ?? 0) - Number(one?.[2] ?? 0), 0),
  };
}

test.each([
  ['signed', 0],
  ['stored', 0],
  ['sent', 1],
] as const)('kill -9 once it is %s: the payee gets it once', async (step, inMempool) => {
  const destination = await daemon.address();
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.01', destination });
  diesAt = step;
  await expect(work()).rejects.toThrow(Died);
  expect(await daemon.rpc('getrawmempool')).toHaveLength(inMempool);
  await work();
  expect(await daemon.rpc('getrawmempool')).toHaveLength(1);
  expect(await statusOf(id)).toBe('processing');
  await mine(1);
  await work();
  expect(await statusOf(id)).toBe('completed');
  await mine(5);
  await work();
  const arrived = await daemon.rpc<{ txids: string[]; amount: number }[]>('listreceivedbyaddress', 1, false, true, destination);
  expect(arrived.map(({ amount, txids }) => [amount, txids.length])).toEqual([[0.01, 1]]);
  expect(await audited()).toEqual({ red: [], lent: Number(LENT) });
});

test('what its payer’s own payer has spent elsewhere, below final depth: the message names the command, and given up it fails', async () => {
  type Unspent = { txid: string; vout: number; amount: number };
  const signed = async (input: Unspent, to: string, amount: number): Promise<string> => {
    const raw = await daemon.rpc<string>('createrawtransaction', [input], { [to]: amount });
    return (await daemon.rpc<{ hex: string }>('signrawtransactionwithwallet', raw)).hex;
  };
  const [unspent] = (await daemon.rpc<Unspent[]>('listunspent', 1)).filter(({ amount }) => amount > 10);
  const elsewhere = await signed(unspent as Unspent, await daemon.address(), 10);
  const txid = await daemon.rpc<string>('sendrawtransaction', await signed(unspent as Unspent, await daemon.address(), 9), 0);
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  const capital = await signed({ txid, vout: 0, amount: 9 }, own?.address as string, 8.99);
  const made = await daemon.rpc<string>('sendrawtransaction', capital);
  await mine(6);
  await work();
  const before = await daemon.rpc<string>('getblockhash', (await daemon.rpc<number>('getblockcount')) - 5);
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.02', destination: await daemon.address() });
  await work();
  await mine(1);
  await work();
  expect(await statusOf(id)).toBe('completed');

  await daemon.rpc('invalidateblock', before);
  await daemon.rpc('generateblock', await daemon.address(), [elsewhere]);
  await mine(8);
  for (let n = 0; n < 3; n++) await work();
  expect(await statusOf(id)).toBe('completed');
  const { trouble } = (await readPayoutDetails(chain.db, id)) as PayoutDetails;
  expect(trouble).toContain(made);
  expect(trouble).toContain(`bursar payout give-up ${id}`);
  const { raw } = await newestToGiveUp(ctx, id);
  expect(await payingPortOf(ctx, 'BTC').send(raw)).toMatchObject({ state: 'inputs_missing' });
  await giveUpPayout(ctx, { payoutId: id, by: 'operator test', evidence: 'its payer has spent it elsewhere' });
  // it is looked at when it would be sent again, every ten minutes
  const later = async (): Promise<void> => {
    for (let n = 0; n < 11; n++) await work();
  };
  await mine(4);
  await later();
  expect(await statusOf(id)).toBe('completed');
  await mine(1);
  await later();
  expect(await statusOf(id)).toBe('failed');
  expect(await audited()).toEqual({ red: [], lent: Number(LENT) });
});
