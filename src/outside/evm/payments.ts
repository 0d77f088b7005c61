// What of a block or of waiting transactions touches a watched address, as the facts that the watchers of all chains record. Ether: the value
// of a transaction, and what contracts send inside it. A token: the Transfer events of its pinned contract (ERC-20).
//
// A transaction of an account takes the place of an input: whatever else is mined with the same sender and nonce replaces it. An output is
// numbered by its place in its own transaction, which stays when a reorganisation puts the transaction into another block.
import { EVM_SCRIPT, evmInput, evmScript, WAITING_PLACE } from '../../core/currencies/evm.ts';
import type { EvmOutcome } from '../../core/evm/outcome.ts';
import type { Outpoint, OutputFacts, TokenOutput, TransactionFacts, WatchList } from '../../core/ports.ts';
import { Malformed } from '../utxo/bytes.ts';
import {
  asAddress,
  asFields,
  asHash,
  asList,
  type EvmBlock,
  type EvmLog,
  type EvmReceipt,
  type EvmTransaction,
} from './answers.ts';
import type { Shown } from './traces.ts';

type Watch = Pick<WatchList, 'hasScript' | 'hasOutpoint'>;

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** Writes an event for each transfer of ether once EIP-7708 is in force: that is no token's, and counts where ether is read. */
const ETHER_EVENTS = '0xfffffffffffffffffffffffffffffffffffffffe';
/** The selectors of transfer(address,uint256) and transferFrom(address,address,uint256), and the places of payee and amount behind them. */
const CALLS = { a9059cbb: [0, 1], '23b872dd': [1, 2] } as const;
/** An amount above this is no token's: more than all dollars there are, in millionths. */
const MOST_UNITS = 2n ** 96n;
const HEAD = Buffer.from(EVM_SCRIPT.head, 'hex');
const WORD = 64;

/** What looks at a watch list for addresses and senders, without a buffer for each. */
export function lookup(watch: Watch) {
  const script = Buffer.alloc(EVM_SCRIPT.bytes);
  HEAD.copy(script);
  const spent = Buffer.alloc(36);
  return {
    /** @param address 0x and 40 digits */
    isOurs(address: string): boolean {
      script.write(address.slice(2), HEAD.length, 'hex');
      return watch.hasScript(script, 0, script.length);
    },
    isSpent({ from, nonce }: EvmTransaction): boolean {
      // the wire order of a txid is the reverse of its display order
      spent.fill(0);
      spent.write(from.slice(2), 0, 'hex');
      spent.subarray(0, 20).reverse();
      spent.writeUInt32LE(nonce, 32);
      return watch.hasOutpoint(spent, 0);
    },
  };
}

const inputOf = ({ from, nonce }: EvmTransaction): Outpoint => evmInput(from, nonce);

/** A transaction of an account as the watchers record it, with what was found in it. */
export function factsOf(
  transaction: EvmTransaction,
  found: {
    readonly outputs: readonly OutputFacts[];
    readonly isSpent: boolean;
    readonly tokens?: readonly TokenOutput[];
    readonly outcome?: EvmOutcome;
  },
): TransactionFacts {
  const input = inputOf(transaction);
  return {
    txid: transaction.hash,
    coinbase: false,
    inputs: [input],
    outputs: found.outputs,
    spends: found.isSpent ? [input] : [],
    ...(found.outcome === undefined ? {} : { outcome: found.outcome }),
    ...(found.tokens === undefined || found.tokens.length === 0 ? {} : { tokenOutputs: found.tokens }),
  };
}

/** The place of the fees among what a block pays without a transaction; a withdrawal's is its own behind it. */
const FEES_PLACE = 0;

/**
 * What a block itself pays to our addresses, as a transaction of its own named after the block, which nobody has sent: the fees of its
 * transactions to whoever proposed it, and validators' withdrawals (EIP-4895).
 */
async function paidByBlock(
  block: EvmBlock,
  isOurs: (address: string) => boolean,
  receipts: () => Promise<readonly EvmReceipt[]>,
): Promise<TransactionFacts | null> {
  const outputs: OutputFacts[] = [];
  const { feeRecipient, withdrawals, transactions } = block;
  if (feeRecipient !== null && isOurs(feeRecipient) && transactions.length > 0) {
    const amountMinor = feesOf(block, await receipts());
    if (amountMinor > 0n) outputs.push({ vout: FEES_PLACE, script: evmScript(feeRecipient), amountMinor });
  }
  for (const [nth, { to, value }] of withdrawals.entries())
    if (value > 0n && isOurs(to)) outputs.push({ vout: FEES_PLACE + 1 + nth, script: evmScript(to), amountMinor: value });
  return outputs.length === 0 ? null : { txid: block.hash, coinbase: true, inputs: [], outputs, spends: [] };
}

