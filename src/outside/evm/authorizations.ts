// Who has signed the authorizations that a transaction carries (EIP-7702). Each that is taken uses a nonce of its account without a transaction of that
// account; one with another nonce than the account's next is passed over, and no receipt says which.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { evmInput } from '../../core/currencies/evm.ts';
import { isOfSender } from '../../core/evm/outcome.ts';
import type { AuthorizedByWord, EndedTransaction, MinedTransaction, Nonce } from '../../core/evm/port.ts';
import { rlp } from '../../core/evm/rlp.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { orRefusal } from '../utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import { asAddress, asFields, asHash, asList, asNumber, asQuantity, readReceipt, readTransaction } from './answers.ts';
import { addressOfKey } from './key-address.ts';
import { endedFacts } from './payments.ts';
import { type EvmSource, isLimit, quantity, readAs } from './source.ts';

/** What is hashed begins with it, so that no transaction is taken for an authorization. */
const MAGIC = Buffer.of(5);

/**
 * Who has signed them, in their order. What a node shows wrongly, or nobody has signed, authorizes nothing.
 * @param transaction as a node answers it @param only those with this nonce (default: all)
 */
export function signersOf(transaction: unknown, only?: number): readonly Nonce[] {
  const { authorizationList } = asFields(transaction, 'the transaction');
  if (!Array.isArray(authorizationList)) return [];
  return authorizationList.flatMap((one) => {
    try {
      const { chainId, address, nonce, yParity, r, s } = asFields(one, 'an authorization');
      const signed = asNumber(nonce, 'nonce');
      if (only !== undefined && signed !== only) return [];
      const items = [asQuantity(chainId, 'chainId'), asAddress(address, 'address'), signed];
      const digest = keccak_256(Buffer.concat([MAGIC, rlp(items)]));
      const signature = new secp256k1.Signature(asQuantity(r, 'r'), asQuantity(s, 's'), asNumber(yParity, 'yParity'));
      return [{ address: addressOfKey(signature.recoverPublicKey(digest).toBytes(false)), nonce: signed }];
    } catch {
      return [];
    }
  });
}

type At = Pick<EvmSource, 'rpc' | 'header' | 'block'>;

/** The transaction of a block that carries what an account has signed with a nonce; null: none does. @throws NodeTrouble */
export async function carrierIn({ rpc }: At, hash: string, { address, nonce }: Nonce): Promise<string | null> {
  const [block] = await answersOf({ rpc }, [{ method: 'eth_getBlockByHash', params: [hash, true] }]);
  return readAs(rpc, 'eth_getBlockByHash', () => {
    const all = asList(asFields(block, 'the block').transactions, 'transactions');
    const carrier = all.find((one) => signersOf(one, nonce).some((signer) => signer.address === address));
    return carrier === undefined ? null : asHash(asFields(carrier, 'a transaction').hash, 'hash');
  });
}

/** Who has signed what a transaction carries, as the node shows it. @throws NodeTrouble */
export async function signersIn({ rpc }: At, txid: string): Promise<readonly Nonce[]> {
  const [transaction] = await answersOf({ rpc }, [{ method: 'eth_getTransactionByHash', params: [txid] }]);
  return readAs(rpc, 'eth_getTransactionByHash', () => (transaction === null ? [] : signersOf(transaction)));
}

type Asked = { readonly txid: string; readonly signer: Nonce; readonly contract: string | null };

/**
 * What one node shows of an authorization. That it was taken shows in the count of its account, which rises in its block without a transaction of it; many
 * nodes forget after half an hour what that was.
 * @throws NodeTrouble
 */
export async function authorizedAt(source: At, asked: Asked): Promise<AuthorizedByWord> {
  const { rpc } = source;
  const { address, nonce } = asked.signer;
  const says = (what: string, how: Partial<AuthorizedByWord> = {}): AuthorizedByWord => {
    return { carried: null, isUsed: false, isDenied: false, said: [`${rpc.name} ${what}`], ...how };
  };
  const methods = ['eth_getTransactionByHash', 'eth_getTransactionReceipt'];
  const [shown, receipt] = await answersOf(
    source,
    methods.map((method) => ({ method, params: [asked.txid] })),
  );
  if (shown === null || receipt === null) return says('shows it in no block');
  const carried = readAs(rpc, methods.join(', '), () => carriedOf(shown, receipt, asked));
  if (carried === null) return says(`shows nothing of ${address} in it`, { isDenied: true });
  const counts = await countsAround(source, carried, asked.signer);
  if (counts === null) return says(`does not know any more what ${address} had sent before block ${carried.height}`, { carried });
  const { before, after, isSent } = counts;
  const isUsed = !isSent && before <= nonce && nonce < after;
  const counted = `counts ${before} transactions of ${address} before block ${carried.height}, and ${after} after it`;
  return says(counted, { carried, isUsed, isDenied: !isUsed });
}

