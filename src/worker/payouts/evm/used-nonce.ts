// What has used the nonce of a batch on Ethereum's chain, as blocks that were read before show it now: what is recorded of that is the word of the node
// that was read then.
import { evmAddressOf } from '../../../core/currencies/evm.ts';
import type { EvmCode } from '../../../core/currency.ts';
import type { EvmPort, Nonce, PaidByWord } from '../../../core/evm/port.ts';
import type { TransactionFacts, WatchList } from '../../../core/ports.ts';
import type { Context } from '../../../flow/context.ts';
import type { Batch } from '../../../store/payouts/batch-rows.ts';
import { readBlockHash } from '../../../store/payouts/evm-lane.ts';
import { recordOutgoing, takeBackSpend } from '../../../store/payouts/outgoing-facts.ts';
import { createOutpointSet } from '../../chain/watch-list.ts';

/** Finds in a block what uses the nonce of a batch, and nothing else. */
const watchingNonce = ({ inputs }: Batch<EvmCode>): WatchList => ({
  hasScript: () => false,
  fresh: async () => undefined,
  ...createOutpointSet(inputs),
});

type Chain = { readonly currency: EvmCode; readonly port: EvmPort };

/**
 * Looks for the transactions of a batch in blocks that were read before we watched for them: a database that was restored may have forgotten
 * what it waited for. @returns whether one was found
 */
export async function findMined(ctx: Context, { currency, port }: Chain, batch: Batch<EvmCode>): Promise<boolean> {
  for (const { txid } of batch.attempts) {
    const mined = await port.mined(txid);
    if (mined === null || (await readBlockHash(ctx.db, currency, mined.height)) !== mined.blockHash) continue;
    const { touched } = await port.readBlock(mined.blockHash, watchingNonce(batch));
    // what is recorded wakes the driver, which would look again at once
    if (!touched.some((facts) => isNews(batch, mined.height, facts))) return true;
    return ctx.db.transaction(async (sql) => {
      // a reorganisation may have removed it meanwhile
      if ((await readBlockHash(sql, currency, mined.height)) !== mined.blockHash) return false;
      await recordOutgoing(sql, currency, { height: mined.height, hash: mined.blockHash }, touched, new Set());
      return true;
    });
  }
  return false;
}

/** What is recorded to have used the nonce of a batch in a block; null where nothing is. */
function usedBy({ attempts, inputs: [input] }: Batch<EvmCode>): { readonly by: string; readonly height: number } | null {
  const mined = attempts.find(({ height }) => height !== null);
  if (mined !== undefined) return { by: mined.txid, height: mined.height as number };
  if (input === undefined || input.spentBy === null || input.spentHeight === null) return null;
  return { by: input.spentBy, height: input.spentHeight };
}

/**
 * The same, and what a block is recorded to hold at the nonce of the batch goes where the node that is read shows it there no more: another node's
 * word of before, which would be sent no more, or stop payouts, for good. What was given back and has paid stays while any node says so, or is silent.
 * @param finalized a node that has not read so far says nothing
 */
export async function readUsed(ctx: Context, { currency, port }: Chain, batch: Batch<EvmCode>, finalized: number): Promise<void> {
  if (batch.state === 'dead' && stopsPayouts(batch)) {
    const { paid, silent } = await saidByAll(port, batch, finalized);
    if (paid !== null || silent.length > 0) return;
  }
  if (await findMined(ctx, { currency, port }, batch)) return;
  const used = usedBy(batch);
  const hash = used === null ? null : await readBlockHash(ctx.db, currency, used.height);
  if (used === null || hash === null) return;
  const { touched } = await port.readBlock(hash, watchingNonce(batch));
  if (touched.some(({ txid, spends }) => txid === used.by && spends.length > 0)) return;
  // what carries an authorization of our address is no transaction of it
  if ((await port.carrierIn(hash, nonceOf(batch))) === used.by) return;
  await ctx.db.transaction(async (sql) => {
    if ((await readBlockHash(sql, currency, used.height)) === hash) await takeBackSpend(sql, batch.id, used);
  });
}

/**
 * Whether what is recorded of a batch stops payouts for as long as it is: a transaction that nobody here has signed has used its nonce, or what had
 * failed has not. A node's word, which goes with it.
 */
export function stopsPayouts({ state, attempts, inputs }: Batch<EvmCode>): boolean {
  const mined = attempts.find(({ height }) => height !== null);
  if (mined !== undefined) return state === 'dead' && mined.outcome?.result !== 'failed';
  return state !== 'dead' && inputs.some(({ spentBy }) => spentBy !== null);
}

/** Whether a block says of a transaction of the batch what is not recorded of it. */
function isNews({ attempts }: Batch<EvmCode>, height: number, { txid, outcome }: TransactionFacts): boolean {
  const known = attempts.find((one) => one.txid === txid);
  if (known === undefined || known.height !== height) return true;
  return known.outcome?.result !== outcome?.result || known.outcome?.gasPaid !== outcome?.gasPaid;
}

/** Its nonce, and the address that it leaves from. */
export function nonceOf({ id, inputs: [input] }: Batch<EvmCode>): Nonce {
  if (input === undefined) throw new Error(`batch ${id} has no nonce`);
  return { address: evmAddressOf(input.script.toString('hex')), nonce: input.vout };
}

/** What all nodes say of the transactions of a batch. @param height a node that has not read so far says nothing */
export function saidByAll(port: EvmPort, batch: Batch<EvmCode>, height: number): Promise<PaidByWord> {
  const { attempts, inputs } = batch;
  const rival = attempts.some((attempt) => attempt.height !== null) ? null : (inputs[0]?.spentBy ?? null);
  return port.succeeded(
    attempts.map(({ txid }) => txid),
    { height, sender: nonceOf(batch), rival },
  );
}
