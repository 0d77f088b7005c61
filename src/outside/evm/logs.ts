// Which blocks of a range bring a token to some addresses, by eth_getLogs. Every provider limits the range in a way of its own and says so in
// words of its own: the range adapts to what is answered.
import { EVM_SCRIPT } from '../../core/currencies/evm.ts';
import { orRefusal } from '../utxo/node/rpc.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';
import { asFields, asHash, asList } from './answers.ts';
import { type EvmSource, quantity } from './source.ts';

export type Wanted = {
  readonly contract: string;
  readonly scripts: readonly Uint8Array[];
  readonly fromHeight: number;
  readonly toHeight: number;
};

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const FIRST_BLOCKS = 1_000;
const MOST_BLOCKS = 10_000;
/** Nodes refuse filters with more. */
const MOST_ADDRESSES = 1_000;
/** An answer that is cut off here was too much: it is asked for in parts. */
const MOST_BYTES = 32 * 1024 * 1024;

/** The hashes of those blocks, each once. @throws NodeTrouble when not even one block's events can be had */
export async function blocksWithTransfers(source: EvmSource, wanted: Wanted): Promise<readonly string[]> {
  const payees = wanted.scripts
    .filter((script) => script.length === EVM_SCRIPT.bytes)
    .map((script) => `0x${Buffer.from(script).subarray(3).toString('hex').padStart(64, '0')}`);
  const found = new Set<string>();
  for (let at = 0; at < payees.length; at += MOST_ADDRESSES)
    for await (const hash of searched(source, wanted, payees.slice(at, at + MOST_ADDRESSES))) found.add(hash);
  return [...found];
}

async function* searched(
  { rpc }: EvmSource,
  { contract, fromHeight, toHeight }: Wanted,
  payees: readonly string[],
): AsyncGenerator<string> {
  let width = FIRST_BLOCKS;
  for (let from = fromHeight; from <= toHeight; ) {
    const to = Math.min(toHeight, from + width - 1);
    const filter = { fromBlock: quantity(from), toBlock: quantity(to), address: contract, topics: [TRANSFER, null, payees] };
    const answer = await orTooMuch(orRefusal(rpc.call('eth_getLogs', [filter], MOST_BYTES)));
    if (answer instanceof Error) {
      if (to === from) throw new NodeTrouble('bad_answer', `${rpc.name}: ${answer.message}`, { cause: answer });
      width = narrower(answer.message, to - from + 1, from);
      continue;
    }
    for (const log of asList(answer, 'the list of logs')) yield asHash(asFields(log, 'a log').blockHash, 'blockHash');
    from = to + 1;
    width = Math.min(MOST_BLOCKS, width * 2);
  }
}

/** A refusal, or an answer too large to hold, as a value. */
async function orTooMuch(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof NodeTrouble && error.state === 'bad_answer') return error;
    throw error;
  }
}

/** The range that a refusal suggests, where it suggests a smaller one from the same block ("retry with the range 10-20"); else half of it. */
function narrower(message: string, width: number, from: number): number {
  const suggested = /range \[?(0x[0-9a-f]+|\d+)\s*[-,]\s*(0x[0-9a-f]+|\d+)/i.exec(message);
  if (suggested !== null && Number(suggested[1]) === from) {
    const offered = Number(suggested[2]) - from + 1;
    if (offered >= 1 && offered < width) return offered;
  }
  const most = /(?:max(?:imum)?(?: is| block range)?|up to|limited to)\D{0,20}(\d+)(k?) ?(?:blocks?|$)/i.exec(message);
  const named = most === null ? 0 : Number(most[1]) * (most[2] === '' ? 1 : 1_000);
  return named >= 1 && named < width ? named : Math.max(1, width >> 1);
}
