// Ether that contracts sent at a node that shows no calls, where nobody looked for it in its block: it is told, found by a rescan where the node has
// the state of then, and where it has not, nothing is called missing for that.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { compareBalances } from '../../src/worker/rescan/address-balances.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const ETHER = 10n ** 18n;
const NO_STATE = { error: { code: -32000, message: 'missing trie node 0bc3 (path ) state 0x63aa is not available' } };
const addressOf = ({ script }: Owed): string => `0x${script.subarray(3).toString('hex')}`;

let anvil: Anvil;
let relay: Awaited<ReturnType<typeof openAlteredNode>>;
let chain: WatchedChain;
beforeAll(async () => {
  anvil = await startAnvil();
  relay = await openAlteredNode(anvil.url);
}, 120_000);
afterAll(async () => {
  relay?.close();
  await anvil?.remove();
});
beforeEach(async () => {
  relay.alter(WITHOUT_TRACES);
  chain = await watchChain('ETH', relay.url);
  await chain.catchUp();
});
afterEach(() => chain?.close());

const call = (name: string, owed: Owed, value = ETHER) =>
  anvil.send({ to: anvil.forwarder, value, input: callData(FORWARDER, name, addressOf(owed)) });
const mined = async (owed: Owed): Promise<readonly bigint[]> =>
  (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);

test('at an address that is not watched any more is found by a rescan, and told before that', async () => {
  const [old, other] = [await chain.owe({ ageDays: 40 }), await chain.owe()];
  const { height } = (await chain.cursor()) ?? { height: 0 };
  await call('halves(address)', old, 7n);
  await call('halves(address)', other, 8n);
  await anvil.mine(70);
  await chain.catchUp();
  expect([await mined(old), await mined(other)]).toEqual([[], [8n]]);
  while ((await reconcile(chain.ctx, 'ETH')).more);
  expect(await compareBalances(chain.ctx, ['ETH'])).toBe(null);
  const told = await chain.db.query({ text: 'select script, known, found from address_balances where known <> found' });
  expect(told.rows).toEqual([{ script: old.script, known: '0', found: '7' }]);
  const { found, unseen } = await rescan(chain.ctx, 'ETH', { fromHeight: height });
  expect([found.map(({ transactionId }) => transactionId), unseen]).toEqual([[old.id], 0]);
  expect([await mined(old), await mined(other)]).toEqual([[7n], [8n]]);
  expect((await rescan(chain.ctx, 'ETH', { fromHeight: height })).found).toEqual([]);
});

test('in a block of which the node has no state stops the second reading for a while, and is no finding of it', async () => {
  const owed = await chain.owe();
  await call('halves(address)', owed);
  await anvil.mine(70);
  await chain.catchUp();
  const isCode = ({ method, params }: { readonly method: string; readonly params: readonly unknown[] }) =>
    method === 'eth_call' && (params[0] as { to?: string }).to === undefined;
  relay.alter({ instead: (one) => (isCode(one) ? NO_STATE : (WITHOUT_TRACES.instead?.(one) ?? null)) });
  const { trouble, unread } = await reconcile(chain.ctx, 'ETH');
  expect([trouble, unread]).toEqual([expect.stringContaining('missing trie node'), false]);
  const { rows } = await chain.db.query<{ trouble: string | null }>({ text: 'select trouble from chain_reconciled' });
  expect(rows).toEqual([{ trouble: null }]);
});
