// What an operator has booked of authorizations (EIP-7702) that a transaction carries: only what addresses of ours have signed, has used its nonce, is known of
// no other transaction, and stands in a final block. On a real database, with what nodes say of it.
import { HDKey } from '@scure/bip32';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { evmAddressOf, evmInput } from '../../src/core/currencies/evm.ts';
import type { EvmCode } from '../../src/core/currency.ts';
import type { AuthorizedByWord, EvmPort, Nonce } from '../../src/core/evm/port.ts';
import type { ChainPort, OutputFacts } from '../../src/core/ports.ts';
import type { Context } from '../../src/flow/context.ts';
import { recoverAuthorized } from '../../src/flow/evm/recover-authorized.ts';
import { recordUnknown } from '../../src/flow/payouts/after-restore/unknown-movements.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverCarried } from '../../src/worker/payouts/evm/authorized.ts';
import { portsFor } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';

const TPUB = { private: 0x04358394, public: 0x043587cf };
const AT_MS = Date.UTC(2026, 5, 1);
const block = { height: 7, hash: `0x${'b1'.repeat(32)}` };
const STRANGER = `0x${'e7'.repeat(20)}`;
const NOBODY = `65766d${'5a'.repeat(20)}`;

let database: Awaited<ReturnType<typeof freshDatabase>>;
let ctx: Context;
/** The address that payouts in a currency leave from. */
const hot = {} as Record<EvmCode, string>;
const script = {} as Record<EvmCode, Buffer>;
const rows = async (text: string, values: readonly unknown[] = []) =>
  (await database.db.query({ text, values: [...values] })).rows;

/** What nodes say: who has signed, of which of them it is said that the nonce is used, or not, and what the address has sent, by currency. */
let said: {
  signers: readonly Nonce[];
  isEnded: boolean;
  isFinal: boolean;
  word(signer: Nonce): Partial<AuthorizedByWord>;
  sent: Partial<Record<EvmCode, readonly OutputFacts[]>>;
};
let txid: string;
let transactions = 0;
const USED = { isUsed: true };
const DENIED = { isDenied: true };

function port(currency: EvmCode): ChainPort {
  const facts = () => ({ txid, coinbase: false, inputs: [], spends: [], outputs: said.sent[currency] ?? [] });
  const shown = () => ({ height: block.height, blockHash: block.hash, facts: facts() });
  const asked: Partial<EvmPort> = {
    currency,
    signersIn: async () => said.signers,
    ended: async () => ({ ended: said.isEnded ? shown() : null, isFinal: said.isFinal, said: ['says nothing'] }),
    authorized: async (_txid, signer) => ({
      ...{ carried: shown(), isUsed: false, isDenied: false, said: ['says so'] },
      ...said.word(signer),
    }),
  };
  return asked as EvmPort;
}

beforeAll(async () => {
  database = await freshDatabase();
  const chains = new Map((['ETH', 'USDT'] as const).map((code) => [code, port(code)]));
  ctx = {
    db: database.db,
    network: 'regtest',
    ports: portsFor('regtest', { now: () => AT_MS }, { chains }),
  } as unknown as Context;
  for (const [at, currency] of (['ETH', 'USDT'] as const).entries()) {
    const xpub = HDKey.fromMasterSeed(Buffer.alloc(32, at + 1), TPUB).derive("m/44'/1'/0'").publicExtendedKey;
    await addSignerKey(database.db, { currency, xpub, at: new Date(AT_MS) });
    script[currency] = Buffer.from(ctx.ports.addresses.ownOf(currency, xpub).derive(0).script);
    hot[currency] = evmAddressOf(script[currency].toString('hex'));
  }
});
afterAll(() => database.drop());
beforeEach(() => {
  txid = `0x${String(++transactions).padStart(64, '0')}`;
  said = { signers: [], isEnded: true, isFinal: true, word: () => USED, sent: {} };
});

const recovers = (acceptsLoss = true) => recoverCarried(ctx, txid, { by: 'operator test', acceptsLoss });
/** The nonces of a transaction that are booked. */
const booked = async (of = txid) =>
  (await rows('select currency, nonce::int as nonce from authorized_nonces where txid = $1 order by nonce', [of])).map(
    ({ currency, nonce }) => `${currency} ${nonce}`,
  );
const by = (nonce: number, address = hot.USDT): Nonce => ({ address, nonce });
const dollars = (amountMinor: bigint): OutputFacts => ({ vout: 0, script: NOBODY, amountMinor });

test('what others have signed is nothing of ours', async () => {
  said.signers = [by(1, STRANGER)];
  expect(await recovers()).toBeNull();
  said.signers = [];
  expect(await recovers()).toBeNull();
  expect(await booked()).toEqual([]);
});

