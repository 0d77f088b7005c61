// What a customer may see of a transaction who has the link of its checkout page: nothing of the merchant but the name and the merchant's reference.

import { requiredDepth } from '../../core/confirmations.ts';
import { CURRENCIES } from '../../core/currency.ts';
import { type CheckoutScreen, checkoutScreen } from '../../core/judge/checkout.ts';
import { atLeastZero, minus, plus } from '../../core/money.ts';
import { paymentUri } from '../../core/payment-uri.ts';
import { type CheckoutRow, readCheckouts as readRows } from '../../store/transactions/checkouts.ts';
import type { Context } from '../context.ts';

export type Checkout = Omit<
  CheckoutRow,
  'id' | 'merchantId' | 'received' | 'awaited' | 'toleranceBps' | 'createdAtMs' | 'confirmedAtMs' | 'sequence'
> & {
  readonly transactionId: string;
  readonly screen: CheckoutScreen;
  readonly receivedMinor: bigint;
  /** What was seen and may come back, though the network does not show it at present. */
  readonly awaitedMinor: bigint;
  /** What is still to be paid, without what may come back; zero where nothing is. */
  readonly remainingMinor: bigint;
  /** What was paid above what was asked for. */
  readonly excessMinor: bigint;
  /** Of what is still to be paid; null where the contract of a token is not configured any more. */
  readonly uri: string | null;
  /** The contract of a token, with its checksum (EIP-55). */
  readonly tokenContract: string | null;
  /** Confirmations that a payment of this value needs; null = only the network's word that its block is final suffices. */
  readonly wantedConfirmations: number | null;
  /** The service's clock. */
  readonly nowMs: number;
};

/** Those of these transactions that exist, by id. */
export async function readCheckouts(ctx: Context, ids: readonly string[]): Promise<ReadonlyMap<string, Checkout>> {
  const rows = await readRows(ctx.db, ids);
  const nowMs = ctx.ports.clock.now();
  return new Map([...rows].map(([id, row]) => [id, checkoutOf(ctx, row, nowMs)]));
}

function checkoutOf(ctx: Context, row: CheckoutRow, nowMs: number): Checkout {
  const { id, merchantId: _, received, awaited, ...shown } = row;
  const { currency, amountDue, address } = shown;
  const remainingMinor = atLeastZero(minus(amountDue, plus(received, awaited)));
  const isKnown = CURRENCIES[currency].evm?.token == null || ctx.tokenContract !== null;
  const required = requiredDepth(currency, row.usdMinor);
  return {
    ...shown,
    nowMs,
    transactionId: id,
    screen: checkoutScreen({ ...shown, receivedMinor: received, awaitedMinor: awaited }, nowMs),
    receivedMinor: received,
    awaitedMinor: awaited,
    remainingMinor,
    excessMinor: atLeastZero(minus(received, amountDue)),
    uri: isKnown ? paymentUri(currency, address, remainingMinor === 0n ? amountDue : remainingMinor, ctx) : null,
    tokenContract: ctx.tokenContract,
    wantedConfirmations: required.onlyLock === true ? null : required.depth,
  };
}
