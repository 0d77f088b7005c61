// Requests to the signer for Ethereum's chain, each of which keeps every rule, with what the API and the worker have written for them before.
import { evmInput, evmScript, GAS } from '../../src/core/currencies/evm.ts';
import type { EvmCode } from '../../src/core/currency.ts';
import { intentBytes, type PayoutIntent } from '../../src/core/payouts/intent.ts';
import { holdEntry } from '../../src/core/payouts/postings.ts';
import { REIMBURSEMENT } from '../../src/core/payouts/units.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import { trustedIntentKeys } from '../../src/signer/intent-trust.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { evmAddressAt } from '../../src/signer/own-scripts.ts';
import { openSignatureJournal, type SignatureJournal } from '../../src/signer/signature-journal.ts';
import { createSigning, type Signing } from '../../src/signer/signing.ts';
import { createTurns } from '../../src/signer/turns.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { newId, openTestSigner } from './setup.ts';

export const CONTRACT = `0x${'c0'.repeat(20)}`;
export const GWEI = 10n ** 9n;
export const ETHER = 10n ** 18n;
/** The most that a payout is charged for gas, in millionths. */
export const FEE = 500_000n;

export type Evm = NonNullable<TransactionToSign['evm']>;
type Changes = Partial<Omit<TransactionToSign, 'evm'>> & {
  readonly evm?: Partial<Evm>;
  readonly script?: string;
  readonly amount?: bigint;
};

/** The same with something changed. */
export function request(base: TransactionToSign, { evm, script, amount, ...rest }: Changes = {}): TransactionToSign {
  const [output] = base.outputs as [TransactionToSign['outputs'][number]];
  const outputs = [
    { ...output, ...(script === undefined ? {} : { script }), ...(amount === undefined ? {} : { amount: String(amount) }) },
  ];
  return { ...base, outputs, ...rest, evm: { ...(base.evm as Evm), ...evm } };
}

/** The same with another input. */
export const withInput = (base: TransactionToSign, given: Partial<TransactionToSign['inputs'][number]>): TransactionToSign => ({
  ...base,
  inputs: [{ ...(base.inputs[0] as TransactionToSign['inputs'][number]), ...given }],
});

