// `bursar keys show-descriptors`: the output descriptors of every account that was ever in use, with the ranges that were given out, in the
// form that Bitcoin Core imports; and how to spend from them with the seed alone.
import { isUtxo } from '../../core/currency.ts';
import { receivingDescriptor } from '../../core/descriptor.ts';
import { usedIndexes } from '../../store/chain/address-ranges.ts';
import { readSkipped, type SkippedAddresses } from '../../store/chain/signer-status.ts';
import { listKeys, type SpendingKey, type StoredKey } from '../../store/chain/xpubs.ts';
import { askSigner } from './keys-verify.ts';
import { print } from './output.ts';
import { withBooks } from './service-access.ts';

type Range = {
  readonly first: number;
  readonly last: number;
  /** False where nothing is known to have been given out, but it cannot be ruled out. */
  readonly certain: boolean;
};

/** Bitcoin Core imports at most this many at once. */
const MOST_AT_ONCE = 1_000_000;

const isOfUtxo = (key: StoredKey): key is SpendingKey => isUtxo(key.currency);

/** The action of the command. */
export async function showDescriptors({ json }: { readonly json?: boolean }): Promise<void> {
  await withBooks(async (ctx, config) => {
    const { accounts } = await askSigner(config);
    const [keys, skipped, used] = await Promise.all([listKeys(ctx.db), readSkipped(ctx.db), usedIndexes(ctx.db)]);
    // only chains of Bitcoin's family have output descriptors
    const values = keys.filter(isOfUtxo).map((key) => {
      const own = accounts.find((account) => key.origin === 'signer' && account.xpub === key.xpub);
      const descriptor = receivingDescriptor(key.currency, key.xpub, own ?? null);
      const lowest = Math.min(key.startIndex, used.get(key.currency)?.lowest ?? key.startIndex);
      const ranges = rangesOf(key, lowest, skipped);
      return {
        currency: key.currency,
        in_use: key.retiredAt === null,
        origin: key.origin,
        path: own?.path ?? null,
        descriptor,
        ranges,
        import: ranges.map(({ first, last }) => ({
          desc: descriptor,
          range: [first, last],
          timestamp: Math.floor(key.createdAt.getTime() / 1000),
          active: false,
          internal: false,
        })),
      };
    });
    const lines = values.flatMap((one) => [
      `${one.currency.padEnd(5)} ${one.in_use ? 'in use' : 'before'}  ${one.origin}${one.path === null ? '' : ` ${one.path}`}`,
      `  ${one.descriptor}`,
      ...(one.ranges.length === 0 ? ['  nothing was given out'] : one.ranges.map(rangeLine)),
    ]);
    const none = 'No keys yet: the signer brings its own when it starts, or import one with "bursar keys import-xpub".';
    print(json, { accounts: values }, values.length === 0 ? [none] : [...lines, '', ...HOW]);
  });
}

const HOW = [
  'To watch: bitcoin-cli importdescriptors with the "import" list of --json, in a wallet without private keys (createwallet w true).',
  "To spend with the 24 words alone: a wallet that takes BIP39 words and this path, told to look as far as the ranges; or importdescriptors with the seed's",
  'root xprv and the path in place of the public key, e.g. wpkh(xprv…/84h/0h/0h/0/*), and the same ranges. Payments to imported keys are spent where those keys are kept.',
  'A timestamp is when the key was added to this database: set it earlier for an older account.',
];

function rangeLine({ first, last, certain }: Range): string {
  return `  indexes ${first} to ${last}${certain ? '' : ', which may or may not have been given out'}`;
}

/**
 * From the lowest index to the last that was given, in parts that can be imported; indexes that were passed over without further knowledge
 * are listed separately.
 */
function rangesOf(key: StoredKey, lowest: number, skipped: readonly SkippedAddresses[]): readonly Range[] {
  const jumps = skipped
    .filter(({ xpub, cause }) => xpub === key.xpub && cause !== 'database_behind')
    .sort((a, b) => a.firstIndex - b.firstIndex);
  const ranges: Range[] = [];
  let from = Math.min(lowest, key.nextIndex);
  const add = (to: number, certain: boolean): void => {
    for (; from < to; from = Math.min(to, from + MOST_AT_ONCE)) {
      ranges.push({ first: from, last: Math.min(to, from + MOST_AT_ONCE) - 1, certain });
    }
  };
  for (const jump of jumps) {
    add(jump.firstIndex, true);
    add(jump.endIndex, false);
  }
  add(key.nextIndex, true);
  return ranges;
}
