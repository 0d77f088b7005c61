// The node that is read makes up, in a block that all nodes have, what has used the nonce of a payout, and no block takes the payout meanwhile: once
// it is said no more, the payout is sent again, and no one's word of before stands against it.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'e6'.repeat(20)}`;
const STRANGER = `0x${'7d'.repeat(20)}`;
type Json = Readonly<Record<string, unknown>>;

dollarsOnTwoNodesForAll();

/** A payout that is sent and that no block takes: nodes have thrown it away. */
async function thrownAway(): Promise<{ readonly id: string; readonly txid: string; readonly transaction: Json }> {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select a.txid from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
    values: [id],
  });
  const txid = rows[0]?.txid as string;
  const transaction = await service.anvil.rpc<Json>('eth_getTransactionByHash', txid);
  await service.anvil.rpc('anvil_dropTransaction', txid);
  return { id, txid, transaction };
}

/** A stranger's transaction is mined, and the node that is read shows it as another. @param as what it shows of transaction and receipt @returns what it says */
async function shownAs(as: Json, { logs = [], ...receipt }: Json & { readonly logs?: readonly Json[] }): Promise<Alteration> {
  const { hash: carrier } = await service.anvil.send({ to: STRANGER, value: 1n });
  await service.anvil.mine(1);
  const [real, paid] = await Promise.all(
    ['eth_getTransactionByHash', 'eth_getTransactionReceipt'].map((method) => service.anvil.rpc<Json>(method, carrier)),
  );
  const { blockHash, blockNumber, transactionIndex } = real as Json;
  const transaction = { ...real, ...as, blockHash, blockNumber, transactionIndex };
  const ended = { ...paid, ...receipt, logs: logs.map((log) => ({ ...log, blockHash })) };
  const changed = (one: unknown): unknown => {
    const { hash, transactionHash } = one as Json;
    return hash === carrier ? transaction : transactionHash === carrier ? ended : one;
  };
  const told: Alteration = {
    instead({ method, params }) {
      if (params[0] !== (transaction as Json).hash) return null;
      if (method === 'eth_getTransactionByHash') return { result: transaction };
      return method === 'eth_getTransactionReceipt' ? { result: ended } : null;
    },
    afterwards({ method }, answer) {
      const { result } = answer as { result?: Json & { transactions?: readonly unknown[] } };
      if (method === 'eth_getBlockReceipts') return { ...answer, result: (result as unknown as unknown[]).map(changed) };
      // the traces name their transactions
      if (method.startsWith('debug_'))
        return JSON.parse(JSON.stringify(answer).replaceAll(carrier, String((transaction as Json).hash)));
      if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
      return { ...answer, result: { ...result, transactions: result.transactions.map(changed) } };
    },
  };
  nodes.read.alter(told);
  await service.settle();
  return told;
}
/** The receipt of a payout that has paid. */
function paidBy(txid: string, { from }: Json) {
  const { token } = service.anvil;
  const word = (address: unknown): string => `0x${String(address).slice(2).padStart(64, '0')}`;
  const topics = ['0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef', word(from), word(PAYEE)];
  const log = { address: token, topics, data: `0x${50_000_000n.toString(16).padStart(64, '0')}` };
  return { transactionHash: txid, from, status: '0x1', logs: [log] };
}
const shown = async (id: string) => {
  const found = await readPayoutDetails(service.db, id);
  return { status: found?.status, trouble: found?.trouble ?? null };
};
/** The node tells the truth, what was read of the newest blocks is not asked for again, and the operator lets payouts go on. */
async function truth(): Promise<void> {
  nodes.read.alter({});
  await service.mine(10);
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  await service.goOn();
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  for (let look = 0; look < 2; look++) {
    await service.mine(FINAL);
    await service.work(LATER_MS);
  }
}
async function isPaid(id: string): Promise<void> {
  expect(await shown(id)).toEqual({ status: 'completed', trouble: null });
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
}

test('a payout that it shows in a block is sent again when no block has it', { timeout: TIMEOUT }, async () => {
  const { id, txid, transaction } = await thrownAway();
  await shownAs(transaction, { transactionHash: txid, from: transaction.from, status: '0x0' });
  await service.mine(20);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing' });
  await truth();
  await isPaid(id);
});

test('one that it shows as paid, alike', { timeout: TIMEOUT }, async () => {
  const { id, txid, transaction } = await thrownAway();
  await shownAs(transaction, paidBy(txid, transaction));
  await service.mine(20);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({
    status: 'processing',
    trouble: expect.stringContaining('counts once two nodes show the same'),
  });
  await truth();
  await isPaid(id);
});

test('a sweep that it shows in a block is sent again when no block has it, and the audit stops nothing meanwhile', {
  timeout: TIMEOUT,
}, async () => {
  const { address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, 10n ** 17n);
  await service.mine(FINAL);
  const sweep = async () => (await service.batches('sweep')).findLast(({ currency }) => currency === 'ETH');
  for (let look = 0; look < 6 && (await sweep())?.attempts !== 1; look++) await service.work(LATER_MS);
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select txid from outgoing_attempts where batch_id = $1',
    values: [(await sweep())?.id],
  });
  const txid = rows[0]?.txid as string;
  const transaction = await service.anvil.rpc<Json>('eth_getTransactionByHash', txid);
  await service.anvil.rpc('anvil_dropTransaction', txid);
  await shownAs(transaction, { transactionHash: txid, from: transaction.from, status: '0x1' });
  await service.mine(FINAL);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await sweep()).toMatchObject({ state: 'mined' });
  nodes.read.alter({});
  await service.mine(10);
  await service.work(LATER_MS);
  expect((await runAudit(service.ctx)).answers.filter(({ findings }) => findings.length > 0)).toEqual([]);
  for (let look = 0; look < 3; look++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
  expect([await sweep(), await service.ether(address)]).toMatchObject([{ state: 'final', attempts: 1 }, 0n]);
  expect(await service.findings()).toEqual([]);
});

test('a payout whose nonce it says that another has used is sent again', { timeout: TIMEOUT }, async () => {
  const { id, transaction } = await thrownAway();
  const { from, nonce } = transaction;
  await shownAs({ from, nonce }, { from });
  await service.mine(FINAL);
  for (let look = 0; look < 2; look++) await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'processing' });
  expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain('which was not signed here');
  await truth();
  await isPaid(id);
});

test('a payout that has failed, and that it shows as paid in another block, stays failed and stops nothing any more', {
  timeout: TIMEOUT,
}, async () => {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(1);
  });
  await service.mine(FINAL);
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  expect(await shown(id)).toMatchObject({ status: 'failed' });
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select a.txid from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
    values: [id],
  });
  const txid = rows[0]?.txid as string;
  const transaction = await service.anvil.rpc<Json>('eth_getTransactionByHash', txid);
  const told = await shownAs(transaction, paidBy(txid, transaction));
  await service.work(LATER_MS);
  const isStopped = async () =>
    expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain('is paid by');
  await isStopped();
  // nor does it go while any node says so, or one is silent
  nodes.read.alter({});
  for (const other of [told, SILENT]) {
    nodes.other.alter(other);
    await service.mine(10);
    await service.work(LATER_MS);
    await service.goOn();
    await service.work(LATER_MS);
    await isStopped();
  }
  nodes.other.alter({});
  await truth();
  expect(await shown(id)).toMatchObject({ status: 'failed' });
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});
