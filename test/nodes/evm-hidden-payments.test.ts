// Two nodes on Ethereum's chain that hold the same blocks, and of which the one that is read does not show what a block pays us: the other one reads
// each block too, the contradiction is told, and what both show then counts as seen when the other showed it.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readCursor } from '../../src/store/chain/blocks.ts';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const ETHER = 10n ** 18n;
const LATER_MS = 61_000;
const HOUR_MS = 3_600_000;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
let nodes: TwoNodes;
let read: TwoNodes['read'];
let other: TwoNodes['other'];
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service, read, other } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(async () => {
  read.alter({});
  other.alter({});
  await resolved();
  expect(await unconfirmed()).toEqual([]);
  expect(await service.findings()).toEqual([]);
}, TIMEOUT);

const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
async function scanned(): Promise<void> {
  for (const currency of ['ETH', 'USDT'] as const) await deepScan(service.ctx, currency);
}
/** What was unconfirmed is asked about again, after what was read of the newest blocks is forgotten. */
async function resolved(): Promise<void> {
  for (let look = 0; look < 2; look++) {
    await service.mine(10);
    await service.work(LATER_MS);
    await service.settle();
  }
}
async function unconfirmed(): Promise<readonly { readonly currency: string; readonly denied: boolean }[]> {
  const { rows } = await service.db.query<{ currency: string; denied: boolean }>({
    text: 'select currency, denied from unconfirmed_blocks order by currency, height, denied',
  });
  return rows;
}
const told = async (currency: string): Promise<string> =>
  (await readChainStatus(service.db)).find((one) => one.currency === currency)?.others.join('; ') ?? '';
async function payments(id: string): Promise<readonly bigint[]> {
  const { rows } = await service.db.query<{ amount: string }>({
    text: `select amount from payments where transaction_id = $1 and state = 'mined' order by amount`,
    values: [id],
  });
  return rows.map(({ amount }) => BigInt(amount));
}
/** A node that does not show events to an address. */
const withoutEvents = (address: string): Alteration =>
  receipts((one) => ({ ...one, logs: one.logs.filter(({ topics }) => topics[2] !== word(address)) }));
/** A node that shows each transaction to an address as one to a stranger, and no calls. */
const withoutEther = (address: string): Alteration => ({
  afterwards({ method }, answer) {
    if (method.startsWith('debug_trace')) {
      const of = (one: Json): Json => ({ ...one, result: { ...(one.result as Json), calls: undefined } });
      return { ...answer, result: (answer.result as readonly Json[]).map(of) };
    }
    const { result } = answer as { result?: { transactions?: readonly Json[] } };
    if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
    const of = (one: Json): Json => (one.to === address ? { ...one, to: STRANGER } : one);
    return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
  },
});
/** It answers everything but what is in blocks. */
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

// the first: the clock of the others runs ahead of the chain's
test('blocks wait for an hour for a second node to read them, and no longer', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 35_00n);
  await scanned();
  read.alter(withoutEvents(address));
  other.alter(SAYS_NOTHING);
  const before = (await readCursor(service.db, 'USDT'))?.deepHeight as number;
  await service.pay('USDT', address, 35_000_000n);
  await service.mine(3);
  await scanned();
  expect((await readCursor(service.db, 'USDT'))?.deepHeight).toBe(before);
  // it is back: what it alone shows is noticed
  other.alter({});
  await scanned();
  expect([(await readCursor(service.db, 'USDT'))?.deepHeight, await unconfirmed()]).toEqual([
    before + 3,
    [{ currency: 'USDT', denied: true }],
  ]);
  read.alter({});
  await resolved();
  await service.mine(FINAL);
  expect(await service.status(id)).toBe('succeeded');
  // it stays away
  await scanned();
  other.alter(SAYS_NOTHING);
  const stopped = (await readCursor(service.db, 'USDT'))?.deepHeight as number;
  await service.mine(2);
  await scanned();
  expect((await readCursor(service.db, 'USDT'))?.deepHeight).toBe(stopped);
  await service.work(2 * HOUR_MS);
  await scanned();
  expect((await readCursor(service.db, 'USDT'))?.deepHeight).toBe(stopped + 2);
});

test('an event that only the other node shows is told, and on time when both show it after the window', {
  timeout: TIMEOUT,
}, async () => {
  const { id, address } = await service.owe('USDT', 40_00n);
  read.alter(withoutEvents(address));
  await service.pay('USDT', address, 40_000_000n);
  await service.mine();
  await scanned();
  await service.work(LATER_MS);
  await service.settle();
  expect([await payments(id), await unconfirmed()]).toEqual([[], [{ currency: 'USDT', denied: true }]]);
  expect(await told('USDT')).toMatch(`contradiction: ${new URL(other.url).host} shows in block 0x`);
  expect(await told('USDT')).toMatch(
    new RegExp(`what ${new URL(read.url).host} does not: 40000000 base units in 0x\\w+ to ${address}`),
  );
  await service.work(HOUR_MS);
  await service.mine(FINAL);
  expect(await service.status(id)).toBe('timedout');
  read.alter({});
  await resolved();
  expect([await payments(id), await service.status(id), await told('USDT')]).toEqual([[40_000_000n], 'succeeded', '']);
});

test.each(['of a transaction', 'of a contract'])(
  'ether %s that only the other node shows is told, and recorded when both show it',
  {
    timeout: TIMEOUT,
  },
  async (sent) => {
    const { id, address } = await service.owe('ETH', 300_00n);
    read.alter(withoutEther(address));
    if (sent === 'of a transaction') await service.pay('ETH', address, ETHER / 10n);
    else
      await service.anvil.send({
        to: service.anvil.forwarder,
        input: callData(FORWARDER, 'halves(address)', address),
        value: ETHER / 10n,
      });
    await service.mine();
    await scanned();
    expect([await payments(id), await unconfirmed()]).toEqual([[], [{ currency: 'ETH', denied: true }]]);
    read.alter({});
    await resolved();
    await service.mine(FINAL);
    expect([(await payments(id)).reduce((sum, one) => sum + one, 0n), await service.status(id)]).toEqual([
      ETHER / 10n,
      'succeeded',
    ]);
  },
);

test('a second payment of a block to the same address that the read node hides does not hold up the first', {
  timeout: TIMEOUT,
}, async () => {
  const { id, address } = await service.owe('USDT', 25_00n);
  read.alter(
    receipts((one) => ({
      ...one,
      logs: one.logs.filter(({ topics, data }) => topics[2] !== word(address) || BigInt(data) === 25_000_000n),
    })),
  );
  await service.pay('USDT', address, 25_000_000n);
  await service.pay('USDT', address, 5_000_000n);
  await service.mine(FINAL);
  expect([await payments(id), await service.status(id)]).toEqual([[25_000_000n], 'succeeded']);
  expect(await unconfirmed()).toEqual([{ currency: 'USDT', denied: true }]);
  read.alter({});
  await resolved();
  expect(await payments(id)).toEqual([5_000_000n, 25_000_000n]);
});
