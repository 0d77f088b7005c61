// Puts a payout on Ethereum's chain into a batch of its own: the next nonce of our address there, its gas and what it offers, fixed in one
// database transaction before anything is signed. A nonce is never given back: later ones could not be mined without it.
import { evmAddressOf, evmInput } from '../../core/currencies/evm.ts';
import { ETHER, type EvmCode, isToken } from '../../core/currency.ts';
import { transferCall } from '../../core/evm/transaction.ts';
import { sortableId } from '../../core/ids.ts';
import { atLeastZero, least, minus, plus, sum } from '../../core/money.ts';
import { leavingOnEvm } from '../../core/payouts/evm-postings.ts';
import { exactOffer, type GasFees, type GasOffer, gasWorth, payoutOffer } from '../../core/payouts/gas.ts';
import { type SpendingKey, signerKeys, spendingKey } from '../../store/chain/xpubs.ts';
import { openBreakers } from '../../store/ledger/breakers.ts';
import { mustAskSigner } from '../../store/payouts/after-restore/emptied-batches.ts';
import { insertBatch, lockOutputs, lockQueued, type QueuedPayout } from '../../store/payouts/batches.ts';
import { nextNonce, openOutflow } from '../../store/payouts/evm-lane.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { holdAlike, whereLost } from '../payouts/after-restore/lost-outputs.ts';
import { holdForOperator } from '../payouts/waiting-for-operator.ts';

/** Our address from which a currency leaves: the first of chain 1 of its account. */
export type HotAddress = {
  readonly currency: EvmCode;
  readonly key: SpendingKey<EvmCode>;
  readonly script: Buffer;
  /** 0x and 40 digits, lower case. */
  readonly address: string;
};
export const HOT_INDEX = 0;

/** Null while the signer has confirmed no key of the currency. */
export async function hotAddress(ctx: Context, sql: Sql, currency: EvmCode): Promise<HotAddress | null> {
  const key = await spendingKey(sql, currency);
  return key === null ? null : ofKey(ctx, currency, key);
}

/** Those of every key that a signer ever had for it: what has left or reached one is ours whichever key is in use now, and whether it is confirmed. */
export async function everyHotAddress(ctx: Context, sql: Sql, currency: EvmCode): Promise<readonly HotAddress[]> {
  return (await signerKeys(sql, currency)).map((key) => ofKey(ctx, currency, key));
}

function ofKey(ctx: Context, currency: EvmCode, key: SpendingKey<EvmCode>): HotAddress {
  const { script } = ctx.ports.addresses.ownOf(currency, key.xpub).derive(HOT_INDEX);
  return { currency, key, script: Buffer.from(script), address: evmAddressOf(Buffer.from(script).toString('hex')) };
}

/** What the chain showed of our address after a block. */
export type Funds = {
  readonly height: number;
  /** The first of an address from which nothing has left by what is known here; or why that is not known. */
  readonly nonce: number | { readonly unknown: string };
  readonly ether: bigint;
  readonly units: bigint;
};

export type EvmFormed =
  | { readonly outcome: 'formed'; readonly batchId: string }
  /** Nothing waits, or payouts are stopped, or enough is on its way. */
  | { readonly outcome: 'nothing' }
  /** `lacksEther`: how much too little our address has for the gas of a token's. `isBehind`: another of its merchant's must end first. */
  | { readonly outcome: 'waits'; readonly why: string; readonly lacksEther?: bigint; readonly isBehind?: true };

/** The most transactions of one sender that a node's pool keeps for sure (geth's `accountslots`). */
const MOST_OPEN = 16;
/** Payouts that are looked at: one that cannot be paid now does not hide the ones behind it. The caller leaves out those that wait for long. */
export const MOST_QUEUED = 100;

/**
 * The payouts that may be next, oldest first, without locking them. What asking the node about one costs is the caller's business.
 * @param without those that are left out, by id
 */
export async function queuedOnEvm(ctx: Context, currency: EvmCode, without: readonly string[]): Promise<readonly QueuedPayout[]> {
  return ctx.db.transaction((sql) => lockQueued(sql, currency, MOST_QUEUED, { without }));
}

/** One of them; null when it is queued no longer. */
export async function queuedOne(ctx: Context, currency: EvmCode, payoutId: string): Promise<QueuedPayout | null> {
  const [found] = await ctx.db.transaction((sql) => lockQueued(sql, currency, 1, { only: payoutId }));
  return found ?? null;
}

/** The call that pays a payout. */
export function callOf(
  contract: string | null,
  script: string,
  amount: bigint,
): { readonly to: string; readonly value: bigint; readonly input: string } {
  const payee = evmAddressOf(script);
  if (contract === null) return { to: payee, value: amount, input: '0x' };
  return { to: contract, value: 0n, input: transferCall(payee, amount) };
}

/**
 * Reserves a nonce for one payout. From here on it is committed: a receivable that comes later no longer stops it.
 * @param gas the most that its call may use
 */
