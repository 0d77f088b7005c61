// At the signer's socket, with the database owner's password and the worker's place, but neither the signer's folder nor the API's key: what
// is given again, and what a folder that was put back to an earlier copy signs.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { releaseEntry } from '../../src/core/payouts/postings.ts';
import type { SignedTransaction, TransactionToSign } from '../../src/core/signer-wire.ts';
import { signerSocket } from '../../src/main/wiring/signer-paths.ts';
import { createSignerClient, type SignerClient } from '../../src/outside/signer-client.ts';
import { type SignerServer, serveSigner } from '../../src/signer/server.ts';
import { SIGNATURES } from '../../src/signer/signature-journal.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { openTestSigner, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
let at: TestSigner;
let client: SignerClient;
let server: SignerServer;

/** The signer's process, also a second one after the first has ended. */
async function serve(): Promise<void> {
  client?.close();
  await server?.close();
  const signing = await at.start();
  const path = signerSocket(at.folder);
  server = await serveSigner({ path, mode: 0o600 }, { keyring: at.keyring, signing, onTrouble: () => undefined });
  client = createSignerClient(path);
}
beforeEach(async () => {
  at = await openTestSigner();
  await serve();
});
afterEach(async () => {
  client.close();
  await server.close();
  await at.close();
});

const sign = (request: TransactionToSign): Promise<SignedTransaction> => client.ask<'sign'>({ op: 'sign', ...request });
const refused = (rule: string) => ({ fault: 'refused', message: expect.stringMatching(new RegExp(`^rule ${rule} `)) });
const journal = async () => (await client.ask({ op: 'signed', after: 0 })).transactions;

async function paid(): Promise<{ payout: Wanted; request: TransactionToSign; signed: SignedTransaction }> {
  const payout = await at.payout({ batchId: await at.batch() });
  const request = requestFor([payout], [at.input(WHOLE)]);
  return { payout, request, signed: await sign(request) };
}

/** As a cancel leaves it: failed, its hold released, its batch dead. */
async function cancel({ payout }: { readonly payout: Wanted }): Promise<void> {
  await at.owner.query("update payouts set status = 'failed', step = 'ended', error = 'cancelled' where id = $1", [payout.id]);
  await at.owner.query("update outgoing_batches set state = 'dead' where id = $1", [payout.batchId]);
  const atMs = at.clock.nowMs;
  await postEntries(at.db, [{ entry: releaseEntry(payout, 0n), transactionId: null, payoutId: payout.id, atMs }]);
}

it('of a payout that was cancelled after its signature the same bytes are given again, and no other transaction', async () => {
  const one = await paid();
  await cancel(one);
  // they exist, and may be on their way: whoever has lost them must be able to follow them
  expect(await sign(one.request)).toEqual(one.signed);
  await expect(sign(requestFor([one.payout], one.request.inputs, { number: 2, fee: 2_000n }))).rejects.toMatchObject(
    refused('batch'),
  );
  // a cancel that is undone opens nothing but its own batch
  const batchId = await at.batch();
  await at.owner.query("update payouts set status = 'processing', step = 'batched', error = null, batch_id = $2 where id = $1", [
    one.payout.id,
    batchId,
  ]);
  const again = requestFor([{ ...one.payout, batchId }], [at.input(WHOLE)]);
  await expect(sign(again)).rejects.toMatchObject(refused('hold'));
  await at.owner.query('alter table ledger.entry disable trigger all');
  await at.owner.query(`update ledger.entry set key = key || ':gone' where key = $1`, [`po:${one.payout.id}:release`]);
  await expect(sign(again)).rejects.toMatchObject(refused('conflict'));
  expect(await journal()).toEqual([one.signed]);
});

it('a payout that was cancelled before its signature gets none', async () => {
  const payout = await at.payout({ batchId: await at.batch() });
  const request = requestFor([payout], [at.input(WHOLE)]);
  await cancel({ payout });
  await at.owner.query("update outgoing_batches set state = 'reserved' where id = $1", [payout.batchId]);
  await expect(sign(request)).rejects.toMatchObject(refused('payout'));
  await at.owner.query("update payouts set status = 'processing', step = 'batched', error = null where id = $1", [payout.id]);
  await expect(sign(request)).rejects.toMatchObject(refused('hold'));
  expect(await journal()).toEqual([]);
});

it('a folder that was put back signs nothing for what the database has sent since, under its batch or another', async () => {
  const first = await paid();
  const path = join(at.signerFolder, SIGNATURES);
  copyFileSync(path, `${path}.yesterday`);
  const { payout, request, signed } = await paid();
  // as the worker stores it before it sends
  await at.owner.query(
    `with made as (insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at)
                   values ($1, 1, 'BTC', $2, '\\x00', 1000, 1, 1, $3, now()) returning id)
     insert into outgoing_shares (attempt_id, payout_id, vout, fee) select id, $4, 0, 1000 from made`,
    [payout.batchId, signed.txid, signed.sequence, payout.id],
  );
  copyFileSync(`${path}.yesterday`, path);
  await serve();
  expect(await journal()).toEqual([first.signed]);
  await expect(sign(request)).rejects.toMatchObject(refused('journal'));
  await expect(sign(requestFor([payout], [at.input(WHOLE)]))).rejects.toMatchObject(refused('journal'));
  const batchId = await at.batch();
  await at.owner.query('update payouts set batch_id = $2 where id = $1', [payout.id, batchId]);
  await expect(sign(requestFor([{ ...payout, batchId }], [at.input(WHOLE)]))).rejects.toMatchObject(refused('journal'));
  // what it knows it gives again, and goes on with others
  expect(await sign(first.request)).toEqual(first.signed);
  expect((await paid()).signed.sequence).toBe(2);
});
