// What payouts need of an Ethereum node: sending a transaction, what gas costs, what an account holds, and why a payee cannot be paid. A
// refusal is sorted by what it proves: only the chain itself proves that a transaction can never be mined, so nothing here ends a payout.
import type { BlockRef } from '../../core/block-ref.ts';
import type { EvmSending, MinedTransaction, Nonce } from '../../core/evm/port.ts';
import type { SendAnswer } from '../../core/ports.ts';
import { Malformed } from '../utxo/bytes.ts';
import { within } from '../utxo/node/patience.ts';
import { orRefusal, type Rpc } from '../utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import { asFields, asHash, asNumber, asQuantity, readTransaction } from './answers.ts';
import { authorizedAt, carrierIn, signersIn, signersOf } from './authorizations.ts';
import { endedAt } from './ended.ts';
import { heldAt } from './held.ts';
import { type EvmSource, isLimit, quantity, readAs } from './source.ts';

const KNOWN = /already known|known transaction|alreadyknown|already imported|already in mempool/i;
const NONCE_USED = /nonce too low|nonce is too low|nonce has already been used|oldnonce/i;
const IN_CONFLICT = /replacement transaction underpriced|replacement.*underpriced|could not replace|fee too low to replace/i;
const POLICY =
  /underpriced|insufficient funds|fee cap|tip cap|max fee per gas|max priority fee|txpool is full|transaction pool|gas price|exceeds block gas limit|too low/i;
/** Our own mistake: no node will ever take these bytes. */
const INVALID = /intrinsic gas|invalid sender|invalid signature|rlp|decod|chain id|typed transaction|init ?code|oversized/i;
const LACKS_FUNDS = /insufficient (funds|balance)/i;
/** The code of geth and its relatives for a call that reverts. */
const REVERTED = 3;
const SELECTORS = {
  balanceOf: '70a08231',
  isBlackListed: 'e47d6060',
  paused: '5c975abb',
  basisPointsRate: 'dd644f72',
  deprecated: '0e136b19',
} as const;
const CODE = /^0x([0-9a-f]{2})*$/i;
const WORD = /^0x[0-9a-f]{64}$/i;
/** What is offered to the proposer where the node names nothing: 1.5 gwei. */
const USUAL_TIP = 1_500_000_000n;

/** What a node has of an account's transactions, also those that no block can take yet. */
const POOL_OF = 'txpool_contentFrom';
/** An answer that takes longer is done without: with several nodes the counts asked for beside it must come in time. */
const POOL_MS = 1_000;
/** How long one that did not say it is not asked again. */
const POOL_AGAIN_MS = 600_000;
/** JSON-RPC: the method is not there. */
const NO_METHOD = -32601;

/** The highest nonce of such an answer, and one more: `pending` and `queued` name theirs as keys, in decimal. */
function countOf(answer: unknown): number {
  const { pending, queued } = asFields(answer, 'the pool');
  const nonces = [pending, queued].flatMap((one) => Object.keys(asFields(one ?? {}, 'what waits'))).map(Number);
  if (!nonces.every(Number.isSafeInteger)) throw new Malformed('a nonce of what waits is no whole number');
  return nonces.reduce((most, nonce) => Math.max(most, nonce + 1), 0);
}

const word = (address: string): string => address.slice(2).toLowerCase().padStart(64, '0');

