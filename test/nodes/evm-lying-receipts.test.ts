// The node that is read lies about our own transactions under block hashes that every node has: what would give money back is asked of all of them.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { evmProgress } from '../../src/flow/evm/progress.ts';
import { recoverFailedOnEvm } from '../../src/flow/evm/recover-failed.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recordOutgoing, takeBackOutgoing } from '../../src/store/payouts/outgoing-facts.ts';
import { recoverSigned } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, type LiedTo, openLiedTo, SILENT, WITHOUT_RECEIPTS } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const FIFTY = 50_000_000n;
const HOUR = 3_600_000;
let lied: LiedTo;
let service: LiedTo['service'];
let honest: LiedTo['honest'];
let denied: Set<string>;
let LYING: Alteration;

const ON_ANOTHER_BRANCH = receipts((one) => ({ ...one, blockHash: `0x${'ab'.repeat(32)}` }));
const REFUSING: Alteration = {
  instead: ({ method }) => (method.endsWith('Receipt') ? { error: { code: -32005, message: 'limit exceeded' } } : null),
};
/** Nothing of ours was mined, it says. */
const UNUSED: Alteration = {
  instead: ({ method }) =>
    method.endsWith('Receipt') ? { result: null } : method === 'eth_getTransactionCount' ? { result: '0x0' } : null,
};
const BEHIND: Alteration = {
  instead: ({ method }) =>
    method === 'eth_blockNumber' || method.endsWith('Receipt') ? { result: method.endsWith('t') ? null : '0x1' } : null,
};

beforeAll(async () => {
  lied = await openLiedTo();
  ({ service, honest, denied, lying: LYING } = lied);
}, TIMEOUT);
afterAll(() => lied?.close(), TIMEOUT);
beforeEach(() => {
  denied.clear();
  honest.alter({});
});
const paidAndDenied = () => lied.paidAndDenied();
const isHonestAgain = () => lied.isHonestAgain();
const shown = (id: string) => lied.shown(id);
const recover = (txid: string) => recoverSigned(service.ctx, txid, { by: 'operator test', acceptsLoss: false });

test('a payout that has paid, says one of them, is not given back: payouts stop until the wrong node is gone', {
  timeout: TIMEOUT,
}, async () => {
  const id = await paidAndDenied();
  for (let look = 0; look < 2; look++) {
    await service.work(LATER_MS);
    expect(await shown(id)).toMatchObject({ status: 'processing', error: null, trouble: expect.stringContaining('has paid') });
    const [open] = await openBreakers(service.db);
    expect(open?.findings.join()).toMatch(
      /has paid, in block \w+, says a node of ours, and the one that is read says .*bursar audit --clear/,
    );
  }
  await isHonestAgain();
  await service.goOn();
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', error: null });
  expect(await openBreakers(service.db)).toEqual([]);
});

test('one that says so of another block is on another branch: nothing is given back, and payouts go on', {
  timeout: TIMEOUT,
}, async () => {
  const id = await paidAndDenied();
  honest.alter(ON_ANOTHER_BRANCH);
  await service.work(LATER_MS);
  await service.work(HOUR);
  expect(await shown(id)).toMatchObject({ status: 'processing', error: null, trouble: expect.stringContaining('ab'.repeat(32)) });
  expect(await openBreakers(service.db)).toEqual([]);
  await isHonestAgain();
  await service.work(LATER_MS);
  // it has not paid in the same block by two nodes' word
  expect(await shown(id)).toMatchObject({
    status: 'processing',
    error: null,
    trouble: expect.stringContaining('a receipt is of another block'),
  });
  honest.alter({});
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', error: null, trouble: null });
});

test('a node that has said paid, and is silent afterwards, is waited for while payouts are stopped', {
  timeout: TIMEOUT,
}, async () => {
  const id = await paidAndDenied();
  for (const alteration of [SILENT, {}, SILENT, SILENT]) {
    honest.alter(alteration);
    await service.work(HOUR + LATER_MS);
    expect(await shown(id)).toMatchObject({ status: 'processing', error: null });
  }
  honest.alter({});
  await isHonestAgain();
  await service.goOn();
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', error: null });
});

test('what can still be mined, says one of them, is not given back: payouts stop', { timeout: TIMEOUT }, async () => {
  const id = await paidAndDenied();
  honest.alter(UNUSED);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({
    status: 'processing',
    error: null,
    trouble: expect.stringContaining('has used nonce'),
  });
  const [open] = await openBreakers(service.db);
  expect(open?.findings.join()).toMatch(/nothing has used nonce \d+ of 0x\w+ yet, says a node of ours/);
  honest.alter({});
  await isHonestAgain();
  await service.goOn();
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'completed', error: null });
});

