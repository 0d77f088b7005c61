// Ether for gas, from ether's own address to another one of ours: to addresses of transactions for moving what is there, and to the address that
// a token's payouts leave from.
import { evmAddressOf } from '../../../core/currencies/evm.ts';
import { ETHER } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import { type GasFees, payoutOffer } from '../../../core/payouts/gas.ts';
import type { Context } from '../../../flow/context.ts';
import { hotAddress } from '../../../flow/evm/batches.ts';
import { formTopUp } from '../../../flow/sweeps/sweeps.ts';
import { readCursor } from '../../../store/chain/blocks.ts';
import { portOf } from '../../chain/context.ts';
import { readFunds, whyNoEther } from './funds.ts';

/**
 * Reserves the transaction that brings an address of ours ether; none while one is on its way there.
 * @param wanted wei: what is sent at best, and the least that is of use
 * @returns null when some is on its way, or payouts are stopped; else why not
 * @throws NodeTrouble
 */
export async function bringEther(
  ctx: Context,
  target: Uint8Array,
  wanted: { readonly amount: bigint; readonly least: bigint },
  fees: GasFees,
): Promise<string | null> {
  const port = ctx.ports.chains.has(ETHER) ? (portOf(ctx, ETHER) as EvmPort) : null;
  const hot = await hotAddress(ctx, ctx.db, ETHER);
  const cursor = await readCursor(ctx.db, ETHER);
  if (port === null || hot === null || cursor === null) return 'there is no ether of our own for its gas';
  const why = await whyNoEther(port, evmAddressOf(Buffer.from(target).toString('hex')));
  if (why !== null) return why;
  const funds = await readFunds(ctx, { currency: ETHER, port }, hot.address, cursor.height);
  return formTopUp(ctx, { hot, funds, target, ...wanted, offer: payoutOffer(fees) });
}
