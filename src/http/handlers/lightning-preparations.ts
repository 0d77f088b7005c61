// What calls with an idempotency key need of the Lightning node before their database transaction is opened: the node is never asked inside
// one. Calls without a key have none that is open, and ask by themselves.

import type { BodyOf } from '../../contract/fields.ts';
import type { MERCHANT_API, MerchantApi } from '../../contract/merchant-api.ts';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { claimForBody } from '../../flow/idempotency.ts';
import { closeInvoiceOf, prepareInvoice } from '../../flow/lightning/invoices.ts';
import { invoiceOfDestination } from '../../flow/lightning/payout-request.ts';
import { refundInvoice } from '../../flow/payouts/reimbursements.ts';
import type { Preparation } from '../operation.ts';
import { checkLightning } from './payouts.ts';

export const PREPARATIONS: Partial<Record<keyof typeof MERCHANT_API, Preparation>> = {
  async createTransaction(ctx, { merchantId, key, bodyHash }, fields) {
    const { amount, crypto_selected: method, label } = fields as BodyOf<MerchantApi['createTransaction']['fields']>;
    if (method !== LIGHTNING.code) return null;
    return { invoice: await prepareInvoice(ctx, { merchantId, usdMinor: amount, label, call: { key, bodyHash } }) };
  },
  async requestPayout(ctx, { merchantId }, fields) {
    const { method, amount, destination } = fields as BodyOf<MerchantApi['requestPayout']['fields']>;
    if (method !== 'lightning') return null;
    await checkLightning(ctx, { method, amount, destination });
    const paymentRequest = await invoiceOfDestination(ctx, { merchantId, amount, destination });
    return paymentRequest === null ? null : { paymentRequest };
  },
  async resolveTransaction(ctx, { merchantId }, fields) {
    const body = fields as BodyOf<MerchantApi['resolveTransaction']['fields']>;
    if (body.action !== 'reimburse') return null;
    const { transaction_id: transactionId, destination, part, currency } = body;
    const paymentRequest = await refundInvoice(ctx, {
      merchantId,
      transactionId,
      destination: destination ?? '',
      part,
      currency,
    });
    return paymentRequest === null ? null : { paymentRequest };
  },
  async cancelTransaction(ctx, of, fields) {
    const { transaction_id: transactionId } = fields as BodyOf<MerchantApi['cancelTransaction']['fields']>;
    await closeInvoiceOf(ctx, { merchantId: of.merchantId, transactionId }, () => claimForBody(ctx, of));
    return null;
  },
};
