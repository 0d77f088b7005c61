// Reads what our scanner cannot, from the node's decoded answers (`getblock <hash> 1`, `getrawtransaction <txid> 1`): the txids must give
// the header's Merkle root, and a decoded transaction that touches us must hash to its txid. So nothing is believed that is not proven.
import type { BlockFacts, Outpoint, TransactionFacts } from '../../../core/ports.ts';
import { checkHeader, type KnownBlock, readBlockBytes, Unreadable } from '../block.ts';
import { compactSize, foldMerkle, Malformed } from '../bytes.ts';
import { type Features, readTransactionBytes, type Watched } from '../transaction.ts';
import { FEW_BYTES, fromHex, orRefusal, type Rpc } from './rpc.ts';
import { plainText, RpcRefusal } from './trouble.ts';

/** How many times as large as its bytes a decoded transaction is at most: an opcode is a byte, and up to thirty letters. */
const DECODED_SIZE = 64;
/** The list of a block's transactions: 67 letters for each, which is at least ten bytes. */
const LISTED_SIZE = 7;

export type Asked = { readonly rpc: Rpc; readonly features: Features; readonly watch: Watched };

/**
 * A block in which some transactions (or the bytes before them) cannot be read: these are skipped by their length, and read from the node's
 * decoded answer.
 * @throws Malformed when the decoded answer does not match the block either
 */
export async function readDecodedBlock(
  { rpc, features, watch }: Asked,
  block: { readonly hash: string; readonly bytes: Buffer; readonly listed: 1 | true },
): Promise<BlockFacts> {
  const { hash, bytes } = block;
  checkHeader(bytes, hash, features);
  const txids = provenTxids(await rpc.call('getblock', [hash, block.listed], FEW_BYTES + bytes.length * LISTED_SIZE), bytes);
  const decoded = new Map<string, { raw: Buffer; facts: TransactionFacts | null }>();
  const known: KnownBlock = { txids, decoded };
  for (;;) {
    try {
      return readBlockBytes(bytes, hash, features, watch, known);
    } catch (error) {
      const txid = error instanceof Unreadable ? txids[error.index] : undefined;
      if (txid === undefined || decoded.has(txid)) throw error;
      const raw = fromHex(await askFor(rpc, txid, { hash, verbose: false, most: FEW_BYTES + bytes.length * 2 }));
      if (raw === null) throw new Malformed(`the node does not give the bytes of transaction ${txid}`);
      const most = FEW_BYTES + raw.length * DECODED_SIZE;
      const facts = factsOfDecoded(await askFor(rpc, txid, { hash, verbose: true, most }), txid, features, watch);
      decoded.set(txid, { raw, facts });
    }
  }
}

/**
 * A transaction of the mempool from the node's decoded answer; null when it touches nothing watched.
 * @param size of its bytes
 * @throws Malformed
 */
export async function readDecodedTransaction(
  { rpc, features, watch }: Asked,
  txid: string,
  size: number,
): Promise<TransactionFacts | null> {
  const answer = await orRefusal(rpc.call('getrawtransaction', [txid, 1], FEW_BYTES + size * DECODED_SIZE));
  return factsOfDecoded(answer, txid, features, watch);
}

/** With the block it is in, so that the node needs no index; a node that does not accept that third parameter is asked without it. */
async function askFor(
  rpc: Rpc,
  txid: string,
  { hash, verbose, most }: { readonly hash: string; readonly verbose: boolean; readonly most: number },
): Promise<unknown> {
  const answer = await orRefusal(rpc.call('getrawtransaction', [txid, verbose, hash], most));
  return answer instanceof RpcRefusal ? orRefusal(rpc.call('getrawtransaction', [txid, verbose ? 1 : 0], most)) : answer;
}

function provenTxids(answer: unknown, bytes: Buffer): readonly string[] {
  const listed = (answer as { tx?: unknown } | null)?.tx;
  if (!Array.isArray(listed) || listed.length === 0 || !listed.every((txid) => typeof txid === 'string' && TXID.test(txid)))
    throw new Malformed('the node does not list the transactions of the block');
  const leaves = Buffer.concat(listed.map((txid) => Buffer.from(txid as string, 'hex').reverse()));
  foldMerkle(leaves, listed.length);
  if (leaves.compare(bytes, 36, 68, 0, 32) !== 0)
    throw new Malformed('the transactions that the node lists do not fit the Merkle root');
  return listed as string[];
}

const TXID = /^[0-9a-f]{64}$/;

