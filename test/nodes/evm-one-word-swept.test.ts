// The node that is read says how a sweep has ended, under block hashes that every node has: what it has cost, and whether its payments have moved, counts
// once a second node shows the same, as with a payout.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { type Alteration, type Receipt, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, SILENT, WITHOUT_RECEIPTS } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
let nodes: TwoNodes;
let service: TwoNodes['service'];
const altered = new Set<string>();
const changing = (change: (one: Receipt) => object): Alteration =>
  receipts((one) => (altered.has(one.transactionHash) ? change(one) : one));
const DEARER = changing((one) => ({ ...one, effectiveGasPrice: `0x${(10n ** 12n).toString(16)}` }));

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
beforeEach(() => {
  says({}, {});
  altered.clear();
  service.told.length = 0;
});

function says(read: Alteration, other: Alteration): void {
  nodes.read.alter(read);
  nodes.other.alter(other);
}
/** A payment that is final, whole. */
async function paid(currency: 'ETH' | 'USDT'): Promise<string> {
  const { address } = await service.owe(currency, 300_00n);
  await service.pay(currency, address, currency === 'ETH' ? TENTH : 300_000_000n);
  await service.mine(FINAL);
  return address;
}
/** Works until a sweep is signed: its transaction. */
async function signed(): Promise<string> {
  const before = (await service.batches('sweep')).length;
  for (let turn = 0; turn < 6; turn++) {
    await service.work(LATER_MS);
    const newest = (await service.batches('sweep'))[before];
    if (newest !== undefined && newest.attempts > 0) return txidOf(newest.id);
    await service.mine();
  }
  throw new Error('nothing was swept');
}
async function txidOf(batchId: string): Promise<string> {
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select txid from outgoing_attempts where batch_id = $1 order by number desc',
    values: [batchId],
  });
  return rows[0]?.txid as string;
}
const newest = async () => (await service.batches('sweep')).at(-1);
/** What was read of the newest blocks is not asked for again, and batches are looked at. */
async function lookedAt(): Promise<void> {
  await service.mine(10);
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
}

test.each([
  ['does not answer', SILENT, /destroyed|closed|other side|fetch|socket/i],
  ['has no receipts', WITHOUT_RECEIPTS, /shows it in no block/],
  ['says that its gas has cost more', DEARER, /shows it paid in block 0x\w+, for \d+ wei/],
] as const)(
  'a sweep does not end while the other node %s, others go on, and it does once both show it',
  {
    timeout: TIMEOUT,
  },
  async (_, other, why) => {
    const address = await paid('ETH');
    const txid = await signed();
    altered.add(txid);
    says({}, other);
    await service.mine(FINAL);
    for (let look = 0; look < 2; look++) await service.work(LATER_MS);
    expect(await newest()).toMatchObject({ currency: 'ETH', state: 'mined' });
    expect(service.told.join()).toMatch(why);
    expect(service.told.join()).toContain('counts once two nodes show the same');
    expect(await openBreakers(service.db)).toEqual([]);
    says({}, {});
    await lookedAt();
    expect(await newest()).toMatchObject({ currency: 'ETH', state: 'final', attempts: 1 });
    expect(await service.ether(address)).toBe(0n);
    // once it has ended nobody is asked again
    says({}, WITHOUT_RECEIPTS);
    service.told.length = 0;
    await service.db.query({
      text: `update outgoing_batches set due_at = '-infinity' where purpose = 'sweep'`,
    });
    await service.work(LATER_MS);
    expect(service.told).toEqual([]);
    expect(await newest()).toMatchObject({ state: 'final' });
    says({}, {});
    expect(await service.findings()).toEqual([]);
  },
);

test('what the gas of a sweep has cost is not booked by the word of the node that is read', { timeout: TIMEOUT }, async () => {
  const gas = () => service.balance('expense:network_fee:ETH');
  const before = await gas();
  await paid('ETH');
  const txid = await signed();
  altered.add(txid);
  says(DEARER, {});
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect([await gas(), (await newest())?.state]).toEqual([before, 'mined']);
  says({}, {});
  await lookedAt();
  type Spent = { readonly gasUsed: string; readonly effectiveGasPrice: string };
  const { gasUsed, effectiveGasPrice } = await service.anvil.rpc<Spent>('eth_getTransactionReceipt', txid);
  expect([(await gas()) - before, (await newest())?.state]).toEqual([BigInt(gasUsed) * BigInt(effectiveGasPrice), 'final']);
  expect(await service.findings()).toEqual([]);
});

test('a sweep that has failed is not taken to have moved its payment by the word of the node that is read', {
  timeout: TIMEOUT,
}, async () => {
  const address = await paid('USDT');
  const hot = await service.hot('USDT');
  const { token } = service.anvil;
  const asPaid = (one: Receipt): object => {
    const topics = [TRANSFER, address, hot].map((topic) => `0x${topic.slice(2).padStart(64, '0')}`);
    const log = { address: token, topics, data: `0x${300_000_000n.toString(16).padStart(64, '0')}`, blockHash: one.blockHash };
    return { ...one, status: '0x1', logs: [log] };
  };
  altered.add(await signed());
  says(changing(asPaid), {});
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(1);
  });
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await newest()).toMatchObject({ currency: 'USDT', state: 'mined' });
  expect(service.told.join()).toContain('shows it failed in block');
  altered.clear();
  await lookedAt();
  expect(await newest()).toMatchObject({ currency: 'USDT', state: 'dead' });
  await service.settle();
  await service.work(6 * 3_600_000 + 1);
  for (let turn = 0; turn < 4; turn++) {
    await service.mine();
    await service.work(LATER_MS);
  }
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await service.units(address)).toBe(0n);
  expect(await service.findings()).toEqual([]);
});

test('that a sweep did something else than was asked for stops payouts once both nodes say so', {
  timeout: TIMEOUT,
}, async () => {
  const withoutEvents = changing((one) => ({ ...one, logs: [] }));
  await paid('USDT');
  altered.add(await signed());
  says(withoutEvents, {});
  await service.mine(20);
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/shows it unclear in block 0x.*shows it paid in block 0x/);
  expect(await openBreakers(service.db)).toEqual([]);
  says(withoutEvents, withoutEvents);
  await service.work(LATER_MS);
  expect((await openBreakers(service.db)).map(({ findings }) => findings)).toEqual([
    [expect.stringContaining('succeeded and did not do exactly what it asks for')],
  ]);
  says({}, {});
  altered.clear();
  await lookedAt();
  await service.goOn();
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await newest()).toMatchObject({ currency: 'USDT', state: 'final' });
});

test('that a stranger has used the nonce of a sweep is two nodes’ word as well', { timeout: TIMEOUT }, async () => {
  const address = await paid('ETH');
  await signed();
  const { rpc } = service.anvil;
  await rpc('anvil_dropAllTransactions');
  await rpc('anvil_impersonateAccount', address);
  const txid = await rpc<string>('eth_sendTransaction', { from: address, to: address, value: '0x0', gas: '0x5208' });
  says({}, { instead: ({ method }) => (method === 'eth_getTransactionByHash' ? { result: null } : null) });
  await service.mine(FINAL);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await newest()).toMatchObject({ currency: 'ETH', state: 'signed' });
  expect(service.told.join()).toContain(`it does not show ${txid} at nonce`);
  says({}, {});
  await service.work(LATER_MS);
  expect(await newest()).toMatchObject({ currency: 'ETH', state: 'dead' });
});