/** @param contract the token's, lower case; null for ether @param of.finalized the highest block that the node calls final (default: as it says) @param of.steadyMs a clock that is never set */
export function createEvmSending(
  source: EvmSource,
  contract: string | null,
  {
    finalized = source.finalized,
    steadyMs = () => performance.now(),
  }: { readonly finalized?: () => Promise<BlockRef | null>; readonly steadyMs?: () => number } = {},
): EvmSending {
  const { rpc } = source;
  /** Until then the node is not asked what waits of an account behind a gap in its nonces: it has not said so, or has no such method. */
  let poolAgainMs = Number.NEGATIVE_INFINITY;

  async function called(data: string, at: string): Promise<bigint | null> {
    const answer = await orRefusal(rpc.call('eth_call', [{ to: contract, data: `0x${data}` }, at]));
    if (answer instanceof RpcRefusal) {
      if (isLimit(answer)) throw busy(rpc, answer);
      return null;
    }
    return typeof answer === 'string' && WORD.test(answer) ? BigInt(answer) : null;
  }
  /** What the token answers to a few questions in one request; null for one that it does not know. */
  async function answersTo(questions: readonly { readonly data: string }[]): Promise<readonly (bigint | null)[]> {
    const calls = questions.map(({ data }) => ({ method: 'eth_call', params: [{ to: contract, data: `0x${data}` }, 'latest'] }));
    const said = await orRefusal(rpc.batch(calls));
    if (said instanceof RpcRefusal) throw busy(rpc, said);
    return (said as readonly unknown[]).map((answer) => {
      if (answer instanceof RpcRefusal && isLimit(answer)) throw busy(rpc, answer);
      return typeof answer === 'string' && WORD.test(answer) ? BigInt(answer) : null;
    });
  }
  async function quantityOf(method: string, params: readonly unknown[]): Promise<bigint> {
    const answer = await orRefusal(rpc.call(method, params));
    if (answer instanceof RpcRefusal) throw busy(rpc, answer);
    return readAs(rpc, method, () => asQuantity(answer, method));
  }

  async function account(address: string, height: number) {
    const at = quantity(height);
    const nonce = await quantityOf('eth_getTransactionCount', [address, at]);
    const ether = await quantityOf('eth_getBalance', [address, at]);
    const units = contract === null ? ether : await called(SELECTORS.balanceOf + word(address), at);
    if (units === null) throw new NodeTrouble('bad_answer', `${rpc.name}: the token names no balance of ${address}`);
    return { nonce: Number(nonce), ether, units };
  }
  /** How many an account has sent, as what the node has in its pool says; 0 where it does not say. */
  async function queuedOf(address: string): Promise<number> {
    if (steadyMs() < poolAgainMs) return 0;
    let restsMs = POOL_AGAIN_MS;
    try {
      const asked = rpc.call(POOL_OF, [address]).then((answer) => ({ answer }));
      const said = await within(asked, POOL_MS);
      if (said !== null) return readAs(rpc, POOL_OF, () => countOf(said.answer));
    } catch (error) {
      if (!(error instanceof RpcRefusal || error instanceof NodeTrouble)) throw error;
      if (error instanceof RpcRefusal && error.code === NO_METHOD) restsMs = Number.POSITIVE_INFINITY;
    }
    poolAgainMs = steadyMs() + restsMs;
    return 0;
  }

  const hashAt = async (height: number): Promise<string | null> => (await source.header(quantity(height)))?.hash ?? null;

  return {
    async send(raw) {
      const answer = await orRefusal(rpc.call('eth_sendRawTransaction', [`0x${Buffer.from(raw).toString('hex')}`]));
      return answer instanceof RpcRefusal ? refusedAs(rpc, answer) : { state: 'accepted' };
    },
    async gasFees() {
      const [block, tip] = await rpc.batch([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        { method: 'eth_maxPriorityFeePerGas' },
      ]);
      if (block instanceof RpcRefusal) throw busy(rpc, block);
      return readAs(rpc, 'eth_getBlockByNumber', () => ({
        base: asQuantity(asFields(block, 'the block').baseFeePerGas, 'baseFeePerGas'),
        tip: tip instanceof RpcRefusal ? USUAL_TIP : asQuantity(tip, 'eth_maxPriorityFeePerGas'),
      }));
    },
    account,
    unitsOf: async (address, height) => ({ most: (await account(address, height)).units, less: null }),
    leastUnits: async (address, height) => (await account(address, height)).units,
    async sentBy(address) {
      const counts = ['latest', 'pending'].map((at) => ({ method: 'eth_getTransactionCount', params: [address, at] }));
      // asked first: what a block takes meanwhile is counted then
      const queued = await queuedOf(address);
      const answers = await orRefusal(rpc.batch(counts));
      if (answers instanceof RpcRefusal) throw busy(rpc, answers);
      const [mined, waiting] = answers as readonly unknown[];
      if (mined instanceof RpcRefusal) throw busy(rpc, mined);
      const count = (answer: unknown): number => readAs(rpc, 'eth_getTransactionCount', () => asNumber(answer, 'the count'));
      const nonce = count(mined);
      // a node that does not look at what waits says nothing of it
      const most = Math.max(nonce, queued, typeof waiting === 'string' ? count(waiting) : 0);
      const more = most > nonce ? `, and ${most} with what waits` : '';
      return { nonce, most, said: [`${rpc.name} says ${nonce}${more}`] };
    },
    heldBy: (address, block) => heldAt({ name: rpc.name, finalized, hashAt, account }, address, block),
    async etherOf(addresses, block) {
      const held = await source.held(block, addresses);
      return held === null ? null : addresses.map((address) => ({ most: held.get(address) as bigint, less: null }));
    },
    async isContract(address) {
      const code = await orRefusal(rpc.call('eth_getCode', [address, 'latest']));
      if (code instanceof RpcRefusal) throw busy(rpc, code);
      if (typeof code !== 'string' || !CODE.test(code))
        throw new NodeTrouble('bad_answer', `${rpc.name}: eth_getCode answers no code`);
      return code !== '0x';
    },
    async gasOf({ from, to, value, input, gas }) {
      const call = {
        from,
        to,
        value: `0x${value.toString(16)}`,
        data: input,
        ...(gas === undefined ? {} : { gas: quantity(gas) }),
      };
      const answer = await orRefusal(rpc.call('eth_estimateGas', [call]));
      if (!(answer instanceof RpcRefusal)) return { gas: readAs(rpc, 'eth_estimateGas', () => asNumber(answer, 'gas')) };
      if (isLimit(answer)) throw busy(rpc, answer);
      if (answer.code === REVERTED || /revert|insufficient|exceeds/i.test(answer.message))
        return { refused: answer.message, lacksFunds: LACKS_FUNDS.test(answer.message) };
      throw busy(rpc, answer);
    },
    async payeeProblem(from, to) {
      if (contract === null) return null;
      const { isBlackListed, deprecated, paused, basisPointsRate } = SELECTORS;
      const questions = [
        { data: isBlackListed + word(to), what: 'the token has blacklisted this address', isPayee: true },
        { data: deprecated, what: 'another contract has taken the place of the token', isPayee: false },
        { data: paused, what: 'the token is paused', isPayee: false },
        { data: basisPointsRate, what: 'the token takes a fee of each transfer', isPayee: false },
        ...(from === null
          ? []
          : [{ data: isBlackListed + word(from), what: `the token has blacklisted our address ${from}`, isPayee: false }]),
      ];
      const said = await answersTo(questions);
      const problem = questions.find((_, at) => (said[at] ?? 0n) !== 0n);
      return problem === undefined ? null : { what: problem.what, isPayee: problem.isPayee };
    },
    async succeeded(txids, { height, sender, rival }) {
      const calls = txids.map((txid) => ({ method: 'eth_getTransactionReceipt', params: [txid] }));
      const used = { method: 'eth_getTransactionCount', params: [sender.address, 'latest'] };
      const inPlace = rival === null ? [] : [{ method: 'eth_getTransactionByHash', params: [rival] }];
      const said = await orRefusal(rpc.batch([{ method: 'eth_blockNumber' }, used, ...calls, ...inPlace]));
      if (said instanceof RpcRefusal) throw busy(rpc, said);
      const [tip, count, ...rest] = said as readonly unknown[];
      const [receipts, shown = null] = [rest.slice(0, txids.length), rest[txids.length]];
      const refused: RpcRefusal[] = [];
      const deciding: number[] = [];
      for (const [at, answer] of receipts.entries()) {
        if (answer instanceof RpcRefusal) refused.push(answer);
        else if (answer !== null) {
          const txid = txids[at] as string;
          const paid = readAs(rpc, 'eth_getTransactionReceipt', () => {
            const isPaid = asQuantity(asFields(answer, 'the receipt').status, 'status') === 1n;
            return { txid, isPaid, ...minedOf(answer, txid) };
          });
          const { isPaid, height: minedAt, blockHash } = paid;
          if (isPaid) return { paid: { txid, height: minedAt, blockHash }, isUnused: false, isDenied: false, silent: [] };
          deciding.push(minedAt);
        }
      }
      // one receipt is enough to have paid, and it takes all of them not to have
      const [first = [tip, count, shown].find((one) => one instanceof RpcRefusal)] = refused;
      if (first instanceof RpcRefusal) throw busy(rpc, first);
      const read = readAs(rpc, 'eth_blockNumber', () => asNumber(tip, 'eth_blockNumber'));
      if (read < height) throw new NodeTrouble('syncing', `${rpc.name}: has read ${read} blocks, and ${height} are asked about`);
      const sent = readAs(rpc, 'eth_getTransactionCount', () => asNumber(count, 'eth_getTransactionCount'));
      if (sent <= sender.nonce) return { paid: null, isUnused: true, isDenied: false, silent: [] };
      deciding.push(...readAs(rpc, 'eth_getTransactionByHash', () => heightOfSent(shown, sender)));
      const final = (await finalized())?.height ?? -1;
      // no receipt says whether what carries an authorization has used its nonce
      const carriedAt = readAs(rpc, 'eth_getTransactionByHash', () => heightOfCarried(shown, sender));
      if (deciding.length === 0 && carriedAt !== null && carriedAt <= final) {
        const used = await quantityOf('eth_getTransactionCount', [sender.address, quantity(final)]);
        if (used > BigInt(sender.nonce)) deciding.push(carriedAt);
      }
      const [decidedAt] = deciding;
      const isFinal = decidedAt !== undefined && decidedAt <= final;
      // a node that has thrown old receipts away, or has not fetched them yet, does not know how it ended
      const lacks = rival === null ? 'has no receipt of what has used' : `does not show ${rival} at`;
      const says = decidedAt === undefined ? lacks : `does not call block ${decidedAt} final, which it shows to decide about`;
      return {
        paid: null,
        isUnused: false,
        isDenied: isFinal,
        silent: isFinal ? [] : [`${rpc.name}: it ${says} nonce ${sender.nonce}`],
      };
    },
    ended: (txid) => endedAt(source, { txid, contract }, finalized),
    carrierIn: (hash, signer) => carrierIn(source, hash, signer),
    signersIn: (txid) => signersIn(source, txid),
    authorized: (txid, signer) => authorizedAt(source, { txid, signer, contract }),
    async mined(txid) {
      const answer = await orRefusal(rpc.call('eth_getTransactionReceipt', [txid]));
      if (answer instanceof RpcRefusal) throw busy(rpc, answer);
      return answer === null ? null : readAs(rpc, 'eth_getTransactionReceipt', () => minedOf(answer, txid));
    },
  };
}