export async function openEvmSigner() {
  const signer = await openTestSigner();
  const xpubs = new Map((await signer.keyring.accounts())?.map(({ currency, xpub }) => [currency, xpub]));
  let journal: SignatureJournal | undefined;

  const xpub = (currency: EvmCode): string => xpubs.get(currency) as string;
  const addressAt = (currency: EvmCode, chain: 0 | 1, at: number): string =>
    evmAddressAt({ currency, network: 'regtest', xpub: xpub(currency) }, chain, at);
  const hot = (currency: EvmCode): string => addressAt(currency, 1, 0);

  /** @param tokenContract null: the signer's settings name none */
  async function start(limits: SignerLimits = {}, tokenContract: string | null = CONTRACT): Promise<Signing> {
    await journal?.close();
    journal = await openSignatureJournal(signer.signerFolder, 'regtest', { now: () => signer.clock.nowMs });
    return createSigning({
      keyring: signer.keyring,
      db: signer.readOnly,
      journal: async () => journal as SignatureJournal,
      intentKeys: async () => (await trustedIntentKeys(signer.signerFolder)) ?? [],
      limits,
      countedAlone: createTurns(),
      tokenContract,
      now: () => signer.clock.nowMs,
    });
  }

  async function insertBatch(currency: EvmCode, purpose: 'payout' | 'sweep' | 'top_up', target: string | null): Promise<string> {
    const id = newId('batch');
    await signer.owner.query(
      `insert into outgoing_batches (id, currency, state, fee_rate, lease_epoch, due_at, created_at, tip, gas_limit, purpose, target)
       values ($1, $2, 'reserved', 5000, 1, now(), now(), 1, 100000, $3, $4)`,
      [id, currency, purpose, target === null ? null : Buffer.from(evmScript(target), 'hex')],
    );
    return id;
  }

  /** A block has used a nonce of our address, and nobody here has signed it. */
  async function usedElsewhere(currency: EvmCode, nonce: number): Promise<void> {
    const batchId = await insertBatch(currency, 'payout', null);
    await addSignerKey(signer.db, { currency, xpub: xpub(currency), at: new Date() });
    await signer.owner.query(
      `insert into outgoing_inputs (currency, txid, vout, batch_id, amount, script, account_xpub_id, chain, address_index, spent_by, spent_height)
         select $1, $2, $3, $4, 1, $5, min(id), 1, 0, 'f00d', 1 from account_xpubs`,
      [currency, evmInput(hot(currency), nonce).txid, nonce, batchId, Buffer.from(evmScript(hot(currency)), 'hex')],
    );
  }

  /** A payout of 50 USDT, as the API and the worker write it, and its request at a nonce of ours. */
  async function payout(payee: string, nonce: number): Promise<TransactionToSign> {
    const asked = { method: 'usdt', currency: 'USDT', amount: 50_000_000n, feeMax: FEE, reimburses: null } as const;
    const evm = { contract: CONTRACT, gas: 100_000, maxFee: String(20n * GWEI), tip: String(GWEI), fee: String(FEE) };
    return requestOf(await insertPayout(asked, payee), nonce, evm);
  }

  /** A reimbursement of 50 USDT or one ether, which pays its gas out of that, and its request. */
  async function reimbursement(currency: EvmCode, payee: string, nonce: number): Promise<TransactionToSign> {
    const isEther = currency === 'ETH';
    const amount = isEther ? ETHER : 50_000_000n;
    const feeMax = isEther ? ETHER / 100n : FEE;
    const asked = { method: REIMBURSEMENT, currency, amount, feeMax, reimburses: newId('txn') };
    const offer = { maxFee: String(20n * GWEI), tip: String(20n * GWEI) };
    const evm = isEther
      ? { contract: null, gas: GAS.plain, fee: String(BigInt(GAS.plain) * 20n * GWEI), ...offer }
      : { contract: CONTRACT, gas: 100_000, fee: String(FEE), ...offer };
    return requestOf(await insertPayout(asked, payee), nonce, evm);
  }

  type Asked = Pick<PayoutIntent, 'method' | 'amount' | 'feeMax' | 'reimburses'> & { readonly currency: EvmCode };
  type Inserted = Asked & { readonly id: string; readonly batchId: string; readonly script: string };

  /** Funded, held, signed by the API, and in a batch of its own. */
  async function insertPayout(asked: Asked, payee: string): Promise<Inserted> {
    const { currency, amount, feeMax, reimburses, method } = asked;
    const batchId = await insertBatch(currency, 'payout', null);
    const id = newId('po');
    const script = evmScript(payee);
    const atMs = signer.clock.nowMs;
    const line = (account: string, of: bigint) => ({ account, amount: of });
    const available = `merchant:1:available:${currency}`;
    const postings = [line(`asset:chain:${currency}`, amount + feeMax), line(available, -(amount + feeMax))];
    const back = [line(available, amount), line(`refund_payable:${reimburses}:${currency}`, -amount)];
    const hold =
      reimburses === null
        ? holdEntry({ ...asked, id, merchantId: 1n })
        : { key: `po:${id}:hold`, kind: 'reimbursement_hold', postings: back, parts: [] };
    await postEntries(signer.db, [
      { entry: { key: newId('dep'), kind: 'deposit', postings, parts: [] }, transactionId: null, atMs },
      { entry: hold, transactionId: null, payoutId: id, atMs },
    ]);
    const { keyId, signature } = signer.intents.sign(
      intentBytes({ ...asked, merchantId: 1n, network: 'regtest', payoutId: id, destination: script, createdAtMs: atMs }),
    );
    const bytes = [Buffer.from(script, 'hex'), batchId, keyId, Buffer.from(signature), new Date(atMs)];
    await signer.owner.query(
      `insert into payouts (id, merchant_id, amount_text, currency, amount, fee_max, destination, script, status, step, batch_id, intent_key, intent, created_at, method, reimburses, part)
       values ($1, 1, '50', $2, $3, $4, $5, $6, 'processing', 'batched', $7, $8, $9, $10, $11, $12, $13)`,
      [id, currency, amount, feeMax, payee, ...bytes, method, reimburses, reimburses === null ? null : 'whole'],
    );
    return { ...asked, id, batchId, script };
  }

  function requestOf(
    { id, batchId, currency, script, amount, reimburses }: Inserted,
    nonce: number,
    evm: Evm,
  ): TransactionToSign {
    const pays = reimburses === null ? amount : amount - BigInt(evm.fee);
    const taken = currency === 'ETH' ? amount : pays;
    const total = reimburses === null ? {} : { total: String(amount) };
    const input = { ...evmInput(hot(currency), nonce), amount: String(taken), xpub: xpub(currency), chain: 1 as const, index: 0 };
    return {
      currency,
      batchId,
      number: 1,
      leaseEpoch: '1',
      inputs: [input],
      outputs: [{ payoutId: id, script, amount: String(pays), ...total }],
      change: null,
      evm,
    };
  }

  /** A sweep of an address that nothing left before. */
  async function sweep(currency: EvmCode, index: number): Promise<TransactionToSign> {
    const batchId = await insertBatch(currency, 'sweep', hot(currency));
    const gas = currency === 'ETH' ? GAS.plain : 80_000;
    const maxFee = 20n * GWEI;
    const fee = BigInt(gas) * maxFee;
    const total = currency === 'ETH' ? ETHER : 300_000_000n;
    const output = { payoutId: batchId, script: evmScript(hot(currency)) };
    const input = {
      ...evmInput(addressAt(currency, 0, index), 0),
      amount: String(total),
      xpub: xpub(currency),
      chain: 0 as const,
      index,
    };
    return {
      currency,
      batchId,
      number: 1,
      leaseEpoch: '1',
      inputs: [input],
      outputs: [
        currency === 'ETH'
          ? { ...output, amount: String(total - fee), total: String(total) }
          : { ...output, amount: String(total) },
      ],
      change: null,
      evm: {
        contract: currency === 'ETH' ? null : CONTRACT,
        gas,
        maxFee: String(maxFee),
        tip: String(currency === 'ETH' ? maxFee : GWEI),
        fee: String(fee),
        purpose: 'sweep',
      },
    };
  }

  /** Ether for gas to an address of USDT's account. */
  async function topUp(index: number, nonce: number): Promise<TransactionToSign> {
    const target = addressAt('USDT', 0, index);
    const batchId = await insertBatch('ETH', 'top_up', target);
    const amount = String(ETHER / 1_000n);
    return {
      currency: 'ETH',
      batchId,
      number: 1,
      leaseEpoch: '1',
      inputs: [{ ...evmInput(hot('ETH'), nonce), amount, xpub: xpub('ETH'), chain: 1, index: 0 }],
      outputs: [{ payoutId: batchId, script: evmScript(target), amount }],
      change: null,
      evm: {
        contract: null,
        gas: GAS.plain,
        maxFee: String(20n * GWEI),
        tip: String(GWEI),
        fee: String(BigInt(GAS.plain) * 20n * GWEI),
        purpose: 'top_up',
        payee: { currency: 'USDT', index },
      },
    };
  }

  return {
    ...signer,
    /** On a chain of Bitcoin's family. */
    utxoPayout: signer.payout,
    /** Another process on the same folder, after the one before has ended. */
    startEvm: start,
    signatures: () => journal?.count() ?? 0,
    xpub,
    addressAt,
    hot,
    insertBatch,
    usedElsewhere,
    payout,
    reimbursement,
    sweep,
    topUp,
    async close() {
      await journal?.close();
      await signer.close();
    },
  };
}