test('what ours has signed is booked with the nonces that it has used, once each, and only once', async () => {
  said.signers = [by(1), by(2), by(1, STRANGER), by(2), by(3)];
  said.word = ({ nonce }) => (nonce === 3 ? DENIED : USED);
  expect(await recovers()).toEqual({ currency: 'USDT', payoutIds: [], lost: 0n, fee: 0n, besides: [], alike: [] });
  expect(await booked()).toEqual(['USDT 1', 'USDT 2']);
  const [trace] = await rows(
    'select currency, block_hash as hash, resolved_by as by, resolution from unknown_movements where txid = $1',
    [txid],
  );
  expect(trace).toEqual({
    currency: 'USDT',
    hash: block.hash,
    by: 'operator test',
    resolution: 'booked at nonce 1, 2: no payout',
  });
  expect(await openMovements(database.db)).toEqual([]);
  expect(await recovers()).toBeNull();
});

test('what a look has found before it was booked is not told, and what is not booked of it is', async () => {
  said.signers = [by(5), by(6)];
  said.word = ({ nonce }) => (nonce === 6 ? DENIED : USED);
  await recovers();
  const tells = async (...nonces: readonly number[]) => {
    const spends = nonces.map((nonce) => evmInput(hot.USDT, nonce));
    const movement = { currency: 'USDT', txid, blockHash: block.hash, finding: 'found', spends } as const;
    await recordUnknown(ctx, 'USDT', { movements: [movement], payoutIds: [] });
    return (await openMovements(database.db)).map((one) => one.txid);
  };
  expect(await tells(5)).toEqual([]);
  expect(await tells(5, 6)).toEqual([txid]);
  said.word = () => USED;
  await recovers();
  expect(await tells(5, 6)).toEqual([]);
});

test('what has used none is nothing to book, and where that is not known it is refused', async () => {
  said.signers = [by(11)];
  said.word = () => DENIED;
  expect(await recovers()).toBeNull();
  said.word = () => ({});
  await expect(recovers()).rejects.toThrow(/authorized with nonce 11, and that it has used that counts once two nodes .*says so/);
  expect(await booked()).toEqual([]);
});

test('only what is in a final block is booked, and shown alike', async () => {
  said.signers = [by(21)];
  said.isEnded = false;
  await expect(recovers()).rejects.toThrow(/once two nodes show alike how it ended.*says nothing/);
  Object.assign(said, { isEnded: true, isFinal: false });
  await expect(recovers()).rejects.toThrow('is in no final block yet');
  expect(await booked()).toEqual([]);
});

test('what one currency of the chain does not show alike is not booked', async () => {
  said.signers = [by(31)];
  let asked = 0;
  said.word = () => (++asked === 1 ? USED : { ...USED, carried: null });
  await expect(recovers()).rejects.toThrow('is shown alike by too few nodes: says so');
  expect(await booked()).toEqual([]);
});

test('two addresses of ours are booked each by itself, and told together', async () => {
  said.signers = [by(41), by(1, hot.ETH), by(2, hot.ETH)];
  expect(await recovers()).toMatchObject({ payoutIds: [] });
  expect((await booked()).sort()).toEqual(['ETH 1', 'ETH 2', 'USDT 41']);
  // of what is known nobody is asked again
  said.isFinal = false;
  expect(await recovers()).toBeNull();
});

test('what it has sent is lost once, by a word of its operator, and is gone from its address', async () => {
  const lost = async () =>
    BigInt(
      (
        await rows(`select coalesce(sum(amount), 0) as n from ledger.account_balance where code = 'expense:unknown_outflow:USDT'`)
      )[0]?.n,
    );
  said.signers = [by(51), by(52)];
  said.sent = { USDT: [dollars(70n)] };
  await expect(recovers(false)).rejects.toThrow('pays 0.000070 USDT to nobody');
  expect(await booked()).toEqual([]);
  expect(await recovers()).toMatchObject({ lost: 0n, fee: 0n, besides: [{ currency: 'USDT', lost: 70n }] });
  expect(await lost()).toBe(70n);
  const off = 'select amount::int as n, encode(script, $2) as at from written_off where left_by = $1';
  expect(await rows(off, [txid, 'hex'])).toEqual([{ n: 70, at: script.USDT.toString('hex') }]);
  // a payout that asks for the same is looked for among what is lost
  expect(await rows('select amount::int as n from lost_outputs where txid = $1', [txid])).toEqual([{ n: 70 }]);
  // in another block, with one nonce more: what it has sent is not lost again
  said.signers = [by(53)];
  expect(await recovers()).toMatchObject({ besides: [] });
  expect(await lost()).toBe(70n);
});

