// Two nodes on Ethereum's chain that show neither the calls of a block nor what addresses held after it, never or not any more: what they both show
// of it is confirmed, or recorded, all the same.
import { expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { readsBalances } from './altered-anvil.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const ETHER = 10n ** 18n;
const LATER_MS = 61_000;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
const NOTHING_INSIDE: Alteration = {
  instead: (call) =>
    readsBalances(call)
      ? { error: { code: -32601, message: 'the method eth_call does not exist/is not available' } }
      : (WITHOUT_TRACES.instead?.(call) ?? null),
};
/** It answers everything but what is in blocks. */
const SAYS_NOTHING: Alteration = {
  instead: (call) =>
    /ByHash$|Receipts?$/.test(call.method)
      ? { error: { code: -32005, message: 'limit exceeded' } }
      : (NOTHING_INSIDE.instead?.(call) ?? null),
};

async function unconfirmed({ service: { db } }: TwoNodes): Promise<readonly boolean[]> {
  const { rows } = await db.query<{ denied: boolean }>({ text: `select denied from unconfirmed_blocks order by height, denied` });
  return rows.map(({ denied }) => denied);
}
/** What was unconfirmed is asked about again, after what was read of the newest blocks is forgotten. */
async function resolved({ service }: TwoNodes): Promise<void> {
  for (let look = 0; look < 2; look++) {
    await service.mine(10);
    await service.work(LATER_MS);
    await service.settle();
  }
}
const told = async ({ service: { db } }: TwoNodes): Promise<string> =>
  (await readChainStatus(db)).find(({ currency }) => currency === 'ETH')?.others.join('; ') ?? '';

test('a large payment is confirmed once the other node is there again', { timeout: TIMEOUT }, async () => {
  const nodes = await openOnTwoNodes({ read: NOTHING_INSIDE, other: NOTHING_INSIDE });
  const { service, other } = nodes;
  try {
    other.alter(SAYS_NOTHING);
    const { id, address } = await service.owe('ETH', 3_000_00n);
    await service.pay('ETH', address, ETHER);
    await service.mine(FINAL);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['pending', [false]]);
    other.alter(NOTHING_INSIDE);
    await resolved(nodes);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['succeeded', []]);
    expect(await service.findings()).toEqual([]);
  } finally {
    await nodes.close();
  }
});

test('a payment that the read node had hidden is recorded once both show it', { timeout: TIMEOUT }, async () => {
  const hidden = { address: '' };
  const nodes = await openOnTwoNodes({
    read: {
      ...NOTHING_INSIDE,
      afterwards({ method }, answer) {
        const { result } = answer as { result?: { transactions?: readonly Json[] } };
        if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
        const of = (one: Json): Json => (one.to === hidden.address ? { ...one, to: STRANGER } : one);
        return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
      },
    },
    other: NOTHING_INSIDE,
  });
  const { service, read } = nodes;
  try {
    const { id, address } = await service.owe('ETH', 300_00n);
    hidden.address = address;
    await service.pay('ETH', address, ETHER / 10n);
    await service.mine();
    await deepScan(service.ctx, 'ETH');
    await resolved(nodes);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['started', [true]]);
    read.alter(NOTHING_INSIDE);
    await resolved(nodes);
    await service.mine(FINAL);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['succeeded', []]);
  } finally {
    await nodes.close();
  }
});

test('what a contract had sent, and no node shows any more, waits for the operator to leave one node only', {
  timeout: TIMEOUT,
}, async () => {
  const nodes = await openOnTwoNodes({ read: WITHOUT_TRACES, other: WITHOUT_TRACES });
  const { service, read, other } = nodes;
  /** A worker that starts with these nodes. */
  async function startedWith(urls: readonly string[]): Promise<void> {
    const { clock } = service.ctx.ports;
    const all = new Map((['ETH', 'USDT'] as const).map((currency) => [currency, urls]));
    const { chains } = createChainNodes({ network: 'regtest', clock, urls: all, tokenContract: service.anvil.token });
    Object.assign(service.ctx.ports, { chains });
    await service.restartWatchers();
    await resolved(nodes);
  }
  try {
    other.alter(SAYS_NOTHING);
    const { id, address } = await service.owe('ETH', 3_000_00n);
    const input = callData(FORWARDER, 'halves(address)', address);
    await service.anvil.send({ to: service.anvil.forwarder, input, value: ETHER });
    await service.mine(FINAL);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['pending', [false]]);
    for (const node of [read, other]) node.alter(NOTHING_INSIDE);
    await startedWith([read.url, other.url]);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['pending', [false]]);
    expect(await told(nodes)).toMatch("is one node's word");
    await startedWith([read.url]);
    expect([await service.status(id), await unconfirmed(nodes)]).toEqual(['succeeded', []]);
  } finally {
    await nodes.close();
  }
});
