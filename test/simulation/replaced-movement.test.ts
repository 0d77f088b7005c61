// Transactions that our key has signed and this service has not, seen in a mempool: a second copy of the server makes them. Simulated chain, the
// production watcher and look at our outputs, a real database.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recoverTransaction } from '../../src/flow/payouts/after-restore/recover-utxo.ts';
import { createAddressDeriver } from '../../src/outside/utxo/derive.ts';
import { RBF_SEQUENCE, sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { spendingKey } from '../../src/store/chain/xpubs.ts';
import { insertOwnAddress } from '../../src/store/payouts/own-outputs.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { payingPortOf } from '../../src/worker/chain/context.ts';
import { EVERYTHING } from '../../src/worker/chain/watch-list.ts';
import { createOutputCheck } from '../../src/worker/payouts/output-check.ts';
import { account } from '../keys/vectors.ts';
import { openFixedHistory } from './fixed-history.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

const FINAL = 6;
let service: SimulatedService;
beforeAll(async () => {
  service = await openSimulatedService({ feeBps: 0 });
});
afterAll(() => service.close());

const { publicExtendedKey: xpub } = account('BTC', 'regtest', 'a stranger');
const STRANGER = Buffer.from(createAddressDeriver({ currency: 'BTC', network: 'regtest', xpub }).derive(0).script);

const spending = ({ txid, outputs }: Transaction, fee: bigint): Transaction =>
  sealed({
    version: 2,
    inputs: [{ txid, vout: 0, scriptSig: Buffer.alloc(0), sequence: RBF_SEQUENCE, witness: [] }],
    outputs: [{ minor: (outputs[0]?.minor ?? 0n) - fee, script: STRANGER }],
    lockTime: 0,
  });
/** "bursar payout recover --accept-loss" of one that the newest block has. */
async function recovers({ ctx, db }: SimulatedService, { txid }: Transaction): Promise<void> {
  const { rows } = await db.query<{ height: number; hash: string }>({
    text: `select height, hash from blocks where currency = 'BTC' order by height desc limit 1`,
    values: [],
  });
  const block = rows[0] as { height: number; hash: string };
  const port = payingPortOf(ctx, 'BTC');
  const raw = (await port.rawTransaction(txid, block.hash)) as Uint8Array;
  const facts = port.readRaw(raw, EVERYTHING) as NonNullable<ReturnType<typeof port.readRaw>>;
  await recoverTransaction(ctx, { currency: 'BTC', block, facts, raw, by: 'ann', acceptsLoss: true });
}

test('one that another has replaced for good is over, not before that, and one that is in a block stays', async () => {
  const { ctx, db } = service;
  const node = service.node('BTC');
  const history = await openFixedHistory(service, { currency: 'BTC' });
  const purchases = await Promise.all([history.buy(90_00n), history.buy(50_00n)]);
  const [payment, other] = purchases.map((purchase) => history.pay(purchase).tx) as [Transaction, Transaction];
  await history.look();
  history.mine(FINAL);
  await history.look();

  /** What a look that was asked for by itself leaves open. */
  const open = async (): Promise<readonly (string | null)[]> => {
    await history.look();
    await createOutputCheck(ctx, 'BTC').trouble(false);
    return (await openMovements(db)).map(({ txid }) => txid);
  };
  const [first, second, third] = [spending(payment, 1_000n), spending(payment, 5_000n), spending(other, 1_000n)] as const;
  node.enter(first, { denied: false });
  expect(await open()).toEqual([first.txid]);
  node.enter(third, { denied: false });
  node.enter(second, { denied: false });
  expect(await open()).toEqual([first.txid, third.txid, second.txid]);

  node.mine(1);
  expect(await open()).toEqual([first.txid, third.txid, second.txid]);
  await recovers(service, second);

  node.mine(FINAL - 2);
  expect(await open(), 'the block could still be left').toEqual([first.txid, third.txid]);
  node.mine(1);
  expect(await open()).toEqual([third.txid]);
});

test('one that pays an address of ours below the last that was given out is found, though it spends nothing that is known here', async () => {
  const { ctx, db } = service;
  const key = await spendingKey(db, 'BTC');
  if (key === null) throw new Error('the simulated service has a key of BTC');
  const own = ctx.ports.addresses.ownOf('BTC', key.xpub);
  const history = await openFixedHistory(service, { currency: 'BTC' });
  await insertOwnAddress(db, key.id, 'BTC', own.derive(1));
  const coin = { txid: randomBytes(32).toString('hex'), vout: 0 };
  const change = sealed({
    version: 2,
    inputs: [{ ...coin, scriptSig: Buffer.alloc(0), sequence: RBF_SEQUENCE, witness: [] }],
    outputs: [{ minor: 50_000n, script: Buffer.from(own.derive(0).script) }],
    lockTime: 0,
  });
  service.node('BTC').enter(change, { denied: false });
  await history.look();
  await createOutputCheck(ctx, 'BTC').trouble(false);
  expect((await openMovements(db)).map(({ txid }) => txid)).toContain(change.txid);
});

test('it is over too where nothing is left to be compared: all our outputs are spent, and no payout waits', async () => {
  const emptied = await openSimulatedService({ feeBps: 0 });
  const { ctx, db } = emptied;
  const node = emptied.node('BTC');
  const history = await openFixedHistory(emptied, { currency: 'BTC' });
  const payment = history.pay(await history.buy(90_00n)).tx as Transaction;
  await history.look();
  history.mine(FINAL);
  const check = createOutputCheck(ctx, 'BTC');
  const open = async (): Promise<readonly (string | null)[]> => {
    await history.look();
    await createOutputCheck(ctx, 'BTC').trouble(false);
    return (await openMovements(db)).map(({ txid }) => txid);
  };
  await history.look();
  await check.trouble(false);
  expect(check.hasPassed()).toBe(true);
  const [first, second] = [spending(payment, 1_000n), spending(payment, 5_000n)];
  node.enter(first, { denied: false });
  expect(await open()).toEqual([first.txid]);
  node.enter(second, { denied: false });
  node.mine(1);
  expect(await open()).toEqual([first.txid, second.txid]);
  await check.trouble(false);
  expect(check.hasPassed(), 'it is looked at again at rest too, until it is over').toBe(false);
  await recovers(emptied, second);
  node.mine(FINAL - 2);
  expect(await open(), 'the block could still be left').toEqual([first.txid]);
  node.mine(1);
  expect(await open()).toEqual([]);
  await emptied.close();
});
