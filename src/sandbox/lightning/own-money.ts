// What the simulated Lightning node has besides its one channel, and what happens to it that is no payment of ours: its wallet on the chain, channels that
// it opens and closes, payments that it forwards. Each is a block of its own.
import { createHash } from 'node:crypto';

export type OwnMoneyLine =
  | { readonly kind: 'forwarded'; readonly feeMsat: string; readonly atMs: number }
  | { readonly kind: 'wallet'; readonly amount: number; readonly fee: number; readonly label?: string }
  | { readonly kind: 'opened'; readonly capacity: number; readonly pushed: number; readonly fee: number }
  | { readonly kind: 'closed'; readonly channelPoint: string; readonly cost: number }
  | { readonly kind: 'between'; readonly isBetween: boolean; readonly isForced?: boolean };

type Transaction = {
  readonly txid: string;
  readonly height: number;
  readonly amount: number;
  readonly fee: number;
  readonly label: string;
  readonly spends: readonly { readonly outpoint: string; readonly isOurs: boolean }[];
};
type Channel = { readonly channelPoint: string; readonly capacity: number; readonly pushed: number };
type Closed = Channel & { readonly txid: string; readonly height: number; readonly settled: number };

/** Amounts in satoshis, but those that are named msat. */
export function createOwnMoney(write: (line: OwnMoneyLine) => void, now: () => number) {
  const forwarded: { readonly atNs: bigint; readonly feeMsat: bigint }[] = [];
  const transactions: Transaction[] = [];
  const closed: Closed[] = [];
  let channels: readonly Channel[] = [];
  let isBetween = false;
  let isForced = false;
  /** What is listed while a channel opens or closes. */
  let listed: { readonly channels: readonly Channel[]; readonly closed: readonly Closed[] } = { channels: [], closed: [] };
  let height = 1;
  let inWallet = 0;

  /** What leaves the wallet spends what came to it last. */
  function block(transaction: Omit<Transaction, 'txid' | 'height' | 'spends'>, closes: string | null = null): string {
    height += 1;
    const txid = createHash('sha256').update(`block ${height}`).digest('hex');
    const newest = transaction.amount < 0 ? transactions.findLast(({ amount }) => amount > 0) : undefined;
    const ours = newest === undefined ? [] : [{ outpoint: `${newest.txid}:0`, isOurs: true }];
    transactions.push({ ...transaction, txid, height, spends: closes === null ? ours : [{ outpoint: closes, isOurs: false }] });
    inWallet += transaction.amount;
    return txid;
  }

  function apply(line: OwnMoneyLine): void {
    if (line.kind === 'between') {
      isBetween = line.isBetween;
      isForced = line.isForced ?? false;
      listed = { channels, closed: [...closed] };
    } else if (line.kind === 'forwarded') {
      const last = forwarded.at(-1)?.atNs ?? 0n;
      const atNs = BigInt(line.atMs) * 1_000_000n;
      forwarded.push({ atNs: atNs > last ? atNs : last + 1n, feeMsat: BigInt(line.feeMsat) });
    } else if (line.kind === 'wallet')
      block({ amount: line.amount, fee: line.fee, label: line.label ?? (line.amount < 0 ? 'external' : '') });
    else if (line.kind === 'opened') {
      const { capacity, pushed, fee } = line;
      const txid = block({ amount: -(capacity + fee), fee, label: '0:openchannel:shortchanid-1' });
      channels = [...channels, { channelPoint: `${txid}:0`, capacity, pushed }];
    } else {
      const channel = channels.find(({ channelPoint }) => channelPoint === line.channelPoint) as Channel;
      channels = channels.filter((one) => one !== channel);
      const settled = channel.capacity - channel.pushed - line.cost;
      const txid = block({ amount: settled, fee: 0, label: '0:closechannel:shortchanid-1' }, line.channelPoint);
      closed.push({ ...channel, txid, height, settled });
    }
  }

  return {
    apply,
    /** Passes a payment of others on. */
    forward: (feeMsat: bigint): void => write({ kind: 'forwarded', feeMsat: String(feeMsat), atMs: now() }),
    /** Its operator puts satoshis into its wallet, or takes them out of it: then the amount is negative, and the fee in it. */
    move: (amount: number, fee = 0): void => write({ kind: 'wallet', amount, fee }),
    /** A transaction of its wallet is made to be mined sooner, by one that spends its change. */
    bump: (fee: number): void => write({ kind: 'wallet', amount: -fee, fee, label: '0:sweep' }),
    /** @returns its channel point */
    open(capacity: number, { pushed = 0, fee = 0 } = {}): string {
      write({ kind: 'opened', capacity, pushed, fee });
      return channels.at(-1)?.channelPoint as string;
    },
    close: (channelPoint: string, cost: number): void => write({ kind: 'closed', channelPoint, cost }),
    /** A channel opens or closes; a forced close is decided by the chain. */
    setBetween: (between: boolean, forced = false): void => write({ kind: 'between', isBetween: between, isForced: forced }),
    isBetween: (): boolean => isBetween,
    isForced: (): boolean => isForced,
    height: (): number => height,
    inWallet: (): number => inWallet,
    channels: (): readonly Channel[] => (isBetween ? listed.channels : channels),
    closed: (): readonly Closed[] => (isBetween ? listed.closed : closed),
    transactions: (): readonly Transaction[] => transactions,
    forwarded: () => forwarded,
    earnedMsat: (): bigint => forwarded.reduce((total, one) => total + one.feeMsat, 0n),
  };
}