test('a node that says nothing holds back what has failed, and is told', { timeout: TIMEOUT }, async () => {
  const id = await paidAndDenied();
  for (const [alteration, why] of [
    [REFUSING, /limit exceeded/],
    [BEHIND, /has read 1 blocks/],
    [WITHOUT_RECEIPTS, /it has no receipt of what has used nonce \d+/],
    [SILENT, /once two nodes say so .*BURSAR_ETH_RPC_URL/],
  ] as const) {
    honest.alter(alteration);
    await service.work(LATER_MS);
    expect(await shown(id)).toMatchObject({ status: 'processing', error: null, trouble: expect.stringMatching(why) });
  }
  await service.work(HOUR);
  expect(await shown(id)).toMatchObject({ status: 'processing', error: null });
  honest.alter(LYING);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'reverted' });
  // all were wrong: a rescan with a node that is right finds that it has paid
  await isHonestAgain();
  honest.alter({});
  await service.db.query({
    text: `with read as (update outgoing_attempts a set result = 'paid' from payouts p where p.id = $1 and a.batch_id = p.batch_id returning a.batch_id)
           update outgoing_batches set due_at = '-infinity' where id in (select batch_id from read)`,
    values: [id],
  });
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'reverted' });
  const [stop] = await openBreakers(service.db);
  expect(stop?.findings.join()).toContain(`${id} had failed and was given back, and is paid by 0x`);
  // nothing was booked for it a second time
  expect((await service.findings()).map((finding) => finding.split(':')[0])).toEqual(['INV-10']);
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select a.txid from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
    values: [id],
  });
  const txid = rows[0]?.txid as string;
  const available = () => service.balance(`merchant:${service.merchantId}:available:USDT`);
  const before = await available();
  honest.alter(WITHOUT_RECEIPTS);
  await expect(recover(txid)).rejects.toThrow(/is booked once two nodes show alike how it ended .*shows it in no block/);
  honest.alter({});
  const { fee } = (await recover(txid)) ?? {};
  expect(fee).toBeGreaterThan(0n);
  expect(await shown(id)).toMatchObject({ status: 'completed', error: null });
  expect(before - (await available())).toBe(FIFTY + (fee as bigint));
  await expect(recover(txid)).rejects.toThrow('which is final');
  expect(await recover(`0x${'ee'.repeat(32)}`)).toBeNull();
  expect(await service.findings()).toEqual([]);
});

test('one that was recovered and leaves the chain again is given back again; its gas is what each block says', {
  timeout: TIMEOUT,
}, async () => {
  await service.goOn();
  const id = await paidAndDenied();
  honest.alter(LYING);
  await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed', error: 'reverted' });
  await isHonestAgain();
  honest.alter({});
  const { rows } = await service.db.query<{ batch: string; txid: string; height: number; hash: string; gas: string }>({
    text: `select a.batch_id as batch, a.txid, a.height, a.block_hash as hash, a.gas_paid as gas from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1`,
    values: [id],
  });
  const [{ batch, txid, height, hash, gas }] = rows as [(typeof rows)[0] & object];
  const [nonce] = (
    await service.db.query<{ txid: string; vout: number }>({
      text: 'select txid, vout from outgoing_inputs where batch_id = $1',
      values: [batch],
    })
  ).rows;
  const inBlock = (by: string, gasPaid: bigint): Promise<void> =>
    service.db.transaction((sql) =>
      recordOutgoing(
        sql,
        'USDT',
        { height, hash },
        [{ txid: by, outputs: [], spends: [nonce!], outcome: { result: 'paid', gasPaid } }] as never,
        new Set(),
      ),
    );
  const leaves = (): Promise<void> => service.db.transaction((sql) => takeBackOutgoing(sql, 'USDT', height - 1));
  const available = () => service.balance(`merchant:${service.merchantId}:available:USDT`);
  const before = await available();
  for (const gasPaid of [BigInt(gas) * 2n, BigInt(gas) / 2n, BigInt(gas)]) {
    await inBlock(txid, gasPaid);
    await evmProgress(service.ctx, batch, height + FINAL, { mayFail: true });
    const facts = { txid, coinbase: false, inputs: [], outputs: [], spends: [], outcome: { result: 'paid', gasPaid } } as const;
    const ended = { ended: { height, blockHash: hash, facts }, isFinal: true, said: [] };
    const { fee } = (await recoverFailedOnEvm(service.ctx, { txid, by: 'operator test', acceptsLoss: false, shown: ended }))!;
    expect(await available()).toBe(before - FIFTY - fee);
    await service.db.query({ text: 'update outgoing_batches set due_at = null, lease_until = null' });
    // the address has paid for gas what it has really cost
    const isTrue = gasPaid === BigInt(gas);
    expect((await service.findings()).filter((finding) => isTrue || !/^EVM-[12]:/.test(finding))).toEqual([]);
    // a stranger's has taken its nonce in another branch
    await leaves();
    expect(await evmProgress(service.ctx, batch, height + FINAL, { mayFail: true })).toBe('reorged');
    await inBlock(`0x${'ef'.repeat(32)}`, 0n);
    expect(await evmProgress(service.ctx, batch, height + FINAL, { mayFail: true })).toBe('displaced');
    expect([await available(), (await shown(id)).status]).toEqual([before, 'failed']);
    await leaves();
  }
});
