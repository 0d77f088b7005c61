// How each type of event is brought about in the sandbox: the steps up to the one that makes it, and what it is about.
import { randomInt, randomUUID } from 'node:crypto';
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../../core/currency.ts';
import { GRACE_MS, WINDOW_MS } from '../../../core/judge/times.ts';
import { formatMinor, parseAmount } from '../../../core/money.ts';
import type { Session } from './session.ts';

/** What the steps towards an event may do. */
export type Sandbox = {
  readonly session: Session;
  /** A control of the sandbox. */
  control<T>(name: string, body: object): Promise<T>;
  /** Moves the service's clock. */
  advance(seconds: number): Promise<void>;
  /** Waits for an event of this object, while blocks are mined; returns its identifier. */
  happened(object: string, type: string): Promise<string>;
};

type Created = { readonly transaction_id: string; readonly crypto_amount: string };
type Steps = (sandbox: Sandbox) => Promise<string>;

/** What is paid with, and what blocks are mined of. */
export const CRYPTO = CURRENCY_CODES[0] as CurrencyCode;
/** Another currency, paid to the same address, and how much of it. */
const OTHER = { currency: CURRENCY_CODES[1] as CurrencyCode, amount: '0.1' };
const PRICE = '25.00';
const LABEL = 'bursar trigger';
const WINDOW_SECONDS = WINDOW_MS / 1_000;
const GRACE_SECONDS = GRACE_MS / 1_000;
const DAY_SECONDS = 86_400;
/** What is earned before a payout, and what is paid out then. */
const EARNED = '500.00';
const PAID_OUT = { bitcoin: '0.001', ach: '100.00' } as const;
const FIRST_BANK = '021000021';

async function create({ session }: Sandbox, amount = PRICE): Promise<Created> {
  const body = { amount, crypto_selected: CRYPTO, label: LABEL };
  return session.call<Created>('/create_transaction', body, { 'idempotency-key': randomUUID() });
}
const pay = (sandbox: Sandbox, transactionId: string, more: object = {}) =>
  sandbox.control<{ txid: string }>('pay', { transaction_id: transactionId, ...more });

async function paid(sandbox: Sandbox, amount = PRICE): Promise<string> {
  const { transaction_id } = await create(sandbox, amount);
  await pay(sandbox, transaction_id);
  return transaction_id;
}
async function succeeded(sandbox: Sandbox, amount = PRICE): Promise<string> {
  const id = await paid(sandbox, amount);
  await sandbox.happened(id, 'transaction.succeeded');
  return id;
}
async function timedOut(sandbox: Sandbox): Promise<string> {
  const { transaction_id } = await create(sandbox);
  await sandbox.advance(WINDOW_SECONDS + GRACE_SECONDS + 1);
  await sandbox.happened(transaction_id, 'transaction.timedout');
  return transaction_id;
}
/** Half of what is due. */
async function declined(sandbox: Sandbox): Promise<string> {
  const { transaction_id, crypto_amount } = await create(sandbox);
  const { decimals } = CURRENCIES[CRYPTO];
  const due = parseAmount(crypto_amount, decimals);
  if (!('minor' in due)) throw new Error(`${crypto_amount} is no amount`);
  await pay(sandbox, transaction_id, { amount: formatMinor(due.minor / 2n, decimals) });
  await sandbox.happened(transaction_id, 'transaction.pending');
  await sandbox.advance(WINDOW_SECONDS + GRACE_SECONDS + 1);
  return transaction_id;
}

const outside = async ({ control }: Sandbox): Promise<string> =>
  (await control<{ address: string }>('address', { currency: CRYPTO })).address;

async function reimbursed(sandbox: Sandbox): Promise<string> {
  const id = await succeeded(sandbox);
  const body = { transaction_id: id, action: 'reimburse', destination: await outside(sandbox) };
  await sandbox.session.call('/resolve_transaction', body, { 'idempotency-key': randomUUID() });
  return id;
}

/** The block of the payment is replaced; the payment goes back to the mempool and into a later block. */
async function reorged(sandbox: Sandbox): Promise<string> {
  const id = await succeeded(sandbox);
  const { confirmations } = await sandbox.session.call<{ confirmations: number }>('/check_transaction', { transaction_id: id });
  await sandbox.control('reorg', { currency: CRYPTO, depth: Math.max(1, confirmations) });
  return id;
}

