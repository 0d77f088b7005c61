// A worker that lives on while its database is replaced by an older state of itself (a failover that lost the last writes, a dump or a snapshot that was put
// back): it forgets what it derived from the lost one, and every payment is seen that the chain shows.
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { type Owed, type WatchedChain, watchChain } from '../nodes/watched-chain.ts';
import { eventually } from '../support/service.ts';
import { openTwoServers } from '../support/two-servers.ts';

let node: ServedNode;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
});
afterEach(() => node.stop());

const worker = (url: string): Database =>
  connect({ url, role: 'bursar_app', maxConnections: 4, applicationName: 'test worker', checksIdentity: true });

describe('a failover that lost the last writes', () => {
  let servers: Awaited<ReturnType<typeof openTwoServers>>;
  let chain: WatchedChain;
  let first: Owed;
  const evidence: (string | null)[] = [];
  beforeEach(async () => {
    servers = await openTwoServers(async (url) => {
      const db = connect({ url, role: 'bursar_app', maxConnections: 4, applicationName: 'test' });
      const before = await watchChain('BTC', node.url, { database: { db, url, drop: () => db.close() } });
      await before.catchUp();
      first = await before.owe();
      await before.close();
    });
    const db = worker(servers.url);
    evidence.length = 0;
    db.identity.onChanged((one) => evidence.push(one));
    chain = await watchChain('BTC', node.url, { database: { db, url: servers.url, drop: () => db.close() } });
  });
  afterEach(async () => {
    await chain?.close();
    await servers?.close();
  });

  /** Database transactions that the copy does not have. */
  async function useUp(count: number): Promise<void> {
    const db = connect({ url: servers.firstUrl, role: null, maxConnections: 1, applicationName: 'test' });
    for (let i = 0; i < count; i++) await db.query({ text: 'select pg_current_xact_id()' });
    // more than the copy may write to its own log by itself, when it starts
    await db.query({ text: `select pg_logical_emit_message(false, 'test', repeat('x', 4000000))` });
    await db.close();
  }
  /** A pass that fails is tried again, as the worker's loop does. */
  const untilCaughtUp = () =>
    eventually('caught up', async () => {
      const pass = await chain.watcher.pass({ quiet: true }).catch(() => null);
      return pass?.caughtUp === true ? pass : null;
    });

  test('a payment that was recorded in them is recorded again, and one to a transaction made after it is seen', {
    timeout: 60_000,
  }, async () => {
    await chain.catchUp();
    node.pay([{ script: first.script, minor: 100_000n }]);
    await chain.catchUp();
    expect(await chain.facts(first)).toMatchObject([{ state: 'mempool', amount: 100_000n }]);
    await useUp(500);
    const lost = await chain.owe();
    node.pay([{ script: lost.script, minor: 100_000n }]);
    await chain.catchUp();
    expect(await chain.facts(lost)).toHaveLength(1);
    // broken sessions alone are no other database
    servers.cut();
    await untilCaughtUp();
    expect(evidence.filter((one) => one !== null)).toEqual([]);

    servers.failOver();
    const second = await eventually('the copy answers', () => chain.owe().catch(() => null));
    node.pay([{ script: second.script, minor: 200_000n }]);
    await untilCaughtUp();
    expect(await chain.facts(first)).toMatchObject([{ state: 'mempool', amount: 100_000n }]);
    expect(await chain.facts(second)).toMatchObject([{ state: 'mempool', amount: 200_000n }]);
    // and from here on as ever
    const third = await chain.owe();
    node.pay([{ script: third.script, minor: 300_000n }]);
    node.mine(1);
    await untilCaughtUp();
    for (const owed of [first, second, third]) expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
    expect(evidence.filter((one) => one !== null)).toEqual([expect.stringContaining('the log position went back')]);
  });
});

test('tables that are filled again from a dump, under sessions that stay open', async () => {
  const chain = await watchChain('BTC', node.url);
  try {
    const owed = await chain.owe();
    await chain.catchUp();
    const admin = new pg.Client({ connectionString: chain.url });
    await admin.connect();
    await admin.query('create table dumped as select * from transactions');
    node.pay([{ script: owed.script, minor: 100_000n }]);
    await chain.catchUp();
    expect(await chain.facts(owed)).toHaveLength(1);
    await admin.query(
      'begin; truncate transactions, payments, payment_inputs cascade; insert into transactions select * from dumped; commit',
    );
    await admin.end();
    expect(await chain.facts(owed)).toEqual([]);
    chain.skew = 11_000; // nothing is new: the worker writes only its sign of life
    await eventually('recorded again', async () => {
      await chain.watcher.pass({ quiet: true }).catch(() => null);
      return (await chain.facts(owed)).length === 1;
    });
  } finally {
    await chain.close();
  }
});
