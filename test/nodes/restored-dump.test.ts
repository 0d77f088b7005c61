// A database restored from a dump, on a chain that continued: every later customer gets a new address, and what the customers of lost
// transactions pay is credited to nobody else. The whole service on the sandbox's node.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { readSkipped } from '../../src/store/chain/signer-status.ts';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { copyDatabase, type TestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { openBursar } from './bursar.ts';

vi.setConfig({ testTimeout: 120_000 });

type Bursar = Awaited<ReturnType<typeof openBursar>>;
type Owed = { readonly id: string; readonly address: string; readonly script: Buffer; readonly minor: bigint };
let node: ServedNode;
let folder: string;
const closers: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  node.mine(2);
  folder = await mkdtemp(join(tmpdir(), 'bursar-restored-'));
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await node.stop();
  await rm(folder, { recursive: true, force: true });
});

async function open(options: { database?: TestDatabase; signerFolder?: string } = {}): Promise<Bursar> {
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [node.url], { signerFolder: join(folder, 'signer'), ...options });
  let isOpen = true;
  const close = bursar.close;
  bursar.close = async () => {
    if (isOpen) await close();
    isOpen = false;
  };
  closers.push(() => bursar.close());
  return bursar;
}
async function owe(bursar: Bursar, count: number): Promise<Owed[]> {
  const owed: Owed[] = [];
  for (let n = 0; n < count; n++) {
    const made = await bursar.owe(50_00n);
    const script = Buffer.from(await bursar.scriptOf(made.transactionId));
    owed.push({ id: made.transactionId, address: made.address, script, minor: made.amountDue });
  }
  return owed;
}
const pay = (owed: Owed) => node.pay([{ minor: owed.minor, script: owed.script }]);
const statusOf = async (bursar: Bursar, { id }: Owed) => (await bursar.story(id)).statuses.at(-1);

/** Customers come before the dump and after it; of these the last one has paid. Then everything is gone but the dump and the signer's folder. */
async function disaster(): Promise<{ dump: TestDatabase; lost: Owed[]; paid: Owed }> {
  const bursar = await open();
  const worker = bursar.worker(50);
  await bursar.settle(worker);
  await owe(bursar, 10);
  await eventually('ten lie ready, and nobody asks for more', async () => {
    const text = 'select next_index >= 20 and not exists (select 1 from address_requests) as quiet from account_xpubs';
    return (await bursar.ctx.db.query<{ quiet: boolean }>({ text })).rows[0]?.quiet;
  });
  const dump = await copyDatabase(bursar.url);
  await cp(join(folder, 'signer'), join(folder, 'signer-then'), { recursive: true });
  const lost = await owe(bursar, 40);
  const paid = lost.at(-1)!;
  pay(paid);
  node.mine(2);
  await bursar.settle(worker);
  expect(await statusOf(bursar, paid)).toBe('succeeded');
  await bursar.close();
  return { dump, lost, paid };
}

test('new customers get addresses of their own, and the late payments to lost ones change nothing of theirs', async () => {
  const { dump, lost } = await disaster();
  const bursar = await open({ database: dump });
  const fresh = await owe(bursar, 12);
  const addresses = new Set(lost.map(({ address }) => address));
  expect(fresh.filter(({ address }) => addresses.has(address))).toEqual([]);
  for (const one of lost.slice(0, -1)) pay(one);
  pay(fresh[0]!);
  node.mine(8);
  const worker = bursar.worker(50);
  await bursar.settle(worker);
  expect(await statusOf(bursar, fresh[0]!)).toBe('succeeded');
  for (const one of fresh.slice(1)) expect(await statusOf(bursar, one)).toBe('started');
  expect(await bursar.findings()).toEqual([]);
  expect(await readSkipped(bursar.ctx.db)).toMatchObject([{ currency: 'BTC', cause: 'database_behind' }]);
});

test("also where the signer's folder is lost, or the older copy of the two", async () => {
  const { dump, lost } = await disaster();
  const bursar = await open({ database: dump, signerFolder: join(folder, 'signer-new') });
  const fresh = await owe(bursar, 12);
  const addresses = new Set(lost.map(({ address }) => address));
  expect(fresh.filter(({ address }) => addresses.has(address))).toEqual([]);
  expect(await readSkipped(bursar.ctx.db)).toMatchObject([{ cause: 'journal_lost' }]);
});

test('where database and signer folder were both put back to one moment, no address is given again either', async () => {
  const { dump, lost } = await disaster();
  const bursar = await open({ database: dump, signerFolder: join(folder, 'signer-then') });
  const worker = bursar.worker(50);
  await bursar.settle(worker);
  const fresh = await owe(bursar, 40);
  const given = new Set(lost.map(({ address }) => address));
  expect(fresh.filter(({ address }) => given.has(address))).toEqual([]);
  // customers of lost transactions pay late: nobody else is credited
  for (const owed of lost.slice(0, 5)) pay(owed);
  node.mine(8);
  await bursar.settle(worker);
  await deepScan(bursar.ctx, 'BTC');
  for (const owed of fresh) expect(await statusOf(bursar, owed)).toBe('started');
  expect(await bursar.findings()).toEqual([]);
});
