// As restored-second-node.test.ts on chains without segwit, on simulated nodes of which the one that is read has an empty mempool: what goes back to a
// customer is not sent again.

import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { afterAll, expect, test } from 'vitest';
import { finalDepth } from '../../src/core/confirmations.ts';
import type { UtxoCode } from '../../src/core/currency.ts';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { recoverTransaction } from '../../src/flow/payouts/after-restore/recover-utxo.ts';
import { newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { encoderOf } from '../../src/outside/utxo/address-encoder.ts';
import { createSimulatedNode } from '../../src/sandbox/utxo/served-node.ts';
import { heightOf } from '../../src/store/chain/blocks.ts';
import { clearBreakers } from '../../src/store/ledger/breakers.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import { EVERYTHING } from '../../src/worker/chain/watch-list.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { askCli } from '../cli/run.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner } from '../support/payout-signer.ts';
import { copyDatabase } from '../support/postgres.ts';
import { openBursar } from './bursar.ts';

const TIMEOUT = 240_000;
const LOOKS_MS = 150_000;
const folders: string[] = [];
const newFolder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'bursar-elsewhere-'));
  folders.push(made);
  return made;
};
afterAll(() => {
  for (const one of folders) rmSync(one, { recursive: true, force: true });
});

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
/** The same node as one that was started with an empty mempool. */
async function withoutMempool(url: string) {
  const target = new URL(url);
  const authorization = `Basic ${btoa(`${target.username}:${target.password}`)}`;
  const ask = async (call: unknown): Promise<{ result?: unknown }> => {
    const headers = { 'content-type': 'application/json', authorization };
    return (await (
      await fetch(target.origin + target.pathname, { method: 'POST', headers, body: JSON.stringify(call) })
    ).json()) as object;
  };
  async function answered(call: Call): Promise<object> {
    if (call.method === 'getrawmempool') return { id: call.id, result: [], error: null };
    if (call.method === 'gettxout') return ask({ ...call, params: [call.params[0], call.params[1], false] });
    return ask(call);
  }
  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const call = JSON.parse(Buffer.concat(parts).toString('utf8')) as Call | Call[];
    const answer = Array.isArray(call) ? await Promise.all(call.map(answered)) : await answered(call);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
  const server = createServer((request, response) => void relay(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://user:x@127.0.0.1:${(server.address() as { port: number }).port}`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** What has left of a payment that goes back, by copies of database and signer's folder from before it. */
async function putBack(currency: UtxoCode) {
  let skew = 0;
  const node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() });
  const empty = await withoutMempool(node.url);
  node.mine(130);
  const folder = newFolder();
  async function open(urls: readonly string[], own: string, database?: Awaited<ReturnType<typeof copyDatabase>>) {
    const bursar = await openBursar(currency, null, urls, { ...(database === undefined ? {} : { database }) });
    const intentKey = await openIntentKey(own);
    const clock = { now: () => Date.now() + skew, steady: () => performance.now() };
    const ctx = { ...bursar.ctx, ports: { ...bursar.ctx.ports, intentKey, clock } };
    const signer = await openPayoutSigner(
      { db: ctx.db, url: bursar.url },
      { folder: own, currencies: [currency], tokenContract: null },
    );
    const worker = bursar.worker(500);
    const told: string[] = [];
    return {
      ...bursar,
      ctx,
      told,
      signer,
      async work(): Promise<void> {
        skew += 60_000;
        await saveFeeRate(ctx.db, currency, 1_000_000n, ctx.ports.clock.now());
        await bursar.settle(worker);
        told.length = 0;
        const options = { signing: signer.signing, owner: 'test', intents: async () => null };
        await oneAfterTheOther(payoutJobs(ctx, [currency], options, (made) => made(tellingTo(told)))).run();
      },
      async end(): Promise<void> {
        await signer.close();
        await bursar.close();
      },
    };
  }
  const first = await open([node.url], folder);
  await first.work();
  const owed = await first.owe(100_000_00n);
  node.pay([{ minor: owed.amountDue, script: await first.scriptOf(owed.transactionId) }]);
  const [own] = (await newOwnAddresses(first.ctx, currency, 1)) ?? [];
  node.pay([{ minor: 10n ** 10n, script: Buffer.from(own?.script as Uint8Array) }]);
  node.mine(finalDepth(currency).depth + 1);
  await first.work();
  await first.work();
  const { address: destination } = encoderOf(
    currency,
    'regtest',
  )(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), true));
  const { merchantId } = first;
  const asked = { merchantId, transactionId: owed.transactionId, destination, part: null, currency: null };
  await reimburseTransaction(first.ctx, asked);
  const dump = await copyDatabase(first.url);
  const then = newFolder();
  cpSync(folder, then, { recursive: true });
  await first.work();
  const [sent, ...more] = [...node.state.mempool.values()].map(({ transaction }) => transaction.txid);
  expect([first.told, typeof sent, more]).toEqual([[], 'string', []]);
  await first.end();
  return {
    node,
    /** The same node with an empty mempool. */
    empty: empty.url,
    sent: sent as string,
    transactionId: owed.transactionId,
    /** A service on the copies. */
    reopened: (urls: readonly string[]) => open(urls, then, dump),
    /** "bursar payout recover --block" */
    async recovers({ ctx }: Awaited<ReturnType<typeof open>>, hash: string): Promise<void> {
      const height = (await heightOf(ctx.db, currency, hash)) as number;
      const port = payingPortOf(ctx, currency);
      const raw = (await port.rawTransaction(sent as string, hash)) as Uint8Array;
      const facts = port.readRaw(raw, EVERYTHING) as TransactionFacts;
      await recoverTransaction(ctx, { currency, block: { height, hash }, facts, raw, by: 'ann', acceptsLoss: false });
      await clearBreakers(ctx.db, 'ann', ctx.ports.clock.now());
    },
    async end(): Promise<void> {
      empty.close();
      await node.stop();
    },
  };
}

