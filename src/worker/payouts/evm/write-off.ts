// `bursar chain write-off`: what is gone from an address of ours on Ethereum's chain, as every node is asked. Only what no transaction of ours can have
// taken is written off: what has left by its key is booked as what it was.
import { evmAddressOf, evmInput, evmScript } from '../../../core/currencies/evm.ts';
import { ETHER, EVM_CODES, type EvmCode, isToken } from '../../../core/currency.ts';
import type { EndedTransaction, EvmPort } from '../../../core/evm/port.ts';
import { keptOf } from '../../../core/payouts/sweeps.ts';
import type { Context } from '../../../flow/context.ts';
import { everyHotAddress } from '../../../flow/evm/batches.ts';
import { notShown } from '../../../flow/evm/recover-failed.ts';
import { type Held, refusedAddress, type WrittenOff, writeOff } from '../../../flow/sweeps/write-off.ts';
import { hasAuthorized } from '../../../store/payouts/after-restore/authorized-nonces.ts';
import { leftAfterAll, readBlockHash, unknownSend, usedNonces } from '../../../store/payouts/evm-lane.ts';
import { addressOfScript, firstPaid, type UnclearSend, unclearSend } from '../../../store/sweeps/addresses.ts';
import { knownUpTo } from '../../../store/sweeps/balances.ts';
import { readMovesOf } from '../../../store/sweeps/forgotten-moves.ts';
import { portOf } from '../../chain/context.ts';
import { writeFailedBack } from './forgotten-moves.ts';

type Lane = { readonly currency: EvmCode; readonly port: EvmPort };
type Block = { readonly height: number; readonly hash: string };
type Asked = {
  /** 0x and 40 digits. */
  readonly address: string;
  readonly takesBack: boolean;
  readonly by: string;
  readonly evidence: string;
};

export type Done = WrittenOff & { readonly currency: EvmCode };

const AWAY = `one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL`;

/**
 * Writes off what is missing of each token at an address of ours, and of ether where its key has authorized code (EIP-7702).
 * @throws Refusal not_resolvable, with what is missing to say so; NodeTrouble where no node answers
 */
export async function writeOffAt(ctx: Context, asked: Asked): Promise<readonly Done[]> {
  const address = asked.address.toLowerCase();
  const script = Buffer.from(evmScript(address), 'hex');
  const done: Done[] = [];
  const owner = await ownerOf(ctx, script);
  if (owner === null) throw refusedAddress(address, 'is no address of ours');
  // ether leaves without a transaction of its address only by code that its key has authorized
  const hadCode = await hasAuthorized(ctx.db, owner, evmInput(address, 0).txid);
  for (const currency of EVM_CODES.filter((code) => (isToken(code) || hadCode) && ctx.ports.chains.has(code))) {
    const lane = { currency, port: portOf(ctx, currency) as EvmPort };
    const block = await finalBlock(ctx, lane, asked);
    const found = await unclearOf(ctx, lane, address, block.height);
    const first = await heldAt(ctx, { ...lane, owner }, address, block);
    const hot = { ...lane, owner: currency };
    const target = found?.purpose !== 'sweep' ? [] : [await heldAt(ctx, hot, evmAddressOf(found.target.toString('hex')), block)];
    const { takesBack, by, evidence } = asked;
    const of = { currency, block, held: [first, ...target] as const, unclear: found, takesBack, by, evidence };
    done.push({ ...(await writeOff(ctx, of)), currency });
  }
  const [nothing = null] = done.map((one) => one.nothing);
  if (nothing !== null && done.every((one) => one.nothing !== null)) throw refusedAddress(address, nothing);
  return done;
}

/** The currency whose payouts leave from an address, or of whose transaction it is; null: it is none of ours. */
async function ownerOf(ctx: Context, script: Buffer): Promise<EvmCode | null> {
  for (const currency of EVM_CODES.filter((code) => ctx.ports.chains.has(code)))
    if ((await everyHotAddress(ctx, ctx.db, currency)).some((hot) => hot.script.equals(script))) return currency;
  return (await addressOfScript(ctx.db, script))?.currency ?? null;
}