/** What the transactions of a block have paid for gas above the base fee, which is burnt; wei. */
export function feesOf({ baseFee }: EvmBlock, receipts: readonly EvmReceipt[]): bigint {
  let fees = 0n;
  for (const { gasUsed, gasPaid } of receipts) {
    if (gasUsed === null || gasPaid === null) throw new Malformed('a receipt does not say what its gas has cost');
    fees += gasPaid - gasUsed * baseFee;
  }
  if (fees < 0n) throw new Malformed('its transactions have paid less than its base fee');
  return fees;
}

/**
 * The ether that a block brings. @param receipts asked for only when something is to our addresses
 * @param transfers what contracts send inside each transaction; null, in the whole or for one of them, where the node does not show it
 */
export async function etherIn(
  block: EvmBlock,
  watch: Watch,
  transfers: Shown,
  receipts: () => Promise<readonly EvmReceipt[]>,
): Promise<readonly TransactionFacts[]> {
  const look = lookup(watch);
  const touched: { readonly at: number; readonly outputs: readonly OutputFacts[]; readonly isSpent: boolean }[] = [];
  for (const [at, transaction] of block.transactions.entries()) {
    const outputs: OutputFacts[] = [];
    const { to, value } = transaction;
    if (to !== null && value > 0n && look.isOurs(to)) outputs.push({ vout: 0, script: evmScript(to), amountMinor: value });
    for (const [nth, inner] of (transfers?.[at] ?? []).entries())
      if (look.isOurs(inner.to)) outputs.push({ vout: nth + 1, script: evmScript(inner.to), amountMinor: inner.value });
    const isSpent = look.isSpent(transaction);
    if (outputs.length > 0 || isSpent) touched.push({ at, outputs, isSpent });
  }
  const paid = await paidByBlock(block, look.isOurs, receipts);
  const ofBlock = paid === null ? [] : [paid];
  if (touched.length === 0) return ofBlock;
  const all = await receipts();
  const ofTransactions = touched.map(({ at, outputs, isSpent }) => {
    const succeeded = all[at]?.succeeded === true;
    const transaction = block.transactions[at] as EvmTransaction;
    return factsOf(transaction, {
      outputs: succeeded ? outputs : [],
      isSpent,
      ...(isSpent ? { outcome: outcomeOf(transaction, all[at], null) } : {}),
    });
  });
  return [...ofTransactions, ...ofBlock];
}

/**
 * One transaction by itself, in a block: what it pays, whoever that is, and how it ended. What contracts send on is not in it.
 * @param contract of the token whose payments are asked for; null for ether
 */
export function endedFacts(transaction: EvmTransaction, receipt: EvmReceipt, contract: string | null): TransactionFacts {
  const all = { hasScript: () => true, hasOutpoint: () => true };
  if (contract !== null) return tokensIn({ transactions: [transaction] }, all, contract, [receipt])[0] as TransactionFacts;
  const paid = receipt.succeeded ? etherOf(transaction) : null;
  const outputs = paid === null ? [] : [{ vout: 0, script: evmScript(paid.to), amountMinor: paid.amount }];
  return factsOf(transaction, { outputs, isSpent: true, outcome: outcomeOf(transaction, receipt, null) });
}

/** How a transaction ended that is one of ours. @param contract of the token whose transfer it may be; null for ether */
function outcomeOf(transaction: EvmTransaction, receipt: EvmReceipt | undefined, contract: string | null): EvmOutcome {
  const gasPaid = receipt?.gasPaid ?? null;
  if (receipt === undefined || gasPaid === null) throw new Malformed('a receipt does not say what its gas has cost');
  if (!receipt.succeeded) return { result: 'failed', gasPaid };
  const asked = contract === null ? null : tokenOf(transaction, contract);
  if (asked === null) return { result: 'paid', gasPaid };
  const moved = receipt.logs.filter(({ address, topics }) => address === contract && topics[0] === TRANSFER);
  const isAsAsked =
    moved.length === 1 &&
    moved.every((log) => {
      const { from, to, amount } = readTransfer(log);
      return to === asked.to && amount === asked.amount && from === transaction.from;
    });
  return { result: isAsAsked ? 'paid' : 'unclear', gasPaid };
}

