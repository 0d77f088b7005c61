// A signer as its process wires it, on a real database: its seed, its journal and trusted keys in a folder, its own read-only role; an API's
// intent key; and functions that write what the API and the worker write before they ask for a signature.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import pg from 'pg';
import { BIP32_VERSIONS } from '../../src/core/account-key.ts';
import { type Network, UTXO_CODES, type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { type IntentKey, intentBytes, type PayoutIntent } from '../../src/core/payouts/intent.ts';
import { shares } from '../../src/core/payouts/outgoing-fees.ts';
import { holdEntry } from '../../src/core/payouts/postings.ts';
import { REIMBURSEMENT } from '../../src/core/payouts/units.ts';
import type { SignedTransaction, TransactionToSign } from '../../src/core/signer-wire.ts';
import { openIntentKey, readIntentPublicKey } from '../../src/main/wiring/intent-key.ts';
import { trustedIntentKeys, trustFirstIntentKey } from '../../src/signer/intent-trust.ts';
import { createKeyring } from '../../src/signer/keyring.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { scriptsOf } from '../../src/signer/own-scripts.ts';
import { openSignatureJournal, SIGNATURES, type SignatureJournal } from '../../src/signer/signature-journal.ts';
import { createSigning, type Signing, type SigningOptions } from '../../src/signer/signing.ts';
import { createTurns } from '../../src/signer/turns.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';
import { rawTransaction } from '../support/raw-blocks.ts';

export const WHOLE = 100_000_000n;
export type Wanted = {
  readonly id: string;
  readonly currency: UtxoCode;
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly script: string;
  readonly batchId: string;
  readonly merchantId: bigint;
  /** The transaction whose outputs go back; null for a payout. */
  readonly reimburses: string | null;
};
type OverLightning = Pick<SigningOptions, 'countedAlone' | 'leftBesides'>;
export type TestSigner = Awaited<ReturnType<typeof openTestSigner>>;
type Input = TransactionToSign['inputs'][number];
let last = 0;
/** Ids that no other part of a test has. */
export const newId = (prefix: string): string => `${prefix}_${++last}_${randomBytes(4).toString('hex')}`;
/** P2WPKH where the chain has it, otherwise P2PKH. */
export const payeeScript = (currency: UtxoCode = 'BTC'): string => {
  const hash = randomBytes(20).toString('hex');
  return utxoRow(currency).utxo.blockFeatures.segwit ? `0014${hash}` : `76a914${hash}88ac`;
};

export async function openTestSigner(
  options: { readonly network?: Network; readonly limits?: SignerLimits; readonly overLightning?: OverLightning } = {},
) {
  const network = options.network ?? 'regtest';
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bursar-signing-')));
  const database = await freshDatabase();
  const owner = new pg.Pool({ connectionString: database.url, max: 2 });
  owner.on('error', () => undefined); // its idle sessions end with the database
  // the signer reads no transactions, so what a reimbursement gives back need not be there
  await owner.query('alter table payouts drop constraint payouts_reimburses_fkey');
  const readOnly = connect({ url: database.url, role: 'bursar_signer', maxConnections: 1, applicationName: 'test signer' });
  const signerFolder = join(folder, 'signer');
  const keyring = createKeyring({
    folder: signerFolder,
    network,
    passphrase: { kind: 'generated' },
    makesItsOwn: true,
  });
  const accounts = (await keyring.accounts()) ?? [];
  const intents = await openIntentKey(folder);
  await trustFirstIntentKey(signerFolder, (await readIntentPublicKey(folder)) as string);
  const clock = { nowMs: Date.UTC(2026, 5, 1), steadyMs: 0 };
  const journals: SignatureJournal[] = [];

  /** Another process on the same folder, after the one before has ended. */
  async function start(limits: SignerLimits = options.limits ?? {}, giveBackFailed = async () => false): Promise<Signing> {
    await journals.pop()?.close();
    const opened = await openSignatureJournal(signerFolder, network, { now: () => clock.nowMs, steady: () => clock.steadyMs });
    journals.push(opened);
    return createSigning({
      keyring,
      db: readOnly,
      journal: async () => opened,
      intentKeys: async () => (await trustedIntentKeys(signerFolder)) ?? [],
      limits,
      countedAlone: createTurns(),
      ...options.overLightning,
      giveBackFailed,
      tokenContract: null,
      now: () => clock.nowMs,
      steady: () => clock.steadyMs,
    });
  }

  const xpubOf = (currency: UtxoCode): string => accounts.find((one) => one.currency === currency)?.xpub as string;
  const scripts = new Map(
    UTXO_CODES.map((currency) => [currency, scriptsOf({ ...accounts.find((one) => one.currency === currency)!, currency })]),
  );

  /** A merchant's balance, as deposits have made it. */
  async function fund(merchantId: bigint, currency: UtxoCode, amount: bigint): Promise<void> {
    const postings = [
      { account: `asset:chain:${currency}`, amount },
      { account: `merchant:${merchantId}:available:${currency}`, amount: -amount },
    ];
    const entry = { key: newId('dep'), kind: 'deposit', postings, parts: [] };
    await postEntries(database.db, [{ entry, transactionId: null, atMs: clock.nowMs }]);
  }
  const intentOf = (wanted: Wanted): PayoutIntent => {
    const { id, script, batchId: _batch, ...rest } = wanted;
    return { network, payoutId: id, method: methodOf(wanted), destination: script, createdAtMs: clock.nowMs, ...rest };
  };
  async function insertPayout(wanted: Wanted, signed: { readonly keyId: string; readonly signature: Uint8Array }): Promise<void> {
    await owner.query(
      `insert into payouts (id, merchant_id, amount_text, currency, amount, fee_max, destination, script, status, step, batch_id,
                            intent_key, intent, created_at, method, reimburses, part)
       values ($1, $2, $3, $4, $5, $6, 'address', $7, 'processing', 'batched', $8, $9, $10, $11, $12, $13, $14)`,
      [
        wanted.id,
        wanted.merchantId,
        wanted.amount.toString(),
        wanted.currency,
        wanted.amount.toString(),
        wanted.feeMax.toString(),
        Buffer.from(wanted.script, 'hex'),
        wanted.batchId,
        signed.keyId,
        Buffer.from(signed.signature),
        new Date(clock.nowMs),
        methodOf(wanted),
        wanted.reimburses,
        wanted.reimburses === null ? null : 'whole',
      ],
    );
  }
  async function hold(wanted: Wanted): Promise<void> {
    const { id, reimburses, currency, amount, merchantId } = wanted;
    const postings = [
      { account: `merchant:${merchantId}:available:${currency}`, amount },
      { account: `refund_payable:${reimburses}:${currency}`, amount: -amount },
    ];
    const entry =
      reimburses === null ? holdEntry(wanted) : { key: `po:${id}:hold`, kind: 'reimbursement_hold', postings, parts: [] };
    await postEntries(database.db, [{ entry, transactionId: null, payoutId: id, atMs: clock.nowMs }]);
  }

  return {
    network,
    folder,
    signerFolder,
    url: database.url,
    db: database.db,
    owner,
    readOnly,
    keyring,
    intents,
    clock,
    start,
    leaving: () => journals[0]?.index.leaving() ?? [],
    /** Throws the journal away. */
    async forget() {
      await journals.pop()?.close();
      rmSync(join(signerFolder, SIGNATURES));
    },
    fund,
    hold,
    intentOf,
    insertPayout,
    xpubOf,
    /** The script of one of the signer's keys, hex. */
    script: (currency: UtxoCode, chain: 0 | 1, index: number) =>
      Buffer.from((scripts.get(currency) as ReturnType<typeof scriptsOf>)(chain, index)).toString('hex'),
    /** An output of the signer's that nobody has spent. */
    input: (amount: bigint, given: Partial<Input> & { readonly currency?: UtxoCode } = {}): Input => {
      const { currency = 'BTC', ...rest } = given;
      return {
        txid: randomBytes(32).toString('hex'),
        vout: 0,
        amount: amount.toString(),
        xpub: xpubOf(currency),
        chain: 0,
        index: 3,
        ...rest,
      };
    },
    /** An output that another transaction made, and that transaction; `more`: by how many bytes it is larger. */
    madeOutput(currency: UtxoCode, amount: bigint, key: { chain: 0 | 1; index: number }, more = 0) {
      const script = (scripts.get(currency) as ReturnType<typeof scriptsOf>)(key.chain, key.index);
      const made = rawTransaction({
        inputs: [{ txid: randomBytes(32).toString('hex'), vout: 1, script: randomBytes(107) }],
        outputs: [
          { minor: 5n, script: randomBytes(25 + more) },
          { minor: amount, script: Buffer.from(script) },
        ],
      });
      const input = { txid: made.txid, vout: 1, amount: amount.toString(), xpub: xpubOf(currency), ...key };
      return { input, previous: made.bytes.toString('hex') };
    },
    /** What the API writes for a payout of a funded merchant (but for BTC a reimbursement), and the worker when it puts it into a batch. */
    async payout(given: Partial<Wanted> & { readonly batchId: string }, key: IntentKey = intents): Promise<Wanted> {
      const { currency = 'BTC' } = given;
      const wanted: Wanted = {
        id: newId('po'),
        currency,
        amount: WHOLE / 10n,
        feeMax: 20_000n,
        script: payeeScript(currency),
        merchantId: 1n,
        reimburses: currency === 'BTC' ? null : newId('txn'),
        ...given,
      };
      await fund(wanted.merchantId, wanted.currency, wanted.amount + wanted.feeMax);
      await hold(wanted);
      await insertPayout(wanted, key.sign(intentBytes(intentOf(wanted))));
      return wanted;
    },
    async batch(
      given: { readonly currency?: UtxoCode; readonly leaseEpoch?: bigint; readonly state?: string } = {},
    ): Promise<string> {
      const id = newId('batch');
      const { currency = 'BTC', leaseEpoch = 1n, state = 'reserved' } = given;
      await owner.query(
        `insert into outgoing_batches (id, currency, state, fee_rate, lease_epoch, due_at, created_at) values ($1, $2, $3, 5000, $4, $5, $5)`,
        [id, currency, state, leaseEpoch, new Date(clock.nowMs)],
      );
      return id;
    },
    async close() {
      await journals.pop()?.close();
      await readOnly.close();
      await owner.end();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const methodOf = ({ reimburses }: Wanted): string => (reimburses === null ? 'bitcoin' : REIMBURSEMENT);

/** A request that pays these payouts with these inputs and a fee, which reimbursements pay out of their amounts; what is left is change. */
export function requestFor(
  payouts: readonly Wanted[],
  inputs: readonly Input[],
  given: Partial<TransactionToSign> & { readonly fee?: bigint } = {},
): TransactionToSign {
  const [first] = payouts as [Wanted];
  const { fee = 1_000n, ...rest } = given;
  const total = inputs.reduce((sum, input) => sum + BigInt(input.amount), 0n);
  const each = shares(fee, payouts.length);
  const outputs = payouts.map(({ id, script, amount, reimburses }, at) =>
    reimburses === null
      ? { payoutId: id, script, amount: amount.toString() }
      : { payoutId: id, script, amount: (amount - (each[at] as bigint)).toString(), total: amount.toString() },
  );
  const left = outputs.reduce((rest, { amount }) => rest - BigInt(amount), total) - fee;
  return {
    currency: first.currency,
    batchId: first.batchId,
    number: 1,
    leaseEpoch: '1',
    inputs,
    outputs,
    change: left > 0n ? { index: 7, amount: left.toString() } : null,
    ...rest,
  };
}

/** Whether a currency's signatures leave the amounts of inputs out. */
export const isLegacy = (currency: UtxoCode): boolean => utxoRow(currency).utxo.addressKind === 'p2pkh';

/** A public key of an account. */
export function publicKeyOf(xpub: string, network: Network, chain: number, index: number): Uint8Array {
  const account = HDKey.fromExtendedKey(xpub, network === 'mainnet' ? BIP32_VERSIONS.mainnet : BIP32_VERSIONS.test);
  return account.deriveChild(chain).deriveChild(index).publicKey as Uint8Array;
}

/** A signature as the journal keeps it, of a request that nobody made. */
export function signatureOf(n: number, change: Partial<SignedTransaction['request']> = {}): Omit<SignedTransaction, 'sequence'> {
  const input = {
    txid: n.toString(16).padStart(64, '0'),
    vout: 0,
    amount: '1000',
    xpub: 'xpub'.padEnd(111, 'x'),
    chain: 0,
    index: n,
  } as const;
  const request = {
    currency: 'BTC',
    batchId: `batch_${n}`,
    number: 1,
    leaseEpoch: '1',
    inputs: [input],
    outputs: [{ payoutId: `po_${n}`, script: '0014', amount: '900' }],
    change: null,
    ...change,
  };
  return { request, txid: `${n}`, raw: 'ab'.repeat(n), fee: '100', vbytes: 100, signedAtMs: n };
}