type Input = { readonly outpoint: Outpoint; readonly script: Buffer; readonly sequence: number };
type Output = { readonly minor: bigint; readonly script: Buffer };

/**
 * What a decoded transaction touches. One that touches nothing watched need not be proven.
 * @param answer `getrawtransaction <txid> 1`
 */
function factsOfDecoded(answer: unknown, txid: string, features: Features, watch: Watched): TransactionFacts | null {
  if (answer instanceof RpcRefusal) throw new Malformed(`the node does not give transaction ${txid}: ${answer.message}`);
  const transaction = (answer ?? {}) as Record<string, unknown>;
  if (transaction.txid !== txid || !Array.isArray(transaction.vin) || !Array.isArray(transaction.vout))
    throw new Malformed(`the node gives another transaction than ${txid}`);
  // entries of Litecoin's extension among them have neither a script nor an outpoint
  const inputs = transaction.vin.map(inputOf).filter((one) => one !== null);
  const outputs = transaction.vout.map(outputOf).filter((one) => one !== null);
  if (!inputs.some((one) => watch.hasOutpoint(outpointBytes(one), 0)) && !outputs.some(({ script }) => isWatched(watch, script)))
    return null;
  return readTransactionBytes(plainBytes(transaction, inputs, outputs), txid, { ...features, segwit: false, mweb: false }, watch);
}

/** The bytes that the txid is the hash of: without witnesses, with the payload of a special transaction. */
function plainBytes(transaction: Record<string, unknown>, inputs: readonly Input[], outputs: readonly Output[]): Buffer {
  const version = wholeOf(transaction.version) + wholeOf(transaction.type ?? 0) * 0x1_0000;
  const payload = fromHex(transaction.extraPayload);
  return Buffer.concat([
    u32(version),
    compactSize(inputs.length),
    ...inputs.flatMap((one) => [outpointBytes(one), compactSize(one.script.length), one.script, u32(one.sequence)]),
    compactSize(outputs.length),
    ...outputs.flatMap((one) => [u64(one.minor), compactSize(one.script.length), one.script]),
    u32(wholeOf(transaction.locktime)),
    ...(payload === null ? [] : [compactSize(payload.length), payload]),
  ]);
}

function inputOf(input: unknown): Input | null {
  const { txid, vout, scriptSig, sequence, coinbase } = (input ?? {}) as Record<string, unknown>;
  if (typeof coinbase === 'string')
    return { outpoint: { txid: '00'.repeat(32), vout: 0xffffffff }, script: bytesOf(coinbase), sequence: wholeOf(sequence) };
  if (typeof txid !== 'string' || !TXID.test(txid)) return null;
  const script = (scriptSig as { hex?: unknown } | undefined)?.hex;
  return { outpoint: { txid, vout: wholeOf(vout) }, script: bytesOf(script ?? ''), sequence: wholeOf(sequence) };
}

function outputOf(output: unknown): Output | null {
  const { value, scriptPubKey } = (output ?? {}) as Record<string, unknown>;
  const script = (scriptPubKey as { hex?: unknown } | undefined)?.hex;
  return typeof script !== 'string' ? null : { minor: minorOf(value), script: bytesOf(script) };
}

/** An amount as the node writes it, in whole units with up to eight decimals; a JSON number where it is whole. */
function minorOf(value: unknown): bigint {
  const parts = /^(-?)(\d{1,19})(?:\.(\d{1,8}))?$/.exec(plainText(value, 30));
  if (parts === null) throw new Malformed(`the node gives an amount of ${plainText(value, 30)}`);
  const [, sign, whole, part = ''] = parts;
  return BigInt(`${sign}${whole}${part.padEnd(8, '0')}`);
}

function wholeOf(value: unknown): number {
  if (typeof value !== 'number') throw new Malformed(`the node gives ${plainText(value, 30)} instead of a number`);
  return value;
}

function bytesOf(hex: unknown): Buffer {
  if (hex === '') return Buffer.alloc(0);
  const bytes = fromHex(hex);
  if (bytes === null) throw new Malformed('the node gives a script that is no hex');
  return bytes;
}

function isWatched(watch: Watched, script: Buffer): boolean {
  return script.length > 0 && watch.hasScript(script, 0, script.length);
}

function outpointBytes({ outpoint }: Input): Buffer {
  return Buffer.concat([Buffer.from(outpoint.txid, 'hex').reverse(), u32(outpoint.vout)]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  return bytes;
}
