// `bursar payout recover`: books what has left and what the database has forgotten: a transaction of a chain, or a file that the bank has.
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { isUtxo, type LedgerCurrency, UTXO_CODES, type UtxoCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { recoverExecutedFile } from '../../flow/ach/executed-after-all.ts';
import { recoverAchFile } from '../../flow/ach/restored-files.ts';
import type { Context } from '../../flow/context.ts';
import {
  acceptForgotten,
  acceptForgottenReceipt,
  bookMissing,
  bookOwnPayment,
  bookUnasked,
  bookUnknownReceipt,
  claimUnderWay,
} from '../../flow/lightning/unasked-payments.ts';
import type { Recovered } from '../../flow/payouts/after-restore/recover.ts';
import { recoverFailed } from '../../flow/payouts/after-restore/recover-failed.ts';
import { recoverTransaction } from '../../flow/payouts/after-restore/recover-utxo.ts';
import { readAchBytes } from '../../store/ach/entries.ts';
import { heightOf } from '../../store/chain/blocks.ts';
import { type OpenMovement, openMovements } from '../../store/payouts/unknown-movements.ts';
import { payingPortOf } from '../../worker/chain/context.ts';
import { EVERYTHING } from '../../worker/chain/watch-list.ts';
import { recoverSent, recoverSigned } from '../../worker/payouts/evm/passed-nonces.ts';
import { CommandFailed, leaf, print } from './output.ts';
import { withBooks, withNodes } from './service-access.ts';

type Found = Recovered & {
  readonly currency: LedgerCurrency;
  /** Whose customer's payment it is. */
  readonly transactionId?: string;
};
type Options = {
  readonly json?: boolean;
  readonly acceptLoss?: boolean;
  readonly own?: boolean;
  readonly executed?: boolean;
  readonly block?: string;
};

/** Adds `payout recover` to the group `payout`. */
export function addRecover(payout: Command): void {
  leaf(
    payout,
    'recover <id>',
    'Books a transaction (its txid), a bank file (its name) or a Lightning payment (its hash) that the database does not know, a transaction whose payouts had failed and that is mined after all, or what a Lightning node (its key) has less than the books (bursar audit, INV-10, OUT-3, LN-2, LN-5, LN-7, LN-9).',
  )
    .option('--block <hash>', 'the block that has the transaction, where no look has found it')
    .option('--accept-loss', 'books what it pays to nobody that this database knows as lost')
    .option('--executed', 'books a bank file that the bank has refused and executed all the same: its merchants pay it')
    .option('--own', 'books a Lightning payment that you have made yourself, or what you have taken from the node, as yours')
    .action(recover);
}

/** Of a transaction on Ethereum's chain, which says by itself who has sent it. */
const EVM_HASH = /^0x[0-9a-f]{64}$/i;
/** A Lightning node's public key. */
const LIGHTNING_NODE = /^0[23][0-9a-f]{64}$/;
const BANK_FILE = /^\d{4}-\d\d-\d\d-[A-Z0-9]$/;
const by = (): string => `operator ${userInfo().username}`;

async function recover(id: string, { json, acceptLoss = false, own = false, executed = false, block }: Options): Promise<void> {
  if (executed) return recoverExecuted(id, json);
  if (own && acceptLoss) throw new CommandFailed('it is yours (--own), or lost (--accept-loss): not both');
  if (own || LIGHTNING_NODE.test(id)) return recoverOwn(id, { json: json === true, own, acceptLoss });
  const {
    payoutIds,
    transactionId,
    lost,
    fee,
    currency,
    alike = [],
    besides = [],
  }: Found = BANK_FILE.test(id)
    ? await recoveredFile(id, acceptLoss)
    : ((await recoveredOverLightning(id, acceptLoss)) ??
      (EVM_HASH.test(id)
        ? await withNodes((ctx) => recoveredOnEvm(ctx, id.toLowerCase(), acceptLoss))
        : await withBooks((ctx) => recoverFailed(ctx, { txid: id, by: by(), acceptsLoss: acceptLoss }))) ??
      (await withNodes((ctx) => recovered(ctx, id, { acceptsLoss: acceptLoss, named: block ?? null }))));
  const amounts = { lost: formatAmount(lost, currency), fee: formatAmount(fee, currency) };
  const whose = payoutIds.join(', ') || transactionId || 'no payout';
  const named = { ...(currency === 'USD' ? { file: id } : { txid: id }), alike_payout_ids: alike };
  const beside = besides.map((one) => ({ currency: one.currency, lost: formatAmount(one.lost, one.currency) }));
  const andBeside = beside.map((one) => `, and ${one.lost} ${one.currency}`).join('');
  print(json, { ...named, currency, payout_ids: payoutIds, ...amounts, besides: beside }, [
    `${id} is booked for ${whose}; fee ${amounts.fee} ${currency}, lost ${amounts.lost} ${currency}${andBeside}.`,
    ...alike.map(
      (one) =>
        `${one} goes where this was lost to, and waits: was it this one, bursar payout resolve ${one} --paid, else --failed.`,
    ),
    'When bursar audit is green, bursar audit --clear lets payouts go on.',
  ]);
}

/** A bank file that was executed after it had been refused. */
async function recoverExecuted(name: string, json: boolean | undefined): Promise<void> {
  const ids = await withBooks((ctx) => recoverExecutedFile(ctx, { name, by: by() }));
  print(json, { file: name, currency: 'USD', payout_ids: ids }, [
    `${name} is booked as executed for ${ids.join(', ') || 'no payout'}: what was given back is taken from their merchants again.`,
    'When bursar audit is green, bursar audit --clear lets payouts go on.',
  ]);
}

/** What the operator has paid over Lightning himself, or taken from the node. */
async function recoverOwn(
  id: string,
  { json, own, acceptLoss }: { json: boolean; own: boolean; acceptLoss: boolean },
): Promise<void> {
  const as = own ? 'own' : acceptLoss ? 'lost' : null;
  const underWay = LIGHTNING_NODE.test(id) ? null : await withBooks((ctx) => claimUnderWay(ctx, id));
  if (underWay !== null) {
    const takes = formatAmount(underWay, LIGHTNING.code);
    return print(json, { id, currency: LIGHTNING.balance, amount: takes, booked_as: null }, [
      `${id} is under way and kept as yours, with ${takes} ${LIGHTNING.balance}: it stops nothing until it has ended. Say it again then, to have it booked.`,
      'When bursar audit is green, bursar audit --clear lets payouts go on.',
    ]);
  }
  const gone = LIGHTNING_NODE.test(id)
    ? await withBooks((ctx) => bookMissing(ctx, id, as))
    : await withNodes((ctx) => bookOwnPayment(ctx, id));
  if (gone === null)
    throw new CommandFailed(
      `nothing that you could have paid or taken over Lightning is missing under ${id} (bursar audit, LN-5, LN-7)`,
      'not_found',
    );
  const amount = formatAmount(gone, LIGHTNING.code);
  print(json, { id, currency: LIGHTNING.balance, amount, booked_as: as }, [
    `${amount} ${LIGHTNING.balance} of ${id} are booked as ${as === 'own' ? 'yours, fees as costs of the channels' : 'lost'}.`,
    'When bursar audit is green, bursar audit --clear lets payouts go on.',
  ]);
}

/** Null when the Lightning node has paid nothing of this hash that nobody here has asked for, and has forgotten nothing of it. */
async function recoveredOverLightning(id: string, acceptsLoss: boolean): Promise<Found | null> {
  const lost = await withBooks((ctx) => bookUnasked(ctx, { paymentHash: id, acceptsLoss }));
  if (lost !== null) return { payoutIds: [], lost, fee: 0n, currency: LIGHTNING.balance };
  const payoutId = await withBooks((ctx) => acceptForgotten(ctx, id));
  if (payoutId !== null) return { payoutIds: [payoutId], lost: 0n, fee: 0n, currency: LIGHTNING.balance };
  const transactionId = await withBooks((ctx) => acceptForgottenReceipt(ctx, id));
  if (transactionId !== null) return { payoutIds: [], transactionId, lost: 0n, fee: 0n, currency: LIGHTNING.balance };
  const received = await withBooks((ctx) => bookUnknownReceipt(ctx, id));
  return received === null ? null : { payoutIds: [], lost: 0n, fee: 0n, currency: LIGHTNING.balance };
}

/** A transaction that was signed here and had failed, or one that was not signed here. */
async function recoveredOnEvm(ctx: Context, txid: string, acceptsLoss: boolean): Promise<Found> {
  const asked = { by: by(), acceptsLoss };
  return (await recoverSigned(ctx, txid, asked)) ?? recoverSent(ctx, txid, asked);
}

async function movementOf(ctx: Context, id: string): Promise<OpenMovement> {
  const found = (await openMovements(ctx.db)).find((one) => one.txid === id);
  if (found === undefined)
    throw new CommandFailed(
      `nothing that has left is missing under ${id}: it is booked here, or no look has found it (bursar audit, OUT-3)`,
      'not_found',
    );
  return found;
}

function recoveredFile(name: string, acceptsLoss: boolean): Promise<Found> {
  return withBooks(async (ctx, config) => {
    await movementOf(ctx, name);
    // with it comes a whole HTTP client, which no other command about payouts needs
    const { bankOf } = await import('../wiring/bank.ts');
    // nothing is handed over here
    const bank = bankOf(config, async () => null);
    if (bank === null) throw new CommandFailed('no bank is configured');
    const isKept = (await bank.files.names()).includes(name);
    const atBank = isKept ? undefined : (await bank.bank.had()).find((file) => file.name === name);
    const bytes = isKept
      ? await bank.files.read(name)
      : atBank === undefined
        ? await storedBytes(ctx, name)
        : await bank.bank.contentOf(atBank);
    return { ...(await recoverAchFile(ctx, { name, bytes, by: by(), acceptsLoss })), fee: 0n, currency: 'USD' };
  });
}

/** What was written back from a copy that is no longer there. */
async function storedBytes(ctx: Context, name: string): Promise<Uint8Array> {
  const stored = await readAchBytes(ctx.db, name);
  if (stored === null) throw new CommandFailed(`neither our folder nor the bank has a file ${name}`);
  return ctx.ports.sealing.open(stored, name);
}

type Asked = {
  readonly acceptsLoss: boolean;
  /** The hash of a block, as the operator has named it. */
  readonly named: string | null;
};

/** The chain of a block that was read: where no look has found what spends an output of ours, the operator names it; whether it does is looked at later. */
async function namedBy(ctx: Context, hash: string | null): Promise<Pick<OpenMovement, 'currency' | 'blockHash'> | null> {
  if (hash === null) return null;
  for (const currency of UTXO_CODES) if ((await heightOf(ctx.db, currency, hash)) !== null) return { currency, blockHash: hash };
  return null;
}

async function recovered(ctx: Context, txid: string, { acceptsLoss, named }: Asked): Promise<Recovered & { currency: UtxoCode }> {
  const { currency, ...found } = (await namedBy(ctx, named)) ?? (await movementOf(ctx, txid));
  if (currency === 'USD') throw new CommandFailed(`${txid} is no transaction`);
  if (!isUtxo(currency))
    throw new CommandFailed(`this version cannot book ${txid}: it knows no other way for ${currency} than the signer's journal`);
  const hash = named ?? found.blockHash;
  const height = hash === null ? null : await heightOf(ctx.db, currency, hash);
  if (hash === null || height === null)
    throw new CommandFailed(
      `${hash === null ? `no look has found ${txid} in a block` : `no block ${hash} was read`}: wait for one, or name the one that has it with --block (an explorer of the chain tells it)`,
    );
  const port = ctx.ports.chains.has(currency) ? payingPortOf(ctx, currency) : null;
  const raw = port === null ? null : await port.rawTransaction(txid, hash);
  const facts = raw === null ? null : (port?.readRaw(raw, EVERYTHING) ?? null);
  if (raw === null || facts === null) throw new CommandFailed(`no node shows transaction ${txid} in block ${hash}`);
  const block = { height, hash };
  return { ...(await recoverTransaction(ctx, { currency, block, facts, raw, by: by(), acceptsLoss })), currency };
}
