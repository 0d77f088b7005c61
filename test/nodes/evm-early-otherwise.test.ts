// What was at an address on Ethereum's chain before its transaction was made may be another amount once a reorganisation has put it into another block.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { type Anvil, rawOf, startAnvil } from '../support/evm/anvil.ts';
import { BY_BLOCK_NUMBER } from './evm-steps.ts';
import { addressOf, freshAddress, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const VALUE = 10n ** 16n;
let anvil: Anvil;
let chain: WatchedChain;

beforeAll(async () => {
  anvil = await startAnvil();
  chain = await watchChain('ETH', anvil.url);
}, TIMEOUT);
afterAll(async () => {
  await chain?.close();
  await anvil?.remove();
}, TIMEOUT);

const tip = async (): Promise<number> => Number(await anvil.rpc<string>('eth_blockNumber'));
async function isRead(): Promise<void> {
  await chain.catchUp();
  await deepScan(chain.ctx, 'ETH');
}
/** What of it is recorded to be in a block, at its places. */
const noted = async () => (await chain.db.query({ text: 'select vout, amount, height from early_payments order by vout' })).rows;

test('it is recorded as its present block shows it', { timeout: TIMEOUT }, async () => {
  const contract = await anvil.deploy({ bytecode: BY_BLOCK_NUMBER, selectors: {} });
  if ((await tip()) % 2 === 0) await anvil.mine();
  await chain.catchUp();
  const { script } = freshAddress('ETH');
  const to = Buffer.from(script).subarray(3).toString('hex').padStart(64, '0');
  const paid = await anvil.send({ to: contract, value: VALUE, input: `0x${to}${to}` });
  await anvil.mine();
  const height = await tip();
  await chain.catchUp();
  const owed = await chain.owe({ script: Buffer.from(script) });
  await isRead();
  expect([await noted(), addressOf(owed)]).toEqual([
    [
      { vout: 1, amount: String(VALUE - 1n), height },
      { vout: 2, amount: '1', height },
    ],
    `0x${to.slice(-40)}`,
  ]);
  await anvil.rpc('anvil_reorg', 1, []);
  await anvil.rpc('eth_sendRawTransaction', rawOf(paid));
  await anvil.mine(3);
  await isRead();
  expect(await noted()).toEqual([
    { vout: 1, amount: '1', height: height + 1 },
    { vout: 2, amount: '2', height: height + 1 },
  ]);
});
