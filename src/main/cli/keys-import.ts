// `bursar keys import-xpub`: receives to a key that is kept elsewhere. An account that was used continues above its last used index: the
// chain shows it, or the operator gives it.
import { UnderivableIndex } from '../../core/account-key.ts';
import { type CurrencyCode, utxoRow } from '../../core/currency.ts';
import type { ChainPort } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import { acceptedForms, createAddressDeriver, isSameAccount, readAccountKey } from '../../outside/utxo/derive.ts';
import { HIGHEST_START, importKey, listKeys } from '../../store/chain/xpubs.ts';
import { type AccountUse, describeUse, ScanRefused, scanAccount } from '../../worker/rescan/account-scan.ts';
import type { Opened } from '../process/setup.ts';
import { StartRefused } from '../process/start-refused.ts';
import { CommandFailed, print } from './output.ts';
import { withBooks } from './service-access.ts';

type Options = {
  readonly json?: boolean;
  readonly currency: CurrencyCode;
  readonly xpub: string;
  readonly start?: number;
  readonly from?: number;
};

const PRINTED_EVERY_MS = 5_000;

/** The action of the command. */
export async function importXpub({ json, currency, xpub, ...options }: Options): Promise<void> {
  await withBooks(async (ctx, config) => {
    const { network } = ctx;
    const given = readAccountKey(currency, network, xpub);
    const stored = (await listKeys(ctx.db)).find((one) => isSameAccount(one.xpub, given.xpub));
    const key = { ...given, xpub: stored?.xpub ?? given.xpub };
    const use =
      options.start === undefined ? await askChain(ctx, config, { currency, xpub: key.xpub, from: options.from ?? 0 }) : null;
    const start = options.start ?? (use?.receive ?? -1) + 1;
    const imported = await importKey(ctx.db, { currency, xpub: key.xpub, at: new Date(ctx.ports.clock.now()), start });
    if (imported.outcome === 'of_other_currency') {
      throw new CommandFailed(
        `--xpub serves ${imported.currency} already: each currency needs an account of its own (accepted: ${acceptedForms(currency, network).join(', ')})`,
      );
    }
    if (imported.outcome === 'without_room') {
      throw new CommandFailed(
        `${currency} would go on at index ${imported.nextIndex} of this account, where too few are left; nothing was changed. Accepted: ${HIGHEST_START} or lower (--start), else another account`,
      );
    }
    const first = ctx.ports.addresses.of(currency, key.xpub).derive(0).address;
    const value = {
      currency,
      xpub: key.xpub,
      outcome: imported.outcome,
      next_index: imported.key.nextIndex,
      first_address: first,
      asked: use === null ? null : askedValue(use),
    };
    const outcomes = {
      first: 'has its first key',
      replaced: 'has a new key, running servers use it within 2 seconds',
      in_use: 'used this key already',
    };
    const { purpose } = utxoRow(currency).utxo;
    print(json, value, [
      ...(use === null ? [] : describeUse(currency, use)),
      ...(use === null && options.start === undefined ? [NOT_ASKED] : []),
      `${currency} ${outcomes[imported.outcome]}; addresses go on at index ${imported.key.nextIndex} at the lowest.`,
      `Its first address is ${first}: compare it with your wallet's (type of m/${purpose}').`,
      ...(/^[yu]pub$/.test(key.form)
        ? [`A ${key.form} wallet usually shows addresses of another type: make it watch these too.`]
        : []),
      'Indexes are given out in ranges and can have gaps of thousands: "bursar keys show-descriptors" shows how far your wallet must look.',
    ]);
  });
}

const NOT_ASKED =
  'No node could be asked how far this account was used. On this network currencies are worth nothing, so it begins at index 0.';

function askedValue(use: AccountUse): Record<string, unknown> {
  return {
    from: use.fromHeight,
    to: use.toHeight,
    by: use.by,
    gap: use.gap,
    last_receive_index: use.receive,
    last_change_index: use.change,
  };
}

/** How far the account was used; null where no node can be asked and the currency is worth nothing. */
async function askChain(
  ctx: Context,
  config: Opened['config'],
  account: { readonly currency: CurrencyCode; readonly xpub: string; readonly from: number },
): Promise<AccountUse | null> {
  const { currency, from } = account;
  const isWorthless = ctx.network === 'sandbox' || ctx.network === 'regtest';
  const { openNodes } = await import('../wiring/nodes.ts');
  const nodes = await openNodes(config, ctx.ports.clock).catch((error: unknown) => {
    // a sandbox that is not running
    if (error instanceof StartRefused && isWorthless) return null;
    throw error;
  });
  try {
    const port = nodes?.chains.get(currency);
    if (port === undefined && isWorthless) return null;
    if (port === undefined) throw unasked(currency, `no node of ${currency} is configured`);
    return await scan(port, account, ctx.network);
  } catch (error) {
    const isNodes = error instanceof ScanRefused || (error instanceof Error && error.name === 'NodeTrouble');
    if (!isNodes) throw error;
    if (ctx.network === 'sandbox') return null;
    throw unasked(currency, `${(error as Error).message} (block ${from} on)`);
  } finally {
    await nodes?.close();
  }
}

function unasked(currency: CurrencyCode, why: string): CommandFailed {
  return new CommandFailed(
    `the chain of ${currency} cannot be asked how far this account was used: ${why}. Give the first index that was never given out with --start (0 for a new account)`,
  );
}

function scan(
  port: ChainPort,
  account: { readonly currency: CurrencyCode; readonly xpub: string; readonly from: number },
  network: Context['network'],
): Promise<AccountUse> {
  const derivers = ([0, 1] as const).map((chain) =>
    createAddressDeriver({ currency: account.currency, network, xpub: account.xpub, chain }),
  );
  return scanAccount(port, {
    fromHeight: account.from,
    onProgress: progress(account.from),
    scriptOf(chain, index) {
      try {
        return derivers[chain]!.derive(index).script;
      } catch (error) {
        if (error instanceof UnderivableIndex) return null;
        throw error;
      }
    },
  });
}

/** Prints now and then how far it is and how long it may take, on standard error. */
function progress(fromHeight: number): (height: number, toHeight: number) => void {
  const began = performance.now();
  let printed = began;
  return (height, toHeight) => {
    const now = performance.now();
    if (now - printed < PRINTED_EVERY_MS || height === toHeight) return;
    printed = now;
    const done = height - fromHeight + 1;
    const left = Math.round((((now - began) / done) * (toHeight - height)) / 1000);
    process.stderr.write(`read up to block ${height} of ${toHeight}, some ${left} s are left\n`);
  };
}