type Method = keyof typeof PAID_OUT;

const bankAccount = (): string => `ach:${FIRST_BANK}:${randomInt(10_000, 1_000_000_000)}`;

/** Asks for a payout that there is money for. */
async function payout(sandbox: Sandbox, method: Method, to?: string): Promise<string> {
  await succeeded(sandbox, EARNED);
  const destination = to ?? (method === 'ach' ? bankAccount() : await outside(sandbox));
  const body = { method, amount: PAID_OUT[method], destination };
  const asked = { 'idempotency-key': randomUUID() };
  return (await sandbox.session.call<{ payout: { id: string } }>('/request_payout', body, asked)).payout.id;
}

/** Waits for an approval, which the merchant's settings ask for until then; they are put back, which takes effect a day later. */
async function heldPayout(sandbox: Sandbox): Promise<string> {
  const { session } = sandbox;
  const { settings } = await session.call<{ settings: { payout_approval_above: string | null } }>('/get_settings');
  await session.call('/set_settings', { payout_approval_above: '1.00' });
  try {
    return await payout(sandbox, 'bitcoin');
  } finally {
    await session.call('/set_settings', { payout_approval_above: settings.payout_approval_above });
    await sandbox.advance(DAY_SECONDS + 1);
  }
}

async function returnedPayout(sandbox: Sandbox): Promise<string> {
  const id = await payout(sandbox, 'ach');
  await sandbox.control('bank', { action: 'settle' });
  await sandbox.happened(id, 'payout.completed');
  await sandbox.control('bank', { action: 'return', payout_id: id });
  return id;
}

/** The block that pays it is replaced. */
async function reorgedPayout(sandbox: Sandbox): Promise<string> {
  const address = await outside(sandbox);
  const id = await payout(sandbox, 'bitcoin', address);
  await sandbox.happened(id, 'payout.completed');
  type Arrived = { readonly payments: readonly { readonly confirmations: number }[] };
  const { payments } = await sandbox.control<Arrived>('receive', { currency: CRYPTO, address });
  await sandbox.control('reorg', { currency: CRYPTO, depth: Math.max(1, payments[0]?.confirmations ?? 1) });
  return id;
}

/** By type of event. */
export const STEPS: Readonly<Record<string, Steps>> = {
  'transaction.started': async (sandbox) => (await create(sandbox)).transaction_id,
  'transaction.pending': paid,
  'transaction.confirmed': paid,
  'transaction.succeeded': paid,
  'transaction.timedout': timedOut,
  async 'transaction.timedout_checked'(sandbox) {
    const id = await timedOut(sandbox);
    await sandbox.advance(DAY_SECONDS);
    return id;
  },
  async 'transaction.cancelled'(sandbox) {
    const { transaction_id } = await create(sandbox);
    await sandbox.session.call('/cancel_transaction', { transaction_id });
    return transaction_id;
  },
  'transaction.declined': declined,
  async 'transaction.review'(sandbox) {
    const { transaction_id } = await create(sandbox);
    await pay(sandbox, transaction_id, OTHER);
    return transaction_id;
  },
  'transaction.reimbursed': reimbursed,
  async 'transaction.settled'(sandbox) {
    const id = await succeeded(sandbox);
    await sandbox.control('mine', { currency: CRYPTO, blocks: 100 });
    await sandbox.advance(DAY_SECONDS + 1);
    return id;
  },
  async 'transaction.extra_payment'(sandbox) {
    const id = await succeeded(sandbox);
    await pay(sandbox, id);
    return id;
  },
  async 'transaction.other_asset'(sandbox) {
    const id = await succeeded(sandbox);
    await pay(sandbox, id, OTHER);
    return id;
  },
  'transaction.reorged': reorged,
  'payout.pending': heldPayout,
  'payout.processing': (sandbox) => payout(sandbox, 'bitcoin'),
  'payout.completed': (sandbox) => payout(sandbox, 'bitcoin'),
  'payout.failed': returnedPayout,
  'payout.returned': returnedPayout,
  'payout.reorged': reorgedPayout,
};
