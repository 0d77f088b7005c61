// The capital of the service in the sandbox: outputs of its own on every chain and dollars in the bank, so that no payout waits for liquidity. Paid once, when the
// signer's keys are there and the worker watches the chain, and mined to final depth at once.
import { setTimeout as delay } from 'node:timers/promises';
import { finalDepth } from '../../core/confirmations.ts';
import { CURRENCIES, ETHER, EVM_CODES, isToken, UTXO_CODES, type UtxoCode } from '../../core/currency.ts';
import { channelCapitalEntry } from '../../core/lightning/postings.ts';
import { bankCapitalEntry } from '../../core/payouts/ach-postings.ts';
import type { Context } from '../../flow/context.ts';
import { hotAddress } from '../../flow/evm/batches.ts';
import { ensureHotAddress, newOwnAddresses } from '../../flow/payouts/own-outputs.ts';
import type { Sandbox } from '../../sandbox/service-side.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { readOwnScripts } from '../../store/payouts/own-outputs.ts';

const OUTPUTS = 20;
const WHOLE_EACH = 5n;
const CENTS_IN_BANK = 10_000_000_00n;
/** On our side of the sandbox's channel. */
const SATOSHIS_IN_CHANNELS = 50n * 100_000_000n;
const LOOK_EVERY_MS = 100;
const WATCHED_WITHIN_MS = 5_000;

/** A database that is being restarted is asked again; what fails this often in a row is told. */
const TOLD_AFTER = 100;

/** Resolves when every chain has it, or when the signal ends it. */
export async function giveCapital(
  ctx: Context,
  sandbox: Sandbox,
  options: { readonly signal: AbortSignal; readonly report: (error: unknown) => void },
): Promise<void> {
  const { signal, report } = options;
  const missing = new Set<UtxoCode | 'EVM'>([...UTXO_CODES, 'EVM']);
  let failures = 0;
  let isFunded = false;
  await untilWatched(ctx, signal);
  while ((missing.size > 0 || !isFunded) && !signal.aborted) {
    try {
      if (!isFunded) await fundBankAndChannels(ctx);
      isFunded = true;
      for (const one of [...missing])
        if (await (one === 'EVM' ? giveOnEvm(ctx, sandbox) : give(ctx, sandbox, one))) missing.delete(one);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures === TOLD_AFTER) report(error);
    }
    if (missing.size > 0 || !isFunded) await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Resolves when the worker has looked at every chain, or a few seconds later: nobody waits for capital before the start is over, and making it
 * keeps a processor busy that the start needs.
 */
async function untilWatched(ctx: Context, signal: AbortSignal): Promise<void> {
  const isWatched = async (): Promise<boolean> => {
    const cursors = await Promise.all([...UTXO_CODES, ...EVM_CODES].map((currency) => readCursor(ctx.db, currency)));
    return !cursors.includes(null);
  };
  for (const until = performance.now() + WATCHED_WITHIN_MS; performance.now() < until && !signal.aborted; ) {
    if (await isWatched().catch(() => false)) return;
    await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** The same entry each time: only the first changes anything. */
async function fundBankAndChannels(ctx: Context): Promise<void> {
  const of = { transactionId: null, atMs: ctx.ports.clock.now() };
  await postEntries(ctx.db, [
    { entry: bankCapitalEntry(CENTS_IN_BANK), ...of },
    { entry: channelCapitalEntry(SATOSHIS_IN_CHANNELS), ...of },
  ]);
}

async function give(ctx: Context, sandbox: Sandbox, currency: UtxoCode): Promise<boolean> {
  if ((await readCursor(ctx.db, currency)) === null) return false;
  const before = await readOwnScripts(ctx.db, currency, OUTPUTS);
  const scripts =
    before.length > 0 ? before : (await newOwnAddresses(ctx, currency, OUTPUTS))?.map(({ script }) => Buffer.from(script));
  if (scripts === undefined) return false;
  const minor = WHOLE_EACH * 10n ** BigInt(CURRENCIES[currency].decimals);
  sandbox.giveCapital(
    currency,
    scripts.map((script) => ({ script, minor })),
    finalDepth(currency).depth,
  );
  return true;
}

const WEI = 10n ** 18n;
const TOKEN_MINOR = 10_000_000n * 10n ** 6n;
/** Gas of what leaves in USDT is paid by its own address. */
const WEI_FOR_GAS = 100n * WEI;
const WEI_ALONE = 900n * WEI;

/** 1,000 ether and 10,000,000 USDT, at the two addresses from which they leave. */
async function giveOnEvm(ctx: Context, sandbox: Sandbox): Promise<boolean> {
  const outputs: Parameters<Sandbox['giveEvmCapital']>[0][number][] = [];
  for (const currency of EVM_CODES) {
    const isReady = (await readCursor(ctx.db, currency)) !== null && (await ensureHotAddress(ctx, currency));
    const hot = isReady ? await hotAddress(ctx, ctx.db, currency) : null;
    if (hot === null) return false;
    const { address } = hot;
    outputs.push({ currency: ETHER, address, minor: isToken(currency) ? WEI_FOR_GAS : WEI_ALONE });
    if (isToken(currency)) outputs.push({ currency, address, minor: TOKEN_MINOR });
  }
  sandbox.giveEvmCapital(outputs, finalDepth(ETHER).depth);
  return true;
}
