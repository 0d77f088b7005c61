// A payment by a contract that was seen while it waited, at a node that shows no traces: its block names it by balances, and it replaces what was
// promised, so that it is as much on time.
import { expect, test } from 'vitest';
import { rawOf } from '../support/evm/anvil.ts';
import { WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { anvil, call, chain, ETHER, eachAtAnvilWithoutTraces, mined, openAlteredService } from './altered-anvil.ts';
import type { Owed } from './watched-chain.ts';

eachAtAnvilWithoutTraces();
const tip = () => anvil.rpc<{ hash: string }>('eth_getBlockByNumber', 'latest', false);
const waits = async (owed: Owed) => {
  const sent = await call('halves(address)', owed);
  await chain.catchUp();
  const half = { txid: sent.hash, amount: ETHER / 2n, state: 'mempool' };
  expect(await chain.facts(owed)).toMatchObject([half, half]);
  return sent;
};
const places = async (owed: Owed) => (await chain.facts(owed)).map(({ txid, amount, state }) => ({ txid, amount, state }));
const promise = (txid: string) => ({ txid, amount: ETHER / 2n, state: 'conflicted' });
const replacing = async (owed: Owed): Promise<readonly string[]> =>
  (
    await chain.db.query<{ by: string }>({
      text: `select distinct conflict_txid as by from payments where transaction_id = $1 and conflict_txid is not null`,
      values: [owed.id],
    })
  ).rows.map(({ by }) => by);

test('it is there once in its block, which replaces what was promised', async () => {
  const owed = await chain.owe();
  const sent = await waits(owed);
  await anvil.mine();
  const { hash } = await tip();
  await chain.catchUp();
  await chain.catchUp();
  const paid = { txid: hash, amount: ETHER, state: 'mined' };
  expect(await places(owed)).toEqual(expect.arrayContaining([promise(sent.hash), promise(sent.hash), paid]));
  expect(await places(owed)).toHaveLength(3);
  expect(await replacing(owed)).toEqual([hash]);
});

test('two of them in one block are one sum', async () => {
  const owed = await chain.owe();
  for (const wei of [4n, 6n]) await call('halves(address)', owed, wei);
  await chain.catchUp();
  expect((await places(owed)).map(({ state }) => state)).toEqual(Array(4).fill('mempool'));
  await anvil.mine();
  const { hash } = await tip();
  await chain.catchUp();
  expect((await places(owed)).map(({ state }) => state).sort()).toEqual([...Array(4).fill('conflicted'), 'mined']);
  expect(await mined(owed)).toEqual([10n]);
  expect(await replacing(owed)).toEqual([hash]);
});

test('another sum in its block keeps no promise', async () => {
  const owed = await chain.owe();
  const sent = await waits(owed);
  await call('destroy(address)', owed, 2n);
  await anvil.mine();
  await chain.catchUp();
  expect(await mined(owed)).toEqual([ETHER + 2n]);
  expect(await replacing(owed)).toEqual([sent.hash]);
});

test('the same sum in a block without it keeps none', async () => {
  const owed = await chain.owe();
  const sent = await waits(owed);
  await anvil.rpc('anvil_dropTransaction', sent.hash);
  await call('delegated(address)', owed);
  await anvil.mine();
  await chain.catchUp();
  expect(await mined(owed)).toEqual([ETHER]);
  expect(await replacing(owed)).not.toContain((await tip()).hash);
});

test('moved to another block it is there once still', async () => {
  const owed = await chain.owe();
  const sent = await waits(owed);
  await anvil.mine(2);
  await chain.catchUp();
  await anvil.rpc('anvil_reorg', 2, [[rawOf(sent), 1]]);
  await anvil.mine();
  await chain.catchUp();
  await chain.catchUp();
  expect(await mined(owed)).toEqual([ETHER]);
  expect((await places(owed)).map(({ state }) => state).sort()).toEqual(['conflicted', 'conflicted', 'mined']);
});

test('it is on time though its block comes after the window, and nothing is found wrong', { timeout: 300_000 }, async () => {
  const altered = await openAlteredService(WITHOUT_TRACES);
  try {
    const { service } = altered;
    const owed = await service.owe('ETH', 300_00n);
    await altered.pay(owed.address, ETHER / 10n);
    await service.settle();
    expect(await service.status(owed.id)).toBe('pending');
    await service.anvil.rpc('evm_increaseTime', 3 * 3_600);
    await service.work(3 * 3_600_000);
    await service.mine();
    const found = await service.db.query<{ state: string; on_time: string }>({
      text: 'select state, on_time_minor as on_time from payments where transaction_id = $1 order by id',
      values: [owed.id],
    });
    expect(found.rows.map(({ state, on_time }) => [state, BigInt(on_time)])).toEqual([
      ['conflicted', ETHER / 20n],
      ['conflicted', ETHER / 20n],
      ['mined', ETHER / 10n],
    ]);
    await service.mine(70);
    expect(await service.status(owed.id)).toBe('succeeded');
    expect(await service.findings()).toEqual([]);
  } finally {
    await altered.close();
  }
});
