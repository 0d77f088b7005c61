// What waits of an address at a node counts as sent, also behind a gap in its nonces: where database and signer, put back together, have forgotten it,
// its payout is not signed for the next nonce, and paid twice.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { createServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { addressOf, secretOf, signTransaction } from '../../src/sandbox/evm/transaction.ts';
import { rawOf, startAnvil } from '../support/evm/anvil.ts';
import { startGeth } from '../support/evm/geth.ts';
import { caller } from '../support/evm/json-rpc.ts';

const TIMEOUT = 120_000;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const SECRET = secretOf('somebody with ether');
const FROM = addressOf(SECRET);

/** A node at which somebody has ether and has sent nothing. */
type Node = { readonly url: string; readonly rpc: ReturnType<typeof caller>; remove(): Promise<unknown> };
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
  const { origin, pathname, username, password } = new URL(chain.url);
  const login = `Basic ${btoa(`${username}:${password}`)}`;
  return { url: chain.url, rpc: caller(origin + pathname, () => login), remove: chain.stop };
}

describe.each([
  ['geth', geth, true],
  ['anvil', anvil, false],
  ['the sandbox', sandbox, true],
] as const)('%s', (_name, start, saysQueued) => {
  let node: Node;
  let port: EvmPort;
  beforeAll(async () => {
    node = await start();
    const clock = { now: Date.now, steady: () => performance.now() };
    const nodes = createChainNodes({ network: 'regtest', clock, urls: new Map([['ETH', [node.url]]]), tokenContract: null });
    port = nodes.chains.get('ETH') as unknown as EvmPort;
  }, TIMEOUT);
  afterAll(() => node?.remove(), TIMEOUT);
  const send = (nonce: number, maxFee = 10n * GWEI) =>
    node.rpc(
      'eth_sendRawTransaction',
      rawOf(signTransaction({ to: FROM, value: 1n, input: '0x', nonce, gas: 21_000, maxFee, tip: maxFee / 5n }, SECRET)),
    );
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
