// The consensus client of a geth (Engine API): it has blocks made and taken when a test asks for them, with the fees, withdrawals and finality that
// the test wants.
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '../json-rpc.ts';

const ZERO_HASH = `0x${'0'.repeat(64)}`;
const NOBODY = `0x${'57'.repeat(20)}`;
/** As on mainnet. */
const FINALIZED_BEHIND = 64;
/** How long it is given to put what waits into a block. */
const FILL_MS = 5;
const word = (value: bigint): string => value.toString(16).padStart(64, '0');

type Payload = { readonly blockHash: string; readonly timestamp: string; readonly transactions: readonly string[] };
type Withdrawal = { readonly address: string; readonly gwei: bigint };
type NewBlock = { readonly feeRecipient?: string; readonly withdrawals?: readonly Withdrawal[] };

type Block = { readonly hash: string; readonly timeSeconds: number };

/** Has the node make blocks on its tip, with what its pool holds, and take them. */
export async function createProposer(rpc: Call, consensus: Call) {
  const { hash } = await rpc<{ hash: string }>('eth_getBlockByNumber', '0x0', false);
  /** By height. */
  const chain: Block[] = [{ hash, timeSeconds: 1 }];
  let made = 0;
  const waiting = async (): Promise<number> => Number((await rpc<{ readonly pending: string }>('txpool_status')).pending);

  async function built(block: NewBlock, patienceMs: number) {
    const { hash: head, timeSeconds } = chain.at(-1) as Block;
    const attributes = {
      timestamp: quantity(Math.max(timeSeconds + 1, Math.floor(Date.now() / 1000))),
      // no two blocks are alike
      prevRandao: `0x${word(BigInt(made++))}`,
      suggestedFeeRecipient: block.feeRecipient ?? NOBODY,
      withdrawals: (block.withdrawals ?? []).map(({ address, gwei }, n) => ({
        ...{ index: quantity(n), validatorIndex: '0x1', address, amount: `0x${gwei.toString(16)}` },
      })),
      parentBeaconBlockRoot: ZERO_HASH,
    };
    const { payloadId } = await consensus<{ payloadId: string }>('engine_forkchoiceUpdatedV3', choice(head), attributes);
    await delay(patienceMs);
    return consensus<{ executionPayload: Payload; executionRequests: unknown }>('engine_getPayloadV4', payloadId);
  }
  function choice(headBlockHash: string): object {
    const final = chain[chain.length - 1 - FINALIZED_BEHIND]?.hash ?? ZERO_HASH;
    return { headBlockHash, safeBlockHash: final, finalizedBlockHash: final };
  }

  return {
    height: () => chain.length - 1,
    async propose(block: NewBlock = {}): Promise<void> {
      const pending = await waiting();
      let next = await built(block, pending === 0 ? 0 : FILL_MS);
      // it fills a block while it is not asked for it
      for (let ms = FILL_MS * 2; ms < 1_000 && next.executionPayload.transactions.length < pending; ms *= 2)
        next = await built(block, ms);
      const { executionPayload, executionRequests } = next;
      const { blockHash, timestamp, transactions } = executionPayload;
      const added = await consensus<{ status: string }>(
        'engine_newPayloadV4',
        executionPayload,
        [],
        ZERO_HASH,
        executionRequests,
      );
      if (added.status !== 'VALID') throw new Error(`geth does not take its own block: ${JSON.stringify(added)}`);
      chain.push({ hash: blockHash, timeSeconds: Number(timestamp) });
      await consensus('engine_forkchoiceUpdatedV3', choice(blockHash), null);
      // what is mined leaves the pool a little later
      const left = pending - transactions.length;
      for (let n = 0; n < 100 && transactions.length > 0 && (await waiting()) > left; n++) await delay(5);
    },
    async rewind(depth: number): Promise<void> {
      chain.length -= depth;
      await rpc('debug_setHead', quantity(chain.length - 1));
    },
  };
}

const quantity = (number: number): string => `0x${number.toString(16)}`;
