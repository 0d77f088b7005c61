// What our addresses hold is compared with what is known there, while the chain is reorganised below the block that a node is asked about, while an operator
// has booked what had left, and at a node behind whose address another one has another block.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { compareBalances } from '../../src/worker/rescan/address-balances.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain, sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const NOBODY = `0x${'e7'.repeat(20)}`;
const BOTH = ['ETH', 'USDT'] as const;
let node: Awaited<ReturnType<typeof openAlteredNode>>;
let service: EvmService;
const ours = new Set<string>();

beforeAll(async () => {
  service = await openEvmService({
    through: async (url) => {
      node = await openAlteredNode(url);
      return node.url;
    },
  });
  for (const currency of BOTH) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  node?.close();
}, TIMEOUT);

async function readTwice(): Promise<void> {
  for (const currency of BOTH) while ((await reconcile(service.ctx, currency)).more);
}
/**
 * Balances are compared; before the first address of USDT is asked for, something else is done.
 * @param afterwards how the node's answers are changed from then on
 */
async function comparesWhile(
  happens: () => Promise<unknown>,
  afterwards: NonNullable<Alteration['afterwards']> = (_, answer) => answer,
): Promise<string | null> {
  let happened: Promise<unknown> | null = null;
  let isOver = false;
  node.alter({
    afterwards: (call, answer) => (isOver ? afterwards(call, answer) : answer),
    async before({ method, params }) {
      if (method !== 'eth_getTransactionCount' || !String(params[1]).startsWith('0x')) return;
      happened ??= happens();
      await happened;
      isOver = true;
    },
  });
  try {
    return await compareBalances(service.ctx, BOTH);
  } finally {
    node.alter({});
    expect(happened).not.toBe(null);
  }
}
const compared = async (): Promise<readonly object[]> =>
  (await service.db.query({ text: 'select currency, found - known as more from address_balances where found <> known' })).rows;

test.each(['as the node shows it', 'while another one behind its address has the old blocks'])(
  'a reorganisation that takes a payment back is no loss, %s',
  { timeout: TIMEOUT },
  async (shows) => {
    await service.pay('USDT', await service.hot('USDT'), 500_000_000n);
    await service.mine(FINAL);
    await readTwice();
    const { rows } = await service.db.query<{ height: number; hash: string }>({
      text: 'select height, hash from chain_reconciled',
    });
    const [block] = rows;
    const isOld = shows !== 'as the node shows it';
    const unread = await comparesWhile(
      async () => {
        await service.anvil.rpc('anvil_reorg', FINAL + 3, []);
        await service.mine(5);
        await readTwice();
      },
      ({ method, params }, answer) =>
        isOld && method === 'eth_getBlockByNumber' && Number(params[0]) === block?.height
          ? { result: { ...(answer.result as object), hash: block.hash } }
          : answer,
    );
    expect(unread).toContain('was replaced meanwhile');
    expect(await compared()).toEqual([]);
    await ledgerIsChain(service, ours);
  },
);

test('nor is one that nobody here has read yet', { timeout: TIMEOUT }, async () => {
  await service.pay('USDT', await service.hot('USDT'), 500_000_000n);
  await service.mine(FINAL);
  await readTwice();
  const unread = await comparesWhile(() => service.anvil.rpc('anvil_reorg', FINAL + 3, []));
  expect(unread).toContain('was replaced meanwhile');
  expect(await compared()).toEqual([]);
  await service.mine(5);
  await ledgerIsChain(service, ours);
});

test('what is booked meanwhile is known', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const txid = await sent(service, hot, service.anvil.token, { data: transfer(NOBODY, 60_000_000n) });
  await service.mine(FINAL);
  expect((await service.findings()).filter((finding) => finding.startsWith('EVM-1'))).toHaveLength(2);
  service.restart();
  await works(service, 1);
  const booked = { by: 'operator test', acceptsLoss: true };
  expect(await comparesWhile(() => recoverSent(service.ctx, txid, booked))).toBe(null);
  expect(await compared()).toEqual([]);
  await ledgerIsChain(service, ours);
});

test('of a node that has another block there nothing is stored', { timeout: TIMEOUT }, async () => {
  await service.mine(FINAL);
  await readTwice();
  const { rows } = await service.db.query<{ height: number }>({ text: 'select min(height) as height from chain_reconciled' });
  const height = `0x${rows[0]?.height.toString(16)}`;
  const other: Alteration = {
    afterwards: ({ method, params }, answer) =>
      method === 'eth_getBlockByNumber' && params[0] === height
        ? { result: { ...(answer.result as object), hash: `0x${'d0'.repeat(32)}` } }
        : answer,
    // what a token holds there
    instead: ({ method, params }) => (method === 'eth_call' && params[1] === height ? { result: `0x${'0'.repeat(64)}` } : null),
  };
  node.alter(other);
  expect(await compareBalances(service.ctx, BOTH)).toContain('was replaced meanwhile');
  node.alter({});
  expect(await compared()).toEqual([]);
});
