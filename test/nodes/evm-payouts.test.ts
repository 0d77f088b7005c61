// Payouts in USDT on a real EVM: the signed bytes are taken, a transaction that fees have left behind is replaced at its nonce, one that pools
// have dropped is sent again, and one that fails gives the money back only when its block is final.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import type { Context } from '../../src/flow/context.ts';
import { hotAddress } from '../../src/flow/evm/batches.ts';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import type { Job } from '../../src/worker/loop.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { fund } from '../support/funded.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner, type PayoutSigner } from '../support/payout-signer.ts';
import { portsFor } from '../support/ports.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

const PAYEE = '0x00000000000000000000000000000000000a11ce';
const FIFTY = 50_000_000n;
const GWEI = 10n ** 9n;

let anvil: Anvil;
let chain: WatchedChain;
let ctx: Context;
let merchantId: bigint;
let job: Job;
/** A worker that starts. */
let newJob: () => Job;
let hot: string;
let signer: PayoutSigner;
const told: string[] = [];
const folder = mkdtempSync(join(tmpdir(), 'bursar-evm-payouts-'));

beforeAll(async () => {
  anvil = await startAnvil();
  chain = await watchChain('USDT', anvil.url, { contract: anvil.token });
  const { clock, chains } = chain.ctx.ports;
  const intentKey = await openIntentKey(folder);
  ctx = {
    db: chain.db,
    ports: { ...portsFor('regtest', clock), clock, chains, intentKey },
    network: 'regtest',
    currencies: ['USDT'],
    tokenContract: anvil.token,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    contestedLimitMinor: 100_000n,
  } as unknown as Context;
  signer = await openPayoutSigner(chain, { folder, currencies: ['USDT'], tokenContract: anvil.token });
  newJob = () =>
    oneAfterTheOther(
      payoutJobs(
        ctx,
        ['USDT'],
        {
          signing: signer.signing,
          owner: 'test',
          intents: async () => null,
        },
        (made) => made(tellingTo(told)),
      ),
    );
  job = newJob();
  const { affiliateId } = await addMerchant(ctx, {
    username: 'shop',
    password: 'shop-shop-shop',
    email: 'shop@example.com',
    businessName: 'Shop',
  });
  const { rows } = await chain.db.query<{ id: bigint }>({
    text: 'select id from merchants where affiliate_id = $1',
    values: [affiliateId],
  });
  merchantId = (rows[0] as { id: bigint }).id;
  await fund(ctx, merchantId, 10_000_000_000n, 'USDT');
  await chain.catchUp();
  await job.run();
  hot = (await hotAddress(ctx, chain.db, 'USDT'))?.address as string;
  await anvil.send({ to: hot, value: 10n ** 19n });
  await anvil.send(
    { to: anvil.token, input: callData(QUIRKY_TOKEN, 'transfer(address,uint256)', hot, 1_000_000_000n) },
    { units: 10n ** 15n },
  );
  await mine(70);
}, 120_000);
afterAll(async () => {
  await signer?.close();
  await chain?.close();
  await anvil?.remove();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  told.length = 0;
  for (const [currency, usd] of [
    ['ETH', '3000'],
    ['USDT', '1'],
  ] as const)
    await saveRates(
      chain.db,
      ctx.ports.seals,
      [{ currency, usd: parseRate(usd) as Rate, used: [], leftOut: [] }],
      ctx.ports.clock.now(),
    );
});

async function mine(blocks = 1): Promise<void> {
  await anvil.mine(blocks);
  await chain.catchUp();
}
/** The worker's job, later than any lease or retry. */
async function work(laterMs = 0): Promise<void> {
  chain.skew += laterMs;
  await job.run();
}
const request = async (): Promise<string> => (await requestTokenPayout(ctx, { merchantId, amount: '50', destination: PAYEE })).id;
const row = async (id: string) => {
  const found = await readPayout(chain.db, id);
  return { status: found?.status, error: found?.error, fee: found?.fee, txid: found?.txid };
};
const held = async (): Promise<bigint> => {
  const { rows } = await chain.db.query<{ amount: string }>({
    text: `select coalesce(sum(amount), 0) as amount from ledger.account_balance where code = $1`,
    values: [`merchant:${merchantId}:held:USDT`],
  });
  return BigInt(rows[0]?.amount ?? 0);
};
const arrived = async (): Promise<bigint> =>
  BigInt(
    await anvil.rpc<string>('eth_call', { to: anvil.token, data: callData(QUIRKY_TOKEN, 'balanceOf(address)', PAYEE) }, 'latest'),
  );
const attempts = async (id: string) =>
  (
    await chain.db.query<{ txid: string; max_fee: string }>({
      text: `select a.txid, a.max_fee from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1 order by a.number`,
      values: [id],
    })
  ).rows;

