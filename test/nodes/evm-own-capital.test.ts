// The operator's own money arrives on Ethereum's chain where two nodes are configured: as what customers pay, it is asked of the other one too.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Alteration, type Receipt, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const HOUR = 3_600_000;
const UNITS = 70_000_000n;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const STRANGER = `0x${'5e'.repeat(20)}`;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let hot: string;
/** It answers everything but what is in blocks. */
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  hot = await service.hot('USDT');
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(async () => {
  nodes.read.alter({});
  nodes.other.alter({});
  await service.mine(10);
  await later();
  expect(await service.findings()).toEqual([]);
}, TIMEOUT);

const capital = (): Promise<bigint> => service.balance('equity:operator:USDT');
const later = async (): Promise<void> => {
  for (let look = 0; look < 2; look++) {
    await service.work(LATER_MS);
    await service.settle();
  }
  await service.work(LATER_MS);
};
const word = (value: string): string => `0x${value.slice(2).padStart(64, '0')}`;

test('what only the node that is read shows waits until the other one does', { timeout: TIMEOUT }, async () => {
  const before = await capital();
  nodes.other.alter(SAYS_NOTHING);
  await service.pay('USDT', hot, UNITS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await capital()) - before).toBe(0n);
  nodes.other.alter({});
  await later();
  expect((await capital()) - before).toBe(UNITS);
});

/** A node that shows an event of the token which pays our address in a stranger's transaction. */
async function makingUp(): Promise<Alteration> {
  const { hash } = await service.anvil.send({ to: STRANGER, value: 1n });
  const log = ({ blockHash }: Receipt): object => ({
    address: service.anvil.token,
    topics: [TRANSFER, word(STRANGER), word(hot)],
    data: word(`0x${UNITS.toString(16)}`),
    blockHash,
  });
  return receipts((one) => (one.transactionHash === hash ? { ...one, logs: [log(one)] } : one));
}

test('it counts by one word where no other can say for an hour, and is lost when that one denies it', {
  timeout: TIMEOUT,
}, async () => {
  const before = await capital();
  const madeUp = await makingUp();
  nodes.other.alter(SAYS_NOTHING);
  nodes.read.alter(madeUp);
  await service.mine(FINAL);
  await service.work(HOUR - 120_000);
  expect((await capital()) - before).toBe(0n);
  await service.work(120_000);
  expect((await capital()) - before).toBe(UNITS);
  nodes.other.alter({});
  await later();
  expect((await capital()) - before).toBe(0n);
});

test('what was made up, and nobody shows any more when the other one is there, is none', { timeout: TIMEOUT }, async () => {
  const before = await capital();
  const madeUp = await makingUp();
  nodes.other.alter(SAYS_NOTHING);
  nodes.read.alter(madeUp);
  await service.mine(5);
  // what was read of the newest blocks is not asked for again
  nodes.read.alter({});
  await service.mine(FINAL);
  nodes.other.alter({});
  await later();
  expect((await capital()) - before).toBe(0n);
});
