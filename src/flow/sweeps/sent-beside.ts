// What an address of ours on Ethereum's chain has sent, and its batch does not say, where an operator has it booked: to another address of ours, which loses
// nothing, and what the same transaction has taken of the chain's other currencies, as ether from the address that a token leaves from.
import type { BlockRef } from '../../core/block-ref.ts';
import type { EvmCode } from '../../core/currency.ts';
import { isOfSender } from '../../core/evm/outcome.ts';
import { negated, plus, sum } from '../../core/money.ts';
import type { OutputFacts, TransactionFacts } from '../../core/ports.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept, ourScripts, unreadScripts } from '../../store/sweeps/addresses.ts';
import { insertWriteOff } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import { acceptedLoss, type Refused } from '../payouts/after-restore/recover.ts';
import { differenceEntry } from '../payouts/after-restore/unknown-outputs.ts';

/** The same transaction as another currency of its chain shows it. */
export type Beside = { readonly currency: EvmCode; readonly facts: TransactionFacts };

/** What of outputs is at other addresses of ours, in minor units by output script (hex), and what went to nobody known. */
export type Fate = { readonly arrived: ReadonlyMap<string, bigint>; readonly lost: bigint };

/** Of a currency's outputs that its sender had itself; what a contract has sent on was not at the address. */
export async function fateOf(sql: Sql, outputs: readonly OutputFacts[]): Promise<Fate> {
  const sent = outputs.filter(isOfSender);
  return fateAt(sent, await ourScripts(sql, scriptsOf(sent)));
}

/** The same of what others have made it send (EIP-7702): what of that comes to where it is looked for is a payment there, or capital, whose ever it was. */
export async function fateOfCalled(sql: Sql, { currency, facts }: Beside): Promise<Fate> {
  const sent = facts.outputs.filter(isOfSender);
  return fateAt(sent, await unreadScripts(sql, currency, scriptsOf(sent)));
}

const scriptsOf = (outputs: readonly OutputFacts[]): readonly string[] => outputs.map(({ script }) => script);

function fateAt(sent: readonly OutputFacts[], ours: ReadonlySet<string>): Fate {
  const arrived = new Map<string, bigint>();
  for (const { script, amountMinor } of sent)
    if (ours.has(script)) arrived.set(script, plus(arrived.get(script) ?? 0n, amountMinor));
  const lost = sum(sent.flatMap(({ script, amountMinor }) => (ours.has(script) ? [] : [amountMinor])));
  return { arrived, lost };
}

type Booking = {
  readonly facts: Pick<TransactionFacts, 'txid'>;
  readonly block: BlockRef;
  readonly by: string;
  readonly acceptsLoss: boolean;
};
/** `batchId`: null where it has left by no transaction of its own. */
type At = Booking & { readonly currency: EvmCode; readonly batchId: string | null };

/** What has arrived at other addresses of ours is known there from now on. */
export async function noteArrived(ctx: Context, sql: Sql, at: At, arrived: Fate['arrived']): Promise<void> {
  const { facts, block, by, currency, batchId } = at;
  const atMs = ctx.ports.clock.now();
  const evidence = `${facts.txid}: it came from another address of ours`;
  for (const [script, amount] of arrived) {
    const target = Buffer.from(script, 'hex');
    await insertWriteOff(sql, { currency, script: target, amount: negated(amount), block, batchId, by, evidence, atMs });
    await noteSwept(sql, currency, target);
  }
}

/** What it has taken of other currencies. @param fateOfOne where that is @throws Refusal where a loss is not accepted */
export async function fatesOf(
  sql: Sql,
  { beside, acceptsLoss }: { readonly beside: readonly Beside[]; readonly acceptsLoss: boolean },
  refused: Refused,
  fateOfOne = (on: Sql, { facts }: Beside): Promise<Fate> => fateOf(on, facts.outputs),
): Promise<readonly (Fate & { readonly currency: EvmCode })[]> {
  const fates: (Fate & { readonly currency: EvmCode })[] = [];
  for (const one of beside) {
    const { currency } = one;
    const fate = await fateOfOne(sql, one);
    acceptedLoss(fate.lost, { currency, acceptsLoss }, refused);
    if (fate.lost > 0n || fate.arrived.size > 0) fates.push({ ...fate, currency });
  }
  return fates;
}

/** Books that: it is gone from its sender, beside the batch of the transaction. @returns what of it is lost */
export async function bookBeside(
  ctx: Context,
  sql: Sql,
  of: Booking & { readonly batchId: string | null; readonly script: Buffer },
  fates: Awaited<ReturnType<typeof fatesOf>>,
): Promise<readonly { readonly currency: EvmCode; readonly lost: bigint }[]> {
  const { facts, block, by, batchId, script } = of;
  const atMs = ctx.ports.clock.now();
  for (const { currency, arrived, lost } of fates) {
    const evidence = `${facts.txid}: it has left beside what else it has sent`;
    const amount = plus(lost, sum([...arrived.values()]));
    const leftBy = batchId === null ? facts.txid : null;
    await insertWriteOff(sql, { currency, script, amount, block, batchId, leftBy, by, evidence, atMs });
    await noteSwept(sql, currency, script);
    await noteArrived(ctx, sql, { ...of, currency }, arrived);
    if (lost === 0n) continue;
    const entry = differenceEntry({ currency, txid: facts.txid, acceptsLoss: true }, lost);
    await postEntries(sql, [{ entry, transactionId: null, atMs }]);
  }
  return fates.flatMap(({ currency, lost }) => (lost > 0n ? [{ currency, lost }] : []));
}