/** In a block, with what its account has sent in it; null: it carries nothing of that account with this nonce, or is in no block. */
function carriedOf(shown: unknown, receipt: unknown, asked: Asked): AuthorizedByWord['carried'] {
  const { blockHash, blockNumber } = asFields(shown, 'the transaction');
  if (blockHash == null || !signersOf(shown, asked.signer.nonce).some(({ address }) => address === asked.signer.address))
    return null;
  const hash = asHash(blockHash, 'blockHash');
  const facts = takenBy(shown, readReceipt(receipt, { txid: asked.txid, hash }), asked);
  return { height: asNumber(blockNumber, 'blockNumber'), blockHash: hash, facts };
}

/** How many transactions an account had sent before and after a block, and whether that has one with this nonce; null: it has forgotten, or has another block. */
async function countsAround(
  source: At,
  { height, blockHash }: MinedTransaction,
  { address, nonce }: Nonce,
): Promise<{ readonly before: number; readonly after: number; readonly isSent: boolean } | null> {
  const calls = [height - 1, height].map((at) => ({ method: 'eth_getTransactionCount', params: [address, quantity(at)] }));
  const answers = await orRefusal(source.rpc.batch(calls));
  if (answers instanceof RpcRefusal || (answers as readonly unknown[]).some((one) => one instanceof RpcRefusal)) return null;
  if ((await source.header(quantity(height)))?.hash !== blockHash) return null;
  const { transactions } = await source.block(blockHash);
  return readAs(source.rpc, 'eth_getTransactionCount', () => {
    const [before = 0, after = 0] = (answers as readonly unknown[]).map((one) => asNumber(one, 'the count'));
    return { before, after, isSent: transactions.some((one) => one.from === address && one.nonce === nonce) };
  });
}

type Facts = NonNullable<AuthorizedByWord['carried']>['facts'];

/** What its account has sent in it: what its own transaction has sent is not the authorization's, and the ether that its code has sent is not shown. */
function takenBy(
  shown: unknown,
  receipt: ReturnType<typeof readReceipt>,
  { signer: { address, nonce }, contract }: Omit<Asked, 'txid'>,
): Facts {
  const transaction = readTransaction(shown);
  const { txid, coinbase, inputs, outputs } = endedFacts({ ...transaction, from: address, nonce }, receipt, contract);
  const sent = contract === null || transaction.from === address ? [] : outputs.filter(isOfSender);
  return { txid, coinbase, inputs, outputs: sent, spends: [evmInput(address, nonce)] };
}

/** The answers to a few calls. @throws NodeTrouble where one is refused */
async function answersOf(
  { rpc }: Pick<EvmSource, 'rpc'>,
  calls: readonly { readonly method: string; readonly params: readonly unknown[] }[],
): Promise<readonly unknown[]> {
  const answers = await orRefusal(rpc.batch(calls));
  const refusal = [answers].flat().find((answer) => answer instanceof RpcRefusal);
  if (refusal instanceof RpcRefusal)
    throw new NodeTrouble(isLimit(refusal) ? 'busy' : 'bad_answer', `${rpc.name}: ${refusal.message}`, { cause: refusal });
  return answers as readonly unknown[];
}

/** What two nodes show alike (the only one, where there is one), and whether as many say that it has used the nonce, or has not. */
export async function authorizedByWord(
  members: readonly Member<ReadingNode & { authorized(txid: string, signer: Nonce): Promise<AuthorizedByWord> }>[],
  { txid, signer }: Pick<Asked, 'txid' | 'signer'>,
  waiting: Waiting,
): Promise<AuthorizedByWord> {
  const asked = members.map((member) => saidInTime(member, member.node.authorized(txid, signer), waiting));
  const answers = await Promise.all(asked);
  const words = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  const enough = Math.min(2, members.length);
  const shown = Map.groupBy(words, ({ carried }) => (carried === null ? null : nameOf(carried)));
  shown.delete(null);
  const alike = [...shown.values()].filter((all) => all.length >= enough);
  const [all = []] = alike.length === 1 ? alike : [];
  return {
    carried: all[0]?.carried ?? null,
    isUsed: all.filter(({ isUsed }) => isUsed).length >= enough,
    isDenied: words.filter(({ isDenied }) => isDenied).length >= enough,
    said: answers.flatMap((answer) => (answer instanceof NodeTrouble ? [answer.message] : answer.said)),
  };
}

const nameOf = ({ height, blockHash, facts }: EndedTransaction): string =>
  [height, blockHash, ...facts.outputs.map(({ vout, script, amountMinor }) => `${vout} ${script} ${amountMinor}`)].join(' ');
