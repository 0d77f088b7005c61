// What waits of an address at a node counts as sent, also behind a gap in its nonces: where database and signer, put back together, have forgotten it,
// its payout is not signed for the next nonce, and paid twice.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createEvmSending } from '../../src/outside/evm/paying.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { createServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { addressOf, secretOf, signTransaction } from '../../src/sandbox/evm/transaction.ts';
import { callDaemon } from '../support/daemon-rpc.ts';
import { rawOf, startAnvil } from '../support/evm/anvil.ts';
import { startGeth } from '../support/evm/geth.ts';
import type { Call } from '../support/json-rpc.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';

const TIMEOUT = 120_000;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const SECRET = secretOf('somebody with ether');
const FROM = addressOf(SECRET);

/** A node at which somebody has ether and has sent nothing. */
type Node = { readonly url: string; readonly rpc: Call; remove(): Promise<unknown> };
async function geth(): Promise<Node> {
  const node = await startGeth();
  await node.send({ to: FROM, value: ETHER });
  await node.mine();
  return node;
}
async function anvil(): Promise<Node> {
  const node = await startAnvil();
  await node.rpc('anvil_setBalance', FROM, `0x${ETHER.toString(16)}`);
  return node;
}
async function sandbox(): Promise<Node> {
  const chain = await createServedEvm({ folder: null, now: () => Date.now() });
  chain.pay('ETH', [{ to: FROM, minor: ETHER }], null);
  chain.mine(1);
  return { url: chain.url, rpc: (method, ...params) => callDaemon(chain.url, method, params), remove: chain.stop };
}

function portAt(...urls: readonly string[]): EvmPort {
  const clock = { now: Date.now, steady: () => performance.now() };
  const nodes = createChainNodes({ network: 'regtest', clock, urls: new Map([['ETH', urls]]), tokenContract: null });
  return nodes.chains.get('ETH') as unknown as EvmPort;
}

const sendTo = ({ rpc }: Node, nonce: number, maxFee = 10n * GWEI) =>
  rpc(
    'eth_sendRawTransaction',
    rawOf(signTransaction({ to: FROM, value: 1n, input: '0x', nonce, gas: 21_000, maxFee, tip: maxFee / 5n }, SECRET)),
  );

describe.each([
  ['geth', geth, true],
  ['anvil', anvil, false],
  ['the sandbox', sandbox, true],
] as const)('%s', (_name, start, saysQueued) => {
  let node: Node;
  let port: EvmPort;
  beforeAll(async () => {
    node = await start();
    port = portAt(node.url);
  }, TIMEOUT);
  afterAll(() => node?.remove(), TIMEOUT);
  const send = (nonce: number, maxFee?: bigint) => sendTo(node, nonce, maxFee);
  const most = async (): Promise<number> => (await port.sentBy(FROM)).most;

  test('what waits counts, what is behind a gap where the node says so, and all once the gap is filled', {
    timeout: TIMEOUT,
  }, async () => {
    expect(await most()).toBe(0);
    await send(0);
    expect(await most()).toBe(1);
    await send(2);
    expect(await most()).toBe(saysQueued ? 3 : 1);
    await send(1);
    // the one before the last is replaced
    await send(1, 20n * GWEI);
    await expect.poll(most).toBe(3);
  });
});

test.each([
  ['refuses it', 'error'],
  ['answers it with nonsense', 'result'],
])('a node that %s is not asked again, and says the rest', { timeout: TIMEOUT }, async (_how, kind) => {
  const node = await anvil();
  const relay = await openAlteredNode(node.url);
  relay.alter({
    instead: ({ method }) => {
      if (method !== 'txpool_contentFrom') return null;
      return kind === 'error'
        ? { error: { code: -32601, message: 'the method is not available' } }
        : { result: { queued: { x: {} } } };
    },
  });
  const port = portAt(relay.url);
  await sendTo(node, 0);
  await sendTo(node, 2);
  for (let turn = 0; turn < 2; turn++) expect((await port.sentBy(FROM)).most).toBe(1);
  expect(relay.taken().filter((method) => method === 'txpool_contentFrom')).toHaveLength(1);
  relay.close();
  await node.remove();
});

test('of several nodes one that does not answer that is heard all the same, and is not asked at each look', {
  timeout: TIMEOUT,
}, async () => {
  const node = await anvil();
  const relays = [await openAlteredNode(node.url), await openAlteredNode(node.url)];
  // neither is answered
  for (const relay of relays)
    relay.alter({ before: ({ method }) => (method === 'txpool_contentFrom' ? new Promise(() => undefined) : undefined) });
  const port = portAt(...relays.map(({ url }) => url));
  await sendTo(node, 0);
  for (let turn = 0; turn < 2; turn++) {
    const { nonce, most, said } = await port.sentBy(FROM);
    expect({ nonce, most, said: said.length }).toEqual({ nonce: 0, most: 1, said: 2 });
  }
  for (const relay of relays) {
    expect(relay.taken().filter((method) => method === 'txpool_contentFrom')).toHaveLength(1);
    relay.close();
  }
  await node.remove();
});

test('a node that names two hundred thousand is read like any other', { timeout: TIMEOUT }, async () => {
  const node = await anvil();
  const relay = await openAlteredNode(node.url);
  const queued = Object.fromEntries(Array.from({ length: 200_000 }, (_, nonce) => [nonce, null]));
  relay.alter({ instead: ({ method }) => (method === 'txpool_contentFrom' ? { result: { pending: {}, queued } } : null) });
  expect((await portAt(relay.url).sentBy(FROM)).most).toBe(200_000);
  relay.close();
  await node.remove();
});

test('a node that fails once is asked again later', { timeout: TIMEOUT }, async () => {
  const node = await sandbox();
  let steadyMs = 0;
  let isFailing = true;
  const source = createEvmSource({ url: node.url });
  const rpc = {
    ...source.rpc,
    call: async (method: string, params?: readonly unknown[]) => {
      if (method === 'txpool_contentFrom' && isFailing) throw new NodeTrouble('bad_answer', `${node.url}: 502`);
      return source.rpc.call(method, params);
    },
  };
  const sending = createEvmSending({ ...source, rpc }, null, { steadyMs: () => steadyMs });
  await sendTo(node, 1);
  expect((await sending.sentBy(FROM)).most).toBe(0);
  isFailing = false;
  expect((await sending.sentBy(FROM)).most).toBe(0);
  steadyMs += 600_000;
  expect((await sending.sentBy(FROM)).most).toBe(2);
  await source.close();
  await node.remove();
});