test('a payout is mined once, completed by the twelfth block, and charged what its gas cost', async () => {
  const before = await arrived();
  const id = await request();
  await work();
  expect(told).toEqual([]);
  await mine();
  expect((await arrived()) - before).toBe(FIFTY);
  await mine(10);
  await work(30_000);
  expect(await row(id)).toMatchObject({ status: 'processing' });
  await mine();
  await work(30_000);
  const done = await row(id);
  expect(done).toMatchObject({ status: 'completed' });
  const { gasUsed, effectiveGasPrice } = await anvil.rpc<{ gasUsed: string; effectiveGasPrice: string }>(
    'eth_getTransactionReceipt',
    done.txid,
  );
  // 3,000 USD an ether, one a USDT: a millionth of it is this much wei
  const perUnit = 10n ** 12n / 3_000n;
  const exact = (BigInt(gasUsed) * BigInt(effectiveGasPrice)) / perUnit;
  expect(Number(done.fee)).toBeGreaterThanOrEqual(Number(exact) - 1);
  expect(Number(done.fee)).toBeLessThanOrEqual(Number(exact) + 2);
  expect(await held()).toBe(0n);
});

test('house_pays_lane, timeout_is_unknown: one that fees have left behind is replaced at its nonce, one that pools have dropped is sent again, and one of them is paid', async () => {
  const before = await arrived();
  const id = await request();
  await work();
  await anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${(500n * GWEI).toString(16)}`);
  await mine();
  await work(61_000);
  const [first, second] = await attempts(id);
  expect(BigInt(second?.max_fee ?? 0) * 8n).toBeGreaterThanOrEqual(BigInt(first?.max_fee ?? 0) * 9n);
  await anvil.rpc('anvil_dropAllTransactions');
  await mine();
  expect(await arrived()).toBe(before);
  await work(61_000);
  await mine(12);
  await work(30_000);
  expect((await arrived()) - before).toBe(FIFTY);
  const done = await row(id);
  expect(done).toMatchObject({ status: 'completed' });
  // what the replacement costs more is the service's: the first offered 3 gwei for 100,000 of gas, a dollar
  expect(Number(done.fee)).toBeLessThan(2_000_000);
  await anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${GWEI.toString(16)}`);
  await mine();
});

test('fail_at_final: one that fails is given back when its block is final, and not before', async () => {
  const before = await arrived();
  const id = await request();
  await work();
  // the owner pauses the token in the same block, before it
  await anvil.whilePaused(async () => {
    await work(61_000);
    await mine(12);
    await work(30_000);
    expect(await row(id)).toMatchObject({ status: 'processing' });
  });
  await mine(60);
  await work(30_000);
  expect(await row(id)).toMatchObject({ status: 'failed', error: 'reverted' });
  expect(await arrived()).toBe(before);
  expect(await held()).toBe(0n);
});

test('a paused token holds payouts up, and fails none', async () => {
  const before = await arrived();
  let id = '';
  await anvil.whilePaused(async () => {
    await chain.catchUp();
    id = await request();
    await work();
    expect(told.join()).toMatch(/paused/);
  });
  await chain.catchUp();
  await work(30_000);
  await mine(12);
  await work(30_000);
  expect(await row(id)).toMatchObject({ status: 'completed' });
  expect((await arrived()) - before).toBe(FIFTY);
});

test('one that would use more gas than the signer allows waits for the operator, and no nonce and no gas is spent on it', async () => {
  const code = await anvil.rpc<string>('eth_getCode', anvil.token, 'latest');
  const nonce = await anvil.rpc<string>('eth_getTransactionCount', hot, 'latest');
  // balanceOf is a billion, transfer fills twenty places, everything else is no
  const fills = Array.from({ length: 20 }, (_, n) => `600160${(n + 100).toString(16)}55`).join('');
  const says = (word: string): string => `${word}60005260206000f3`;
  const greedy = `0x60003560e01c806370a08231146024578063a9059cbb14603257${says('6000')}5b${says('633b9aca00')}5b${fills}${says('6001')}`;
  await anvil.rpc('anvil_setCode', anvil.token, greedy);
  const id = await request();
  await work(30_000);
  expect(await row(id)).toMatchObject({ status: 'pending', txid: null });
  expect(await attempts(id)).toEqual([]);
  await anvil.rpc('anvil_setCode', anvil.token, code);
  await mine(12);
  expect(await anvil.rpc('eth_getTransactionCount', hot, 'latest')).toBe(nonce);
  await cancelPayout(ctx, { merchantId, payoutId: id });
  expect(await held()).toBe(0n);
});

test('a transaction at our nonce that nobody here signed stops payouts', async () => {
  await anvil.rpc('anvil_impersonateAccount', hot);
  await anvil.rpc('eth_sendTransaction', { from: hot, to: PAYEE, value: '0x1', gas: '0x5208' });
  await mine();
  const id = await request();
  job = newJob();
  await work(30_000);
  expect(told.join()).toMatch(/INV-15/);
  const { rows } = await chain.db.query({ text: `select 1 from breakers where name = 'payouts' and cleared_at is null` });
  expect(rows).toHaveLength(1);
  expect(await attempts(id)).toEqual([]);
});