/** The height of the block that holds this transaction; none where none does, or an account has not sent it with this nonce. */
function heightOfSent(answer: unknown, { address, nonce }: Nonce): readonly number[] {
  if (answer === null) return [];
  const { from, nonce: used } = readTransaction(answer);
  const { blockHash, blockNumber } = asFields(answer, 'the transaction');
  const isSent = from === address.toLowerCase() && used === nonce && blockHash != null;
  return isSent ? [asNumber(blockNumber, 'blockNumber')] : [];
}

/** The same of one that carries what an account has signed with this nonce; null: it does not. */
function heightOfCarried(answer: unknown, { address, nonce }: Nonce): number | null {
  if (answer === null || !signersOf(answer, nonce).some((signer) => signer.address === address.toLowerCase())) return null;
  const { blockNumber } = asFields(answer, 'the transaction');
  return blockNumber == null ? null : asNumber(blockNumber, 'blockNumber');
}

function minedOf(answer: unknown, txid: string): MinedTransaction {
  const { transactionHash, blockHash, blockNumber } = asFields(answer, 'the receipt');
  if (asHash(transactionHash, 'transactionHash') !== txid) throw new Malformed('it is the receipt of another transaction');
  return {
    blockHash: asHash(blockHash, 'blockHash'),
    height: asNumber(blockNumber, 'blockNumber'),
  };
}

const busy = (rpc: Rpc, refusal: RpcRefusal): NodeTrouble =>
  new NodeTrouble(isLimit(refusal) ? 'busy' : 'bad_answer', `${rpc.name}: ${refusal.message}`, { cause: refusal });

/** @throws NodeTrouble where the refusal says nothing of the transaction */
function refusedAs(rpc: Rpc, refusal: RpcRefusal): SendAnswer {
  const { message } = refusal;
  const reason = `${rpc.name}: ${message}`;
  if (KNOWN.test(message)) return { state: 'accepted' };
  if (NONCE_USED.test(message)) return { state: 'inputs_missing', reason };
  if (IN_CONFLICT.test(message)) return { state: 'conflict', reason };
  if (isLimit(refusal)) throw busy(rpc, refusal);
  if (INVALID.test(message)) return { state: 'invalid', reason };
  if (POLICY.test(message)) return { state: 'policy', reason };
  throw new NodeTrouble('bad_answer', reason, { cause: refusal });
}