/** The highest final block that was read twice. */
async function finalBlock(ctx: Context, { currency, port }: Lane, { address, takesBack }: Asked): Promise<Block> {
  // a payment that is not known yet is no reason to take anything back
  const [known, final] = [await knownUpTo(ctx.db, currency, takesBack), await port.finalized()];
  const height = Math.min(known ?? -1, final?.height ?? -1);
  const hash = height < 0 ? null : await readBlockHash(ctx.db, currency, height);
  if (hash === null) throw refusedAddress(address, `cannot be looked at: no final block of ${currency} was read twice yet`);
  return { height, hash };
}

/** What was sent from there and did something else than it asks for, in a final block; null: nothing. */
async function unclearOf(
  ctx: Context,
  { currency, port }: Lane,
  address: string,
  upTo: number,
): Promise<(UnclearSend & { readonly ended: EndedTransaction }) | null> {
  const found = await unclearSend(ctx.db, currency, evmInput(address, 0).txid);
  if (found === null) return null;
  const shown = await port.ended(found.txid);
  if (shown.ended === null) throw refusedAddress(address, `has sent ${found.txid}, and that ${notShown(shown)}`);
  if (!shown.isFinal || keptOf(shown.ended.facts, found) !== null)
    throw refusedAddress(address, `has sent ${found.txid}: it ends by itself, once two nodes call its block final`);
  // only then does what is there after it show what it has taken
  if (found.purpose === 'payout' && shown.ended.height > upTo)
    throw refusedAddress(address, `has sent ${found.txid} in a block that was not read twice yet: bursar audit does that`);
  return { ...found, ended: shown.ended };
}

/**
 * @param lane.owner the currency whose address it is: its transactions use the nonces
 * @throws Refusal where nodes do not say alike what it holds, or that more has left than is known here
 */
async function heldAt(ctx: Context, lane: Lane & { readonly owner: EvmCode }, address: string, block: Block): Promise<Held> {
  const { owner, port } = lane;
  const sender = evmInput(address, 0);
  const [noted] = await readMovesOf(ctx.db, owner, sender, 1);
  if (noted !== undefined)
    throw refusedAddress(
      address,
      `has sent ${noted.txid} to another address of ours, which is booked by itself once it is final`,
    );
  const unknown = await unknownSend(ctx.db, owner, sender.txid, block.height);
  if (unknown !== null)
    throw refusedAddress(
      address,
      `has sent ${unknown}, which was not signed here: what that has taken is not gone otherwise, so it is booked first (bursar payout recover ${unknown})`,
    );
  const left = await leftAfterAll(ctx.db, owner, sender.txid, block.height);
  if (left !== null)
    throw refusedAddress(
      address,
      `has sent ${left}, whose payout had failed and was given back: that is booked first (bursar payout recover ${left})`,
    );
  const { held, most, said } = await port.heldBy(address, block);
  const words = `after block ${block.height}: ${said.join('; ')}`;
  if (held === null || (most !== null && most > held.units))
    throw refusedAddress(
      address,
      `is written off only once two nodes say alike what it holds, and none that it is more (${AWAY}), ${words}`,
    );
  const script = Buffer.from(evmScript(address), 'hex');
  const used = async (): Promise<number> =>
    (await usedNonces(ctx.db, owner, sender.txid, block.height)) ?? (await sentBefore(ctx, lane, address, script));
  const before = { below: held.nonce, height: block.height, toSign: true };
  const ofOwner = { currency: owner, port: portOf(ctx, owner) as EvmPort };
  const waits = held.nonce > (await used()) ? await writeFailedBack(ctx, ofOwner, address, before) : null;
  if (waits !== null) throw refusedAddress(address, `cannot be looked at yet: ${waits}`);
  const known = await used();
  if (held.nonce > known)
    throw refusedAddress(
      address,
      `has sent ${held.nonce} transactions, and ${known} of them are known here: what the others have taken is not gone otherwise, so they are booked first (bursar payout recover), ${words}`,
    );
  return { script, address, units: held.units, said: words };
}

/** How many transactions it had sent when it was first paid: its words may have been used elsewhere before. */
async function sentBefore(ctx: Context, { currency, port }: Lane, address: string, script: Buffer): Promise<number> {
  const height = await firstPaid(ctx.db, currency, script);
  return height === null ? 0 : (await port.account(address, height)).nonce;
}