export async function formEvmBatch(
  ctx: Context,
  hot: HotAddress,
  payoutId: string,
  { funds, fees, gas }: { readonly funds: Funds; readonly fees: GasFees; readonly gas: number },
): Promise<EvmFormed> {
  const { currency } = hot;
  const nowMs = ctx.ports.clock.now();
  return ctx.db.transaction(async (sql): Promise<EvmFormed> => {
    if ((await openBreakers(sql)).length > 0) return { outcome: 'nothing' };
    await lockOutputs(sql, currency);
    if (await mustAskSigner(sql, currency)) return { outcome: 'nothing' };
    const [payout] = await lockQueued(sql, currency, 1, { only: payoutId });
    if (payout === undefined) return { outcome: 'nothing' };
    if ((await holdAlike(ctx, sql, currency, [payout])).length > 0) return { outcome: 'waits', why: whereLost(payoutId) };
    const open = await openOutflow(sql, { currency, sender: evmInput(hot.address, 0).txid }, funds.height);
    if (open.count >= MOST_OPEN || open.hasUnsigned) return { outcome: 'nothing' };
    const offer = offerFor(payout, fees);
    const fee = await feeFor(ctx, sql, currency, payout, BigInt(gas) * offer.maxFee);
    if (fee === null) return { outcome: 'waits', why: 'there is no price of what its gas is worth' };
    if (payout.reimburses !== null && fee > payout.feeMax) {
      await holdForOperator(ctx, sql, { payoutId, why: TOO_DEAR });
      return { outcome: 'nothing' };
    }
    const short = shortOf(hot, { payout, fee, gasMost: BigInt(gas) * offer.maxFee }, funds, open);
    if (short !== null) return { outcome: 'waits', ...short };
    // an address of words that were used before goes on where the chain is
    const nonce = (await nextNonce(sql, currency, evmInput(hot.address, 0).txid)) ?? funds.nonce;
    if (typeof nonce !== 'number') return { outcome: 'waits', why: nonce.unknown };
    const id = sortableId('batch_', nowMs, ctx.ports.rng.bytes(10));
    await insertBatch(sql, {
      id,
      currency,
      feeRate: offer.maxFee,
      gas: { tip: offer.tip, limit: gas },
      accountId: hot.key.id,
      change: null,
      inputs: [
        {
          ...evmInput(hot.address, nonce),
          amount: leavingOnEvm({ ...payout, currency }, fee),
          script: hot.script,
          chain: 1,
          index: HOT_INDEX,
        },
      ],
      payoutIds: [payoutId],
      atMs: nowMs,
    });
    return { outcome: 'formed', batchId: id };
  });
}

const TOO_DEAR = 'its network fee would be above what it can carry: it waits for a lower one';

/** The fee of a reimbursement is taken from what the customer gets, so it must be known before. */
const offerFor = (payout: Pick<QueuedPayout, 'reimburses'>, fees: GasFees): GasOffer =>
  payout.reimburses === null ? payoutOffer(fees) : exactOffer(fees);

/** The ether that a payee gets; 0 where nothing is left beside the fee. @param gas the most that its call may use */
export function etherFor(payout: Pick<QueuedPayout, 'reimburses' | 'amount'>, gas: number, fees: GasFees): bigint {
  if (payout.reimburses === null) return payout.amount;
  return atLeastZero(minus(payout.amount, BigInt(gas) * offerFor(payout, fees).maxFee));
}

/** What a payout is charged at most for gas that costs this many wei; null where there is no price. */
export async function feeFor(
  ctx: Context,
  sql: Sql,
  currency: EvmCode,
  payout: QueuedPayout,
  wei: bigint,
): Promise<bigint | null> {
  const rates = await latestRates(sql, ctx.ports.seals, [ETHER, currency], ctx.ports.clock.now());
  const worth = gasWorth(currency, wei, rates);
  if (worth === null) return null;
  // what a payout's gas has become dearer since it was requested is the service's
  return payout.reimburses === null ? least(worth, payout.feeMax) : worth;
}

type Wanted = { readonly payout: QueuedPayout; readonly fee: bigint; readonly gasMost: bigint };

/** What our address lacks, counting what is on its way out of it; null = nothing. */
function shortOf(
  { currency, address }: HotAddress,
  { payout, fee, gasMost }: Wanted,
  funds: Funds,
  open: { readonly units: bigint; readonly gas: bigint },
): { readonly why: string; readonly lacksEther?: bigint } | null {
  const out = leavingOnEvm({ ...payout, currency }, fee);
  const isOfToken = isToken(currency);
  if (isOfToken && minus(funds.units, open.units) < out) return { why: `our address ${address} has too few ${currency}` };
  const ether = isOfToken ? plus(open.gas, gasMost) : sum([open.gas, open.units, out, gasMost]);
  if (funds.ether >= ether) return null;
  return { why: `our address ${address} has too little ether`, ...(isOfToken ? { lacksEther: minus(ether, funds.ether) } : {}) };
}
