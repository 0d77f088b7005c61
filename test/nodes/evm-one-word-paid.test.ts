// The node that is read says of our own transactions that they have paid, under block hashes that every node has: as what a block pays to us, that
// counts once a second node shows the same.
import { expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type Alteration, type Receipt, receipts } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT, WITHOUT_RECEIPTS } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'c4'.repeat(20)}`;
const FIFTY = 50_000_000n;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const altered = new Set<string>();
const changing = (change: (one: Receipt) => object): Alteration =>
  receipts((one) => (altered.has(one.transactionHash) ? change(one) : one));
const AS_FAILED = changing((one) => ({ ...one, status: '0x0', logs: [] }));
/** It succeeded, and the token says nothing of it. */
const WITHOUT_EVENTS = changing((one) => ({ ...one, logs: [] }));
const DEARER = changing((one) => ({ ...one, effectiveGasPrice: `0x${(10n ** 12n).toString(16)}` }));

dollarsOnTwoNodesForAll();

function says(read: Alteration, other: Alteration): void {
  nodes.read.alter(read);
  nodes.other.alter(other);
}
const shown = async (id: string) => {
  const found = await readPayoutDetails(service.db, id);
  return { status: found?.status, trouble: found?.trouble ?? null };
};
/** What /readyz says of payouts. */
const waiting = async (): Promise<readonly string[]> =>
  (await readReadiness(service.ctx, [])).problems.filter((problem) => problem.startsWith('payout '));
const batchState = async (id: string): Promise<string | undefined> => {
  const { rows } = await service.db.query<{ state: string }>({
    text: 'select b.state from outgoing_batches b join payouts p on p.batch_id = b.id where p.id = $1',
    values: [id],
  });
  return rows[0]?.state;
};
/** A payout on its way. */
async function sent(): Promise<{ readonly id: string; readonly txid: string }> {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select a.txid from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
    values: [id],
  });
  return { id, txid: rows[0]?.txid as string };
}
async function ended(id: string): Promise<void> {
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(id)).toEqual({ status: 'completed', trouble: null });
  expect(await batchState(id)).toBe('final');
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
}

test.each([
  ['does not answer', SILENT, /destroyed|closed|other side|fetch|socket/i],
  ['has no receipts', WITHOUT_RECEIPTS, /shows it in no block/],
  ['says that it has failed', AS_FAILED, /shows it failed in block 0x/],
  ['says that its gas has cost more', DEARER, /shows it paid in block 0x\w+, for \d+ wei/],
] as const)(
  'a payout is not completed while the other node %s; others go on, and it is, once both show it',
  {
    timeout: TIMEOUT,
  },
  async (_, other, why) => {
    const { id, txid } = await sent();
    altered.add(txid);
    says({}, other);
    await service.mine(20);
    for (let look = 0; look < 2; look++) await service.work(LATER_MS);
    const { status, trouble } = await shown(id);
    expect(status).toBe('processing');
    expect(trouble).toContain('counts once two nodes show the same');
    expect(trouble).toMatch(why);
    expect(await waiting()).toEqual([`payout ${id} waits: ${trouble}`]);
    expect(await openBreakers(service.db)).toEqual([]);
    // the next one leaves all the same
    const next = await sent();
    says({}, {});
    altered.clear();
    await service.mine(20);
    await service.work(LATER_MS);
    for (const one of [id, next.id]) expect(await shown(one)).toEqual({ status: 'completed', trouble: null });
    expect(await waiting()).toEqual([]);
    await ended(id);
  },
);

test('gas that the node in use has stated wrongly is read again before it is charged', { timeout: TIMEOUT }, async () => {
  const { id, txid } = await sent();
  altered.add(txid);
  says(DEARER, {});
  await service.mine(20);
  says({}, {});
  altered.clear();
  // what was read of the newest blocks is not asked for again
  await service.mine(10);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toEqual({ status: 'completed', trouble: null });
  type Spent = { readonly gasUsed: string; readonly effectiveGasPrice: string };
  const { gasUsed, effectiveGasPrice } = await service.anvil.rpc<Spent>('eth_getTransactionReceipt', txid);
  const { rows } = await service.db.query<{ gas: string }>({
    text: 'select gas_paid as gas from outgoing_attempts where txid = $1',
    values: [txid],
  });
  expect(rows.map(({ gas }) => BigInt(gas))).toEqual([BigInt(gasUsed) * BigInt(effectiveGasPrice)]);
  await ended(id);
});

test('that one did something else than was asked for stops payouts once both nodes say so', { timeout: TIMEOUT }, async () => {
  const { id, txid } = await sent();
  altered.add(txid);
  says(WITHOUT_EVENTS, {});
  await service.mine(20);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({
    status: 'processing',
    trouble: expect.stringMatching(/shows it unclear in block 0x.*shows it paid in block 0x/),
  });
  expect(await openBreakers(service.db)).toEqual([]);
  says(WITHOUT_EVENTS, WITHOUT_EVENTS);
  await service.work(LATER_MS);
  expect((await openBreakers(service.db)).map(({ findings }) => findings)).toEqual([
    [expect.stringContaining('succeeded and did not do exactly what it asks for')],
  ]);
  // what was read of the newest blocks is not asked for again
  altered.clear();
  await service.mine(10);
  await service.goOn();
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toEqual({ status: 'completed', trouble: null });
  await ended(id);
});

const NOT_FINAL: Alteration = {
  instead: ({ method, params }) => (method === 'eth_getBlockByNumber' && params[0] === 'finalized' ? { result: null } : null),
};

test('a payout ends once two nodes call its block final', { timeout: TIMEOUT }, async () => {
  const { id } = await sent();
  says({}, NOT_FINAL);
  await service.mine(FINAL);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect([await shown(id), await batchState(id)]).toEqual([{ status: 'completed', trouble: null }, 'mined']);
  says({}, {});
  await ended(id);
});

test('one that has ended is not asked about again when its block is read again', { timeout: TIMEOUT }, async () => {
  const { id } = await sent();
  await ended(id);
  says({}, WITHOUT_RECEIPTS);
  await service.db.query({
    text: `update outgoing_batches b set due_at = '-infinity' from payouts p where p.id = $1 and b.id = p.batch_id`,
    values: [id],
  });
  await service.work(LATER_MS);
  expect(await shown(id)).toEqual({ status: 'completed', trouble: null });
});

test('what only the node that is read says to have paid is not completed, and fails once both say so', {
  timeout: TIMEOUT,
}, async () => {
  const available = () => service.balance(`merchant:${service.merchantId}:available:USDT`);
  const before = await available();
  const hot = await service.hot('USDT');
  const { token } = service.anvil;
  const paid = (one: Receipt): object => {
    const topics = [TRANSFER, hot, PAYEE].map((topic) => `0x${topic.slice(2).padStart(64, '0')}`);
    const log = { address: token, topics, data: `0x${FIFTY.toString(16).padStart(64, '0')}`, blockHash: one.blockHash };
    return { ...one, status: '0x1', logs: [log] };
  };
  const { id, txid } = await sent();
  altered.add(txid);
  says(changing(paid), {});
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(1);
  });
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing', trouble: expect.stringContaining('shows it failed in block') });
  expect(await openBreakers(service.db)).toEqual([]);
  altered.clear();
  await service.mine(10);
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  expect((await shown(id)).status).toBe('failed');
  expect(await available()).toBe(before);
  expect(await service.findings()).toEqual([]);
});

test('one that nodes refuse is named once a block has used its nonce, and not before', { timeout: TIMEOUT }, async () => {
  const full: Alteration = {
    instead: ({ method }) =>
      method === 'eth_sendRawTransaction' ? { error: { code: -32000, message: 'transaction pool is full' } } : null,
  };
  says(full, full);
  const { id } = await sent();
  expect((await shown(id)).trouble).toMatch(/transaction pool is full/);
  expect(await waiting()).toEqual([]);
  says({}, {});
  await service.work(LATER_MS);
  await ended(id);
});

test('what the gas of one that has failed has cost is not booked by the word of the node that is read', {
  timeout: TIMEOUT,
}, async () => {
  const { id, txid } = await sent();
  altered.add(txid);
  says(DEARER, {});
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(1);
  });
  await service.mine(FINAL);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  const { status, trouble } = await shown(id);
  expect([status, await batchState(id)]).toEqual(['processing', 'signed']);
  expect(trouble).toMatch(/counts once two nodes show the same.*shows it failed in block 0x\w+, for \d+ wei/);
  expect(await waiting()).toEqual([`payout ${id} waits: ${trouble}`]);
  altered.clear();
  await service.mine(10);
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  expect([(await shown(id)).status, await batchState(id), await openBreakers(service.db)]).toEqual(['failed', 'dead', []]);
  expect(await service.findings()).toEqual([]);
});

test('what is not signed here is booked by an operator once both nodes show it', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const recover = (txid: string) => recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: true });
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const txid = await service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: hot, value: '0x0', gas: '0x30d40' });
  await service.mine(FINAL);
  altered.add(txid);
  says({}, WITHOUT_RECEIPTS);
  await expect(recover(txid)).rejects.toThrow(/once two nodes show alike how it ended .*shows it in no block/);
  says({}, AS_FAILED);
  await expect(recover(txid)).rejects.toThrow(/shows it failed in block/);
  for (const [read, other] of [
    [{}, NOT_FINAL],
    [NOT_FINAL, {}],
  ] as const) {
    says(read, other);
    await expect(recover(txid)).rejects.toThrow(/is in no final block yet/);
  }
  says({}, {});
  expect(await recover(txid)).toMatchObject({ payoutIds: [], lost: 0n });
});