test('what another operator has booked meanwhile is refused, with all that comes with it', async () => {
  said.signers = [by(61)];
  await recovers();
  const of = {
    currency: 'USDT',
    script: script.USDT,
    nonces: [62, 61],
    txid,
    block,
    sent: [],
    by: 'another',
    acceptsLoss: true,
  } as const;
  await expect(recoverAuthorized(ctx, of)).rejects.toThrow(`is known: nonce 61 of ${hot.USDT} is booked`);
  expect(await booked()).toEqual(['USDT 61']);
});

test('two operators at once book it once', async () => {
  said.signers = [by(71)];
  const all = await Promise.allSettled([recovers(), recovers(), recovers()]);
  expect(all.filter((one) => one.status === 'fulfilled' && one.value !== null)).toHaveLength(1);
  for (const one of all) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'not_resolvable' });
  expect(await booked()).toEqual(['USDT 71']);
});

test('where one currency of the chain is configured alone it is booked in that', async () => {
  said.signers = [by(81)];
  const chains = new Map([['USDT', port('USDT')]] as const);
  const alone = { ...ctx, ports: { ...ctx.ports, chains } };
  expect(await recoverCarried(alone, txid, { by: 'operator test', acceptsLoss: false })).toMatchObject({ currency: 'USDT' });
  expect(await booked()).toEqual(['USDT 81']);
});

describe('a batch that has the nonce', () => {
  /** It sends from the address that payouts in USDT leave from. */
  async function reserved(nonce: number): Promise<string> {
    const id = `batch_${nonce}`;
    await rows(
      `insert into outgoing_batches (id, currency, state, fee_rate, lease_epoch, created_at, tip, gas_limit)
         values ($1, 'USDT', 'reserved', 5, 1, now(), 1, 100000)`,
      [id],
    );
    await rows(
      `insert into outgoing_inputs (currency, txid, vout, batch_id, amount, script, account_xpub_id, chain, address_index)
         select 'USDT', $1, $2, $3, 1, $4, min(id), 1, 0 from account_xpubs`,
      [evmInput(hot.USDT, nonce).txid, nonce, id, script.USDT],
    );
    return id;
  }
  const SIGNED = `insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at)
                    values ($1, 1, 'USDT', $1, '\\x02', 1, 1, 1, 1, now())`;
  const bound = async (id: string) =>
    (await rows('select freed from outgoing_inputs where batch_id = $1', [id]))[0]?.freed === false;
  const epoch = async (id: string) =>
    (await rows('select lease_epoch::int as n from outgoing_batches where id = $1', [id]))[0]?.n;

  test('leaves it where nothing is signed: the signer signs nothing more under that lease', async () => {
    const id = await reserved(101);
    const next = await reserved(102);
    said.signers = [by(101)];
    await recovers();
    expect([await bound(id), await epoch(id)]).toEqual([false, 2]);
    expect([await bound(next), await epoch(next)]).toEqual([true, 1]);
  });

  test('keeps it where one transaction is signed, which fails by itself', async () => {
    const id = await reserved(111);
    await rows(SIGNED, [id]);
    said.signers = [by(111)];
    await recovers();
    expect(await booked()).toEqual(['USDT 111']);
    expect([await bound(id), await epoch(id)]).toEqual([true, 1]);
  });

  test('keeps it where its driver signs one at this moment', async () => {
    const id = await reserved(121);
    said.signers = [by(121)];
    let done: ReturnType<typeof recovers> | undefined;
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await database.db.transaction(async (sql) => {
      await sql.query({ text: `update outgoing_batches set state = 'signed' where id = $1`, values: [id] });
      await sql.query({ text: SIGNED, values: [id] });
      done = recovers();
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await vi.waitFor(async () => expect((await admin.query(waits)).rowCount).toBe(1), 10_000);
    });
    await done;
    await admin.end();
    expect(await booked()).toEqual(['USDT 121']);
    expect([await bound(id), await epoch(id)]).toEqual([true, 1]);
  });
});

test('what the address of a key has signed that was replaced since is booked too', async () => {
  await rows(`update account_xpubs set retired_at = now() where currency = 'USDT'`);
  const xpub = HDKey.fromMasterSeed(Buffer.alloc(32, 9), TPUB).derive("m/44'/1'/0'").publicExtendedKey;
  expect(await addSignerKey(database.db, { currency: 'USDT', xpub, at: new Date(AT_MS) })).toBe(true);
  said.signers = [by(91)];
  await recovers();
  expect(await booked()).toEqual(['USDT 91']);
});
