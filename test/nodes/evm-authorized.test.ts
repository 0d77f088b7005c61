// Another wallet with the same words has signed an authorization (EIP-7702) with the key of an address that payouts leave from: it uses a nonce without a
// transaction of that address, whoever sends it. Payouts stop until an operator has it booked, and go on with the next nonce.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { addressOf, secretOf } from '../../src/sandbox/evm/transaction.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout, readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type Authorization, authorization, carrying } from '../support/evm/set-code.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { earnsDollars, GAS_PRICE, ledgerIsChain, sendsOn, sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b5'.repeat(20)}`;
const NOBODY = `0x${'e7'.repeat(20)}`;
const HOT = { chain: 1, index: 0 } as const;
const HOUR_MS = 3_600_000;
let service: EvmService;
const ours = new Set<string>();
const recovers = (txid: string, acceptsLoss = false) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss });

beforeAll(async () => {
  service = await openEvmService();
  for (const one of await earnsDollars(service)) ours.add(one);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

const count = async (address: string): Promise<number> =>
  Number(await service.anvil.rpc<string>('eth_getTransactionCount', address, 'latest'));
const raw = (bytes: string) => service.anvil.rpc('eth_sendRawTransaction', bytes);
/** What the key of an address has signed with its next nonce, or a later one. */
async function authorized(currency: 'ETH' | 'USDT', later = 0, code = service.anvil.forwarder): Promise<Authorization> {
  const secret = await service.secret(currency, HOT);
  return authorization(secret, { code, nonce: (await count(await service.hot(currency))) + later });
}
let strangers = 0;
/** Somebody sends them. @returns the hash of the transaction that carries them */
async function carried(
  list: readonly Authorization[],
  call: { readonly to?: string; readonly input?: string } = {},
): Promise<string> {
  const stranger = secretOf(`stranger ${++strangers}`);
  await service.anvil.rpc('anvil_setBalance', addressOf(stranger), '0xde0b6b3a7640000');
  const { raw: bytes, txid } = carrying(stranger, { to: NOBODY, ...call, list });
  await raw(bytes);
  return txid;
}
/** What comes afterwards is paid, and nothing is red. */
async function goesOn(): Promise<void> {
  await ledgerIsChain(service, ours);
  await service.goOn();
  service.restart();
  const [id, before] = [await service.request(PAYEE), await service.units(PAYEE)];
  await service.work(HOUR_MS);
  await works(service, 2);
  expect(await readPayoutDetails(service.db, id)).toMatchObject({ status: 'completed', trouble: null });
  expect((await service.units(PAYEE)) - before).toBe(50_000_000n);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
}
/** The nonces of batches of payouts in USDT that wait for a signature. */
const reserved = async (): Promise<readonly number[]> => {
  const { rows } = await service.db.query<{ nonce: number }>({
    text: `select i.vout as nonce from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id
            where b.currency = 'USDT' and b.purpose = 'payout' and b.state = 'reserved' and not i.freed`,
  });
  return rows.map((row) => row.nonce);
};
const found = async (): Promise<readonly (string | null)[]> => (await openMovements(service.db)).map(({ txid }) => txid);

test('one that somebody sends is found by its block, and booked', { timeout: TIMEOUT }, async () => {
  const first = await service.request(PAYEE);
  await works(service, 1);
  expect(await readPayout(service.db, first)).toMatchObject({ status: 'completed' });
  const txid = await carried([await authorized('USDT')]);
  await service.mine(2);
  service.restart();
  // a look needs something that is to be paid
  await service.request(NOBODY);
  await service.work(LATER_MS);
  expect(await found()).toEqual([txid]);
  expect(service.told.join()).toMatch(new RegExp(`${txid} carries what was authorized by our address .* at nonce 1 `));
  await expect(recovers(txid)).rejects.toThrow('is in no final block yet');
  await service.mine(FINAL);
  // by three at once
  const all = await Promise.allSettled([recovers(txid), recovers(txid), recovers(txid)]);
  const booked = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(booked).toMatchObject([{ currency: 'USDT', payoutIds: [], lost: 0n, besides: [] }]);
  const refused = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  expect(refused).toMatchObject([{ code: 'not_resolvable' }, { code: 'not_resolvable' }]);
  await expect(recovers(txid)).rejects.toThrow('was not sent by an address that payouts leave from');
  expect(await found()).toEqual([]);
  await goesOn();
});

test.each(['after', 'before'])(
  'one that displaces a signed payout, and is booked %s that has failed: its money is back, and payouts go on',
  { timeout: TIMEOUT },
  async (when) => {
    const id = await service.request(PAYEE);
    await service.work(LATER_MS);
    await service.work(LATER_MS);
    expect(await readPayoutDetails(service.db, id)).toMatchObject({ step: 'batched' });
    await service.anvil.rpc('anvil_dropAllTransactions');
    const before = await service.units(PAYEE);
    const txid = await carried([await authorized('USDT')]);
    await service.mine(FINAL);
    if (when === 'before') await recovers(txid);
    await works(service, 2);
    expect(await found()).toEqual(when === 'before' ? [] : [txid]);
    expect(await readPayout(service.db, id)).toMatchObject({ status: 'failed', error: 'displaced' });
    if (when === 'after') await recovers(txid);
    await goesOn();
    expect(await service.units(PAYEE)).toBe(before + 50_000_000n);
  },
);

test.each(['reserved', 'signed'] as const)(
  'one whose nonce was %s for a payout, and nothing is stored: that leaves with the next, or is resolved',
  { timeout: TIMEOUT },
  async (at) => {
    const [before, nonce] = [await service.units(PAYEE), await count(await service.hot('USDT'))];
    const id = await service.request(PAYEE);
    let isAway = true;
    service.restart(async (step) => {
      if (isAway && step === at) throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
    });
    // a worker dies with the first
    await service.work(LATER_MS).catch(({ message }: Error) => expect(message).toBe('no answer'));
    expect(await reserved()).toEqual([nonce]);
    const txid = await carried([await authorized('USDT')]);
    await service.mine(FINAL);
    await recovers(txid);
    isAway = false;
    await service.goOn();
    service.restart();
    await works(service, 2);
    expect(await reserved()).toEqual([]);
    if (at === 'signed') {
      expect(await readPayout(service.db, id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
      await resolvePayout(service.ctx, { payoutId: id, outcome: 'failed', evidence: 'it was never sent' });
    } else expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
    expect((await service.units(PAYEE)) - before).toBe(at === 'signed' ? 0n : 50_000_000n);
    await goesOn();
  },
);

test('one in a transaction of the address itself, beside others', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('ETH');
  const secret = await service.secret('ETH', HOT);
  const list = [await authorized('ETH', 1), await authorized('ETH', 2), await authorized('USDT')];
  const { raw: bytes, txid } = carrying(secret, { nonce: await count(hot), to: hot, list });
  await raw(bytes);
  await service.mine(FINAL);
  expect(await count(hot)).toBe(Number(list[1]?.[2]) + 1);
  service.restart();
  await works(service, 2);
  const done = await recovers(txid);
  expect(done).toMatchObject({ payoutIds: [], lost: 0n });
  await goesOn();
});

test('one that is carried by a transaction that failed counts all the same', { timeout: TIMEOUT }, async () => {
  const input = transfer(NOBODY, 10n ** 15n);
  const txid = await carried([await authorized('USDT')], { to: service.anvil.token, input });
  await service.mine(FINAL);
  expect(await service.anvil.rpc('eth_getTransactionReceipt', txid)).toMatchObject({ status: '0x0' });
  await recovers(txid);
  const told = 'select resolved_by, resolution from unknown_movements where txid = $1';
  const { rows } = await service.db.query({ text: told, values: [txid] });
  expect(rows).toEqual([{ resolved_by: 'operator test', resolution: expect.stringMatching(/^booked at nonce \d+: no payout$/) }]);
  await goesOn();
});

test.each(['a block later', 'in the same block'])(
  'one that came too late, %s, has used no nonce, and hides no payout that was forgotten',
  {
    timeout: TIMEOUT,
  },
  async (when) => {
    const hot = await service.hot('USDT');
    const list = [await authorized('USDT')];
    // dearer, so that it is the first of its block
    const call = { data: transfer(PAYEE, 50_000_000n), gasPrice: 10n * GAS_PRICE };
    const paid = await sent(service, hot, service.anvil.token, call);
    if (when === 'a block later') await service.mine();
    const txid = await carried(list);
    await service.mine(FINAL);
    expect(await service.anvil.rpc('eth_getTransactionReceipt', paid)).toMatchObject({ status: '0x1' });
    await expect(recovers(txid)).rejects.toThrow('was not sent by an address that payouts leave from');
    const id = await service.request(PAYEE);
    service.restart();
    await works(service, 1);
    expect(await found()).toEqual([paid]);
    expect(await recovers(paid)).toMatchObject({ payoutIds: [id] });
    await works(service, 1);
    await expect(recovers(txid)).rejects.toThrow('was not sent by an address that payouts leave from');
    await goesOn();
  },
);

test('what the address has sent by its new code is booked with it', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const [code, before] = [`0x${'cd'.repeat(20)}`, await service.units(NOBODY)];
  await service.anvil.rpc('anvil_setCode', code, sendsOn(service.anvil.token, NOBODY, 70_000_000n));
  const txid = await carried([await authorized('USDT', 0, code)], { to: hot });
  await service.mine(FINAL);
  expect((await service.units(NOBODY)) - before).toBe(70_000_000n);
  await expect(recovers(txid)).rejects.toThrow('pays 70.000000 USDT to nobody that this database knows (--accept-loss');
  expect((await service.findings()).join()).toContain('70000000 are missing');
  expect(await recovers(txid, true)).toMatchObject({ besides: [{ currency: 'USDT', lost: 70_000_000n }] });
  // before anything is compared again
  expect((await runAudit(service.ctx)).answers.flatMap(({ findings }) => findings)).toEqual([]);
  expect(await service.balance('expense:unknown_outflow:USDT')).toBe(70_000_000n);
  await goesOn();
});
