// A node that keeps no old states knows only for a while what contracts have sent in a block: what it has shown then counts beside what another says
// that was away.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { readsBalances } from './altered-anvil.ts';
import { type Watching, watchBySeveral } from './several-nodes.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const LATER_MS = 61_000;
type Json = Record<string, unknown>;
let anvil: Anvil;
let pruned: Awaited<ReturnType<typeof openAlteredNode>>;
let archive: typeof pruned;
let chain: WatchedChain;
let watching: Watching;
let skew = 0;

beforeAll(async () => {
  anvil = await startAnvil();
}, TIMEOUT);
afterAll(() => anvil?.remove());
beforeEach(async () => {
  [pruned, archive] = [await openAlteredNode(anvil.url), await openAlteredNode(anvil.url)];
  pruned.alter(WITHOUT_TRACES);
  chain = await watchChain('ETH', anvil.url);
  started(pruned, archive);
  await caughtUp();
}, TIMEOUT);
afterEach(async () => {
  await watching.stop();
  await chain.close();
  pruned.close();
  archive.close();
}, TIMEOUT);

/** A worker that starts with these nodes. */
function started(...nodes: readonly { readonly url: string }[]): void {
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  watching = watchBySeveral(
    chain,
    nodes.map(({ url }) => url),
    { clock, patienceMs: 2_000 },
  );
}
async function caughtUp(laterMs = 0): Promise<void> {
  skew += laterMs;
  for (let result = await watching.watcher.pass(); !result.caughtUp; ) result = await watching.watcher.pass();
}
const unconfirmed = async (): Promise<readonly boolean[]> =>
  (await chain.db.query<{ denied: boolean }>({ text: 'select denied from unconfirmed_blocks order by height' })).rows.map(
    ({ denied }) => denied,
  );
const amounts = async (owed: Owed): Promise<readonly bigint[]> =>
  (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);

const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};
/** A node that shows no traces, and no longer the balances after an older block. */
const SEES_NOTHING_INSIDE: Alteration = {
  instead: (asked) =>
    readsBalances(asked)
      ? { error: { code: -32602, message: 'missing value for required argument "to"' } }
      : (WITHOUT_TRACES.instead?.(asked) ?? null),
};
/** A node that shows another amount of ether in calls to an address. */
const sending = (address: string, wei: string): Alteration => ({
  afterwards({ method }, answer) {
    if (!method.startsWith('debug_trace')) return answer;
    const paid = (one: Json): Json => (one.to === address ? { ...one, value: wei } : one);
    const all = (one: Json): Json => {
      const { calls, ...rest } = one as { calls?: readonly Json[] };
      return paid({ ...rest, ...(calls === undefined ? {} : { calls: calls.map(all) }) });
    };
    return { ...answer, result: (answer.result as readonly Json[]).map((one) => ({ ...one, result: all(one.result as Json) })) };
  },
});

/** A contract pays while the archive is away; when it is back, the other node does not see that block's inside any more. */
async function paidWhileAway(owed: Owed, isAnotherBranch = false): Promise<void> {
  if (isAnotherBranch) {
    const before = await anvil.rpc<string>('evm_snapshot');
    await anvil.mine();
    await caughtUp();
    await anvil.rpc('evm_revert', before);
  }
  archive.alter(SAYS_NOTHING);
  await anvil.send({ to: anvil.forwarder, value: 8n, input: callData(FORWARDER, 'halves(address)', addressOf(owed)) });
  await anvil.send({ to: addressOf(owed), value: 5n });
  await anvil.mine();
  await caughtUp();
  expect(await unconfirmed()).toEqual([false]);
  await anvil.mine(20);
  await caughtUp();
  pruned.alter(SEES_NOTHING_INSIDE);
}

test.each([
  ['the node that showed it', ''],
  ['the other one', ''],
  ['the node that showed it', ', and its block replaced another'],
])(
  'two that have shown it, each at its time, confirm it: %s is read%s',
  {
    timeout: TIMEOUT,
  },
  async (which, after) => {
    const owed = await chain.owe();
    await paidWhileAway(owed, after !== '');
    const before = await chain.facts(owed);
    expect(new Set(before.map(({ amount }) => amount))).toEqual(new Set([5n, 8n]));
    archive.alter({});
    await watching.stop();
    started(...(which === 'the other one' ? [archive, pruned] : [pruned, archive]));
    for (let look = 0; look < 2; look++) await caughtUp(LATER_MS);
    expect([await chain.facts(owed), await unconfirmed()]).toEqual([before, []]);
  },
);

test.each(['read', 'not read'])(
  'what one has shown and the other shows otherwise is one’s word: the other is %s',
  {
    timeout: TIMEOUT,
  },
  async (which) => {
    const owed = await chain.owe();
    await paidWhileAway(owed);
    archive.alter(sending(addressOf(owed), '0x9'));
    await watching.stop();
    started(...(which === 'read' ? [archive, pruned] : [pruned, archive]));
    for (let look = 0; look < 2; look++) await caughtUp(LATER_MS);
    expect([(await unconfirmed()).includes(false), new Set(await amounts(owed))]).toEqual([true, new Set([5n, 8n])]);
  },
);