test.each(['LTC', 'BCH', 'DASH', 'DOGE'] as const)(
  'what only the mempool of another node has: %s',
  {
    timeout: TIMEOUT,
  },
  async (currency) => {
    const { node, empty, sent, transactionId, ...before } = await putBack(currency);
    const second = await before.reopened([empty, node.url]);
    await second.work();
    expect(second.told.join()).toMatch(new RegExp(`nothing new is paid in ${currency}: 127.0.0.1:\\d+ has what .*${sent}`));
    expect([second.signer.journal.count(), node.state.mempool.size]).toEqual([0, 1]);
    node.mine(1);
    await second.work();
    const [found, ...more] = await openMovements(second.ctx.db);
    expect([found?.txid, more]).toEqual([sent, []]);
    await before.recovers(second, found?.blockHash as string);
    node.mine(1);
    // what is worth much is completed once two nodes hold its block
    await second.work();
    await second.work();
    expect(await readRefund(second.ctx, transactionId)).toMatchObject({ status: 'completed', txid: sent });
    expect([second.signer.journal.count(), second.told]).toEqual([0, []]);
    await second.end();
    await before.end();
  },
);

/** Looks until something is so; how many looks the blocks of two days take depends on the machine. */
async function workUntil(service: { work(): Promise<void> }, isSo: () => Promise<boolean>): Promise<void> {
  for (const until = performance.now() + LOOKS_MS; performance.now() < until && !(await isSo()); ) await service.work();
}

test('a copy of two days ago is compared with all blocks since, on a chain with one a minute', { timeout: TIMEOUT }, async () => {
  const { node, sent, transactionId, ...before } = await putBack('DOGE');
  node.mine(2_100);
  const second = await before.reopened([node.url]);
  await workUntil(second, async () => (await openMovements(second.ctx.db)).length > 0);
  const [found] = await openMovements(second.ctx.db);
  expect(found?.txid).toBe(sent);
  await before.recovers(second, found?.blockHash as string);
  await second.work();
  await second.work();
  expect(await readRefund(second.ctx, transactionId)).toMatchObject({ status: 'completed', txid: sent });
  expect(second.signer.journal.count()).toBe(0);
  await second.end();
  await before.end();
});

test('what is in no block that is compared is booked by the block that the operator names', { timeout: TIMEOUT }, async () => {
  const { node, sent, transactionId, ...before } = await putBack('BCH');
  const { hash } = node.mine(1);
  node.mine(2_030);
  const second = await before.reopened([node.url]);
  await workUntil(second, async () => (await openMovements(second.ctx.db)).length > 0);
  expect(await openMovements(second.ctx.db)).toMatchObject([
    { txid: null, finding: expect.stringMatching(/payout recover .* --block/) },
  ]);
  const here = {
    DATABASE_URL: second.url,
    BURSAR_DATA_DIR: newFolder(),
    BURSAR_NETWORK: 'regtest',
    BURSAR_BCH_RPC_URL: node.url,
  };
  expect(await askCli<object>(['payout', 'recover', sent, '--block', hash], here)).toMatchObject({ currency: 'BCH', txid: sent });
  await clearBreakers(second.ctx.db, 'ann', second.ctx.ports.clock.now());
  const isOver = async () =>
    (await readRefund(second.ctx, transactionId))?.status === 'completed' && (await openMovements(second.ctx.db)).length === 0;
  await workUntil(second, isOver);
  expect(await openMovements(second.ctx.db)).toEqual([]);
  expect(await readRefund(second.ctx, transactionId)).toMatchObject({ status: 'completed', txid: sent });
  expect([second.signer.journal.count(), second.told]).toEqual([0, []]);
  await second.end();
  await before.end();
});
