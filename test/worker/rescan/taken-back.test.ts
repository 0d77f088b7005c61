// What a rescan takes back of a block on Ethereum's chain: which answers of nodes are enough for it. On a real database; what nodes say is given to it.
import { describe, expect, test } from 'vitest';
import type { EvmCode } from '../../../src/core/currency.ts';
import type { BlockFacts } from '../../../src/core/ports.ts';
import { insertUnconfirmed, readUnconfirmed } from '../../../src/store/chain/unconfirmed-blocks.ts';
import { takeBackUnshown } from '../../../src/worker/rescan/taken-back.ts';
import {
  AT_MS,
  at,
  BLOCKS,
  blockForEach,
  inBlocks,
  nowhere,
  own,
  pays,
  ports,
  records,
  secondReading,
} from './rescanned-block.ts';

blockForEach();

describe('what is recorded of a block', () => {
  const takesBack = (code: EvmCode) => takeBackUnshown(at.ctx, ports[code], at.block);

  test('and that no node shows is taken back, and the second reading reads it again', async () => {
    const gone = pays([await own(), 7n]);
    await records('USDT', gone);
    const one = { unconfirmed: { state: 'silent', reason: 'no answer', scripts: [gone.outputs[0]?.script as string] } } as const;
    await insertUnconfirmed(at.ctx.db, 'USDT', at.block, one, AT_MS);
    expect(await takesBack('USDT')).toEqual([{ outpoint: `${gone.txid}:0`, height: at.block.height, amount: 7n, reason: null }]);
    expect([await inBlocks(), await nowhere(), await secondReading()]).toEqual([[], [7], at.block.height - 1]);
    // nobody waits for a word about what is gone
    expect(await readUnconfirmed(at.ctx.db, 'USDT', { after: -1, limit: 10 })).toEqual([]);
  });

  test('and that they show stays, beside what they do not', async () => {
    const [stays, gone] = [pays([await own(), 5n]), pays([await own(), 7n])];
    await records('USDT', stays, gone);
    at.read = { touched: [stays] };
    expect(await takesBack('USDT')).toMatchObject([{ amount: 7n, reason: null }]);
    expect([await inBlocks(), await nowhere()]).toEqual([[5], [7]]);
  });

  test('and that they show all of stays as it was read', async () => {
    const stays = pays([await own(), 5n]);
    await records('USDT', stays);
    at.read = { touched: [stays] };
    expect(await takesBack('USDT')).toEqual([]);
    expect([await inBlocks(), await secondReading()]).toEqual([[5], BLOCKS]);
  });

  test('of several nodes is what all of them show together', async () => {
    const stays = pays([await own(), 5n]);
    await records('USDT', stays);
    at.together = { touched: [stays] };
    expect([await takesBack('USDT'), at.asked]).toEqual([[], 0]);
    at.together = { unconfirmed: { state: 'silent', reason: 'the others are silent', scripts: [] } };
    expect(await takesBack('USDT')).toMatchObject([{ amount: 5n, reason: 'the others are silent' }]);
    expect([await inBlocks(), await secondReading()]).toEqual([[5], BLOCKS]);
  });

  test.each<[string, Partial<BlockFacts>, RegExp | null]>([
    ['is taken back where two nodes have seen that', { innerSeenBy: 2 }, null],
    ['is taken back where there is one node', {}, null],
    ['is taken back where balances show it', { inner: 'by_balance' }, null],
    ['stays where the node sees none', { inner: 'unseen' }, /^the node that is read shows neither calls nor balances/],
    ['stays where one node alone sees it', { innerSeenBy: 1 }, /^all nodes but one show neither calls nor balances/],
  ])('beside ether that a contract has sent there %s', async (_what, facts, why) => {
    const [inside, outside] = [await own(), await own()];
    await records('ETH', pays([inside, 5n]), pays([inside, 3n, 4]), pays([outside, 7n]));
    at.read = facts;
    const reasons = new Map((await takesBack('ETH')).map(({ amount, reason }) => [amount, reason]));
    expect(reasons.get(7n)).toBeNull();
    if (why === null) expect(reasons.get(5n)).toBeNull();
    else expect(reasons.get(5n)).toMatch(why);
    expect(await inBlocks()).toEqual(why === null ? [] : [3, 5]);
  });

  test('of a token has no ether inside', async () => {
    await records('USDT', pays([await own(), 5n, 4]));
    at.read = { inner: 'unseen' };
    expect(await takesBack('USDT')).toMatchObject([{ amount: 5n, reason: null }]);
  });
});
