// The node that is read makes up a transaction of the address that payouts leave from: what no second node shows stops payouts only while it is said.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'d7'.repeat(20)}`;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let hot: string;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  hot = await service.hot('USDT');
  await receiveDollars(service, 300n);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const hex = (value: number): string => `0x${value.toString(16)}`;
/** From a block on the address has sent one more, which a stranger's transaction in that block is shown as. */
const sentOneMore = (nonce: number, from: number): Alteration => ({
  afterwards({ method, params }, answer) {
    const [first, at] = params as readonly [unknown, unknown];
    if (method === 'eth_getTransactionCount' && String(first).toLowerCase() === hot)
      return typeof at === 'string' && at.startsWith('0x') && Number(at) < from ? answer : { result: hex(nonce + 1) };
    const { result } = answer as { result?: { transactions?: readonly Json[] } };
    if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
    const of = (one: Json): Json => (one.to === STRANGER ? { ...one, from: hot, nonce: hex(nonce) } : one);
    return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
  },
});

test('what it makes up is named by no movement, and payouts go on once it is wrong no more', { timeout: TIMEOUT }, async () => {
  const first = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await readPayout(service.db, first)).toMatchObject({ status: 'completed' });
  const [nonce, height] = await Promise.all([
    service.anvil.rpc<string>('eth_getTransactionCount', hot, 'latest'),
    service.anvil.rpc<string>('eth_blockNumber'),
  ]);
  nodes.read.alter(sentOneMore(Number(nonce), Number(height) + 1));
  await service.anvil.send({ to: STRANGER, value: 1n });
  await service.mine(1);
  const second = await service.request(PAYEE);
  service.restart();
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  expect((await openBreakers(service.db)).map(({ findings }) => findings.join())).toEqual([
    expect.stringContaining(`our address ${hot} has sent ${Number(nonce) + 1} transactions`),
  ]);
  expect(await openMovements(service.db)).toEqual([]);
  nodes.read.alter({});
  await service.mine(10);
  await service.goOn();
  service.restart();
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await readPayout(service.db, second)).toMatchObject({ status: 'completed' });
  expect(await service.findings()).toEqual([]);
});
