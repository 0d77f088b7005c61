// Ether that contracts sent at a node that shows no calls, where nobody looked for it in its block: it is told, found by a rescan where the node has
// the state of then, and where it has not, nothing is called missing for that.
import { expect, test } from 'vitest';
import { compareBalances } from '../../src/worker/rescan/address-balances.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { anvil, call, chain, eachAtAnvilWithoutTraces, mined, readsBalances, relay } from './altered-anvil.ts';

const NO_STATE = { error: { code: -32000, message: 'missing trie node 0bc3 (path ) state 0x63aa is not available' } };
eachAtAnvilWithoutTraces();

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
  relay.alter({ instead: (one) => (readsBalances(one) ? NO_STATE : (WITHOUT_TRACES.instead?.(one) ?? null)) });
  const { trouble, unread } = await reconcile(chain.ctx, 'ETH');
  expect([trouble, unread]).toEqual([expect.stringContaining('missing trie node'), false]);
  const { rows } = await chain.db.query<{ trouble: string | null }>({ text: 'select trouble from chain_reconciled' });
  expect(rows).toEqual([{ trouble: null }]);
});