/** The tokens that a block brings; other contracts' events that name an address of ours are only reported. */
export function tokensIn(
  block: Pick<EvmBlock, 'transactions'>,
  watch: Watch,
  contract: string,
  receipts: readonly EvmReceipt[],
): readonly TransactionFacts[] {
  const look = lookup(watch);
  return block.transactions.flatMap((transaction, at) => {
    const outputs: OutputFacts[] = [];
    const tokens: TokenOutput[] = [];
    for (const [vout, log] of (receipts[at]?.logs ?? []).entries()) {
      if (log.topics[0] !== TRANSFER || log.address === ETHER_EVENTS) continue;
      if (log.address === contract) {
        const { from, to, amount } = readTransfer(log);
        const sentOn = from === transaction.from ? {} : { sentOn: true as const };
        if (amount > 0n && look.isOurs(to)) outputs.push({ vout, script: evmScript(to), amountMinor: amount, ...sentOn });
      } else {
        const foreign = foreignTransfer(log);
        if (foreign !== null && look.isOurs(foreign.to)) tokens.push(tokenOutput(vout, log.address, foreign));
      }
    }
    const isSpent = look.isSpent(transaction);
    if (outputs.length === 0 && tokens.length === 0 && !isSpent) return [];
    const outcome = isSpent ? { outcome: outcomeOf(transaction, receipts[at], contract) } : {};
    return [factsOf(transaction, { outputs, isSpent, tokens, ...outcome })];
  });
}

/** An event of the pinned contract, which always has this form. */
function readTransfer({ topics, data }: EvmLog): { readonly from: string; readonly to: string; readonly amount: bigint } {
  const [from, to] = topics.length === 3 ? [addressIn(topics[1] as string), addressIn(topics[2] as string)] : [null, null];
  if (from === null || to === null || data.length !== 2 + WORD)
    throw new Malformed('a Transfer of the token does not have its form');
  const amount = BigInt(data);
  if (amount > MOST_UNITS) throw new Malformed(`a Transfer of the token is of ${amount} units`);
  return { from, to, amount };
}

type Foreign = { readonly to: string; readonly amount: bigint; readonly nft: boolean };

/** What strangers' contracts write may be anything; an NFT has its number as a fourth topic (ERC-721). */
function foreignTransfer({ topics, data }: EvmLog): Foreign | null {
  const to = topics[2] === undefined ? null : addressIn(topics[2]);
  if (to === null) return null;
  const nft = topics.length === 4;
  return { to, nft, amount: nft || data.length < 2 + WORD ? 0n : BigInt(data.slice(0, 2 + WORD)) };
}

const tokenOutput = (vout: number, category: string, { to, amount, nft }: Foreign): TokenOutput => ({
  vout,
  script: evmScript(to),
  amountMinor: 0n,
  category,
  tokens: amount,
  nft,
});

/** The address in a word of 32 bytes; null when there is more in it. */
function addressIn(word: string): string | null {
  const digits = word.slice(-WORD);
  return /^0{24}/.test(digits) ? `0x${digits.slice(24).toLowerCase()}` : null;
}

/** Whom an event pays that a contract would write, and how much; null for any that is no transfer of this contract. @throws Malformed */
export function paidInLog(log: unknown, contract: string): { readonly to: string; readonly amount: bigint } | null {
  const { address, topics, data } = asFields(log, 'a log');
  if (asAddress(address, 'the address of a log') !== contract) return null;
  const named = asList(topics, 'topics').map((topic) => asHash(topic, 'a topic'));
  if (named[0] !== TRANSFER || named.length !== 3) return null;
  return readTransfer({ address: contract, topics: named, data: asHash(data, 'the amount of a Transfer') });
}

/** What a waiting transaction would bring: ether to one address, or a call of the token's transfer. */
export function waitingIn(
  transactions: Iterable<EvmTransaction>,
  watch: Watch,
  contract: string | null,
): readonly TransactionFacts[] {
  const look = lookup(watch);
  const found: TransactionFacts[] = [];
  for (const transaction of transactions) {
    const paid = contract === null ? etherOf(transaction) : tokenOf(transaction, contract);
    const outputs =
      paid !== null && look.isOurs(paid.to)
        ? [{ vout: WAITING_PLACE, script: evmScript(paid.to), amountMinor: paid.amount }]
        : [];
    const isSpent = look.isSpent(transaction);
    if (outputs.length > 0 || isSpent) found.push(factsOf(transaction, { outputs, isSpent }));
  }
  return found;
}

type Paid = { readonly to: string; readonly amount: bigint };

function etherOf({ to, value }: EvmTransaction): Paid | null {
  return to === null || value === 0n ? null : { to, amount: value };
}

function tokenOf({ to, input }: EvmTransaction, contract: string): Paid | null {
  const places = to === contract ? CALLS[input.slice(2, 10).toLowerCase() as keyof typeof CALLS] : undefined;
  if (places === undefined) return null;
  const word = (at: number): string => input.slice(10 + at * WORD, 10 + (at + 1) * WORD);
  const [payee, amount] = [word(places[0]), word(places[1])];
  if (!/^[0-9a-fA-F]{128}$/.test(payee + amount)) return null;
  const address = addressIn(payee);
  const units = BigInt(`0x${amount}`);
  return address === null || units === 0n || units > MOST_UNITS ? null : { to: address, amount: units };
}
