// On Ethereum's chain a transaction has one sender. What one of our own addresses sends to another one of ours is no payment and no capital: it
// only moves what is here (sweeps, and ether for their gas). What a contract sends on that we have paid was somebody else's, and is one.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmScript } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, isUtxo } from '../../core/currency.ts';
import type { OutputFacts, TransactionFacts } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';
import { noteMoves } from '../sweeps/forgotten-moves.ts';
import { isInnerOutput } from './inner-ether.ts';

/** At a nonce for which something of ours was signed. */
const hasFailed = ({ spends, outcome }: TransactionFacts): boolean => spends.length > 0 && outcome?.result === 'failed';
const senderOf = ({ inputs }: TransactionFacts): string | null => (inputs[0] === undefined ? null : evmScript(inputs[0].txid));

/**
 * The facts, without what an address of ours has itself sent to another one. Other chains' are given back as they are.
 * @param block they are in it: what of that nobody here has signed is noted; absent: nothing is
 */
export async function withoutOwnSends(
  sql: Sql,
  currency: CurrencyCode,
  facts: readonly TransactionFacts[],
  block: BlockRef | null = null,
): Promise<readonly TransactionFacts[]> {
  if (isUtxo(currency)) return facts;
  const senders = new Set(facts.filter((one) => one.outputs.length > 0 || hasFailed(one)).flatMap((one) => senderOf(one) ?? []));
  const own = new Set<string>();
  const given = new Set<string>();
  await inParts([...senders], CHOSEN_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ script: string; given: boolean }>({
      // planned each time, as whose script it is (store/chain/script-owners.ts)
      text: `select encode(s.script, 'hex') as script, exists (select from transactions t where t.script = s.script) as given from unnest($1::bytea[]) as s(script)
              where exists (select from own_addresses a where a.script = s.script) or exists (select from transactions t where t.script = s.script)`,
      values: [part.map((script) => Buffer.from(script, 'hex'))],
    });
    for (const row of rows) {
      own.add(row.script);
      if (row.given) given.add(row.script);
    }
  });
  if (own.size === 0) return facts;
  const isSentOn = (output: OutputFacts): boolean => output.sentOn === true || (currency === ETHER && isInnerOutput(output));
  const isOwn = (one: TransactionFacts): boolean => own.has(senderOf(one) ?? '');
  // what has failed at the nonce of a sweep of ours has moved nothing: only a sweep can it have been, that was forgotten
  const isFailedSweep = (one: TransactionFacts): boolean => hasFailed(one) && given.has(senderOf(one) ?? '');
  const moves = facts.filter((one) => (isOwn(one) && !one.outputs.every(isSentOn)) || isFailedSweep(one));
  if (block !== null && moves.length > 0) await noteMoves(sql, currency, block, moves);
  return facts.map((one) => (isOwn(one) ? { ...one, outputs: one.outputs.filter(isSentOn) } : one));
}
