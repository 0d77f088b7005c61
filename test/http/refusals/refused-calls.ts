// What the sections of refusals.test.ts share: one API with the transactions they ask about, bodies that are accepted, and a record of every
// refusal that was given. Each refusal is checked against the documents as it is noted.
import { afterAll, beforeAll, expect } from 'vitest';
import { refusalsOf } from '../../../src/contract/endpoint.ts';
import { MERCHANT_API, type MerchantApi } from '../../../src/contract/merchant-api.ts';
import { eventId } from '../../../src/core/events.ts';
import { REFUSALS } from '../../../src/core/refusal.ts';
import { requestLightningPayout } from '../../../src/flow/lightning/payout-request.ts';
import { beginCursor } from '../../../src/store/chain/blocks.ts';
import { fund, owe, tellFee } from '../../support/funded.ts';
import { invoice } from '../../support/invoice.ts';
import { type ApiServer, makeApi, PASSWORD, type Reply } from '../api-server.ts';

export type Name = keyof MerchantApi;
export const NAMES = Object.keys(MERCHANT_API) as Name[];
export const KEYED = NAMES.filter((name) => MERCHANT_API[name].keyKept !== null);
export const WITH_TOKEN = NAMES.filter((name) => MERCHANT_API[name].access.kind === 'token');

/** What is there once the first test runs; not before, while the sections are being read. */
type Ready = {
  api: ApiServer;
  rowsBefore: Record<string, number>;
  transactionId: string;
  /** One that waits for a decision, with less in suspense than a network fee. */
  reviewId: string;
  /** One that is paid, whose credit is no longer in the balance. */
  paidId: string;
  foreignId: string;
  /** Payouts: one that is processing, one that waits, one of another merchant. */
  payoutId: string;
  heldPayoutId: string;
  foreignPayoutId: string;
  /** One that the other merchant pays. */
  usedInvoice: string;
  webhookId: string;
  foreignWebhookId: string;
};
export type RefusedCalls = ReturnType<typeof openRefusedCalls>;

/** Called once while the file of tests is read: the API is opened before the first test and closed after the last. */
export function openRefusedCalls() {
  const ready = {} as Ready;
  /** The codes that each operation has answered with so far. */
  const seen = new Map<Name, Set<string>>(NAMES.map((name) => [name, new Set()]));

  /** A body that is accepted, without its token. */
  function good(name: Name): Record<string, unknown> {
    const { transactionId } = ready;
    const bodies: Partial<Record<Name, Record<string, unknown>>> = {
      auth: { username: 'shop', password: PASSWORD },
      createTransaction: { amount: '25.00', crypto_selected: 'BTC' },
      checkTransaction: { transaction_id: transactionId },
      cancelTransaction: { transaction_id: transactionId },
      checkPayout: { payout_id: ready.payoutId },
      cancelPayout: { payout_id: ready.heldPayoutId },
      setPayoutSettings: { enabled: false },
      requestPayout: { method: 'bitcoin', amount: '0.01', destination: 'bcrt1qcr8te4kr609gcawutmrza0j4xv80jy8zeqchgx' },
      resolveTransaction: { transaction_id: transactionId, action: 'accept' },
      setSettings: { late_payments: 'accept' },
      refresh: { access_token: 'x', refresh_token: 'y' },
      createWebhook: { url: 'http://127.0.0.1:9/' },
      deleteWebhook: { webhook_id: ready.webhookId },
      rotateWebhookSecret: { webhook_id: ready.webhookId },
      redeliverEvent: { event_id: eventId({ objectId: transactionId, sequence: 1 }) },
    };
    return bodies[name] ?? {};
  }

  /** Both merchants get a balance, and payouts that are refused or not. */
  async function openPayouts(api: ApiServer): Promise<void> {
    await tellFee(api.ctx);
    const merchants = await api.sql('select id, affiliate_id from merchants order by id');
    for (const { id } of merchants) await fund(api.ctx, BigInt(id), 1_000_000_000n);
    const ask = async (username: string): Promise<string> =>
      (await api.call('/request_payout', good('requestPayout'), {}, username)).json.payout.id;
    ready.payoutId = await ask('shop');
    ready.foreignPayoutId = await ask('other');
    ready.usedInvoice = invoice({ sat: 1_000, atMs: api.now() });
    const other = BigInt(merchants.find((one) => one.affiliate_id === api.otherAffiliateId)?.id);
    const paymentRequest = ready.usedInvoice;
    await requestLightningPayout(api.ctx, { merchantId: other, amount: '0.00001', destination: paymentRequest, paymentRequest });
    await owe(api.ctx, BigInt(merchants.find((one) => one.affiliate_id === api.affiliateId)?.id), 1n);
    ready.heldPayoutId = await ask('shop');
  }

  /** Payments as the judge has booked them, far below any depth. */
  async function openPaid(api: ApiServer): Promise<void> {
    const hash = (digit: string): string => digit.repeat(64);
    const tip = { height: 100, hash: hash('a'), previousHash: hash('b'), timeMs: api.ctx.ports.clock.now() };
    await beginCursor(api.ctx.db, 'BTC', tip, tip.timeMs);
    for (const [n, id, amount, place] of [
      [1, ready.paidId, '99000000000', 'in_available'],
      [2, ready.reviewId, '600', 'in_suspense'],
    ] as const)
      await api.sql(
        `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, seen_at, caught_up_at, found_mined, noticed_at, present,
                               value_rate, part_key, credited, ${place})
           values ($1, 'BTC', $2, 0, $3, '', 'mempool', now(), now(), false, now(), true, 1, $4, $3, $3)`,
        [id, hash(String(n)), amount, `test:${n}`],
      );
  }

  /** The same reply, after a look at whether it is a refusal that the operation's documents name. */
  function note(name: Name, reply: Reply): Reply {
    const code = reply.json?.error;
    expect(code, reply.text).toBeTypeOf('string');
    expect(refusalsOf(MERCHANT_API[name]), `${name} answered ${code}`).toContain(code);
    expect(reply.status).toBe(REFUSALS[code as keyof typeof REFUSALS][0]);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(reply.headers.get('x-request-id')).toMatch(/^req_/);
    expect(Object.keys(reply.json).filter((field) => !['error', 'message', 'param'].includes(field))).toEqual([]);
    seen.get(name)?.add(code);
    return reply;
  }

  /** Asks (as the shop, where the body is a value and a token is wanted) and wants this refusal. */
  async function refused(
    name: Name,
    code: string,
    body: Record<string, unknown> | string | Buffer,
    headers = {},
    to = ready.api,
  ): Promise<Reply> {
    const { path, access } = MERCHANT_API[name];
    const isBody = typeof body === 'object' && !Buffer.isBuffer(body);
    const reply = isBody && access.kind === 'token' ? await to.call(path, body, headers) : await to.send(path, body, headers);
    note(name, reply);
    expect(reply.json.error, `${name} ${JSON.stringify(body)} ${reply.text}`).toBe(code);
    return reply;
  }

  beforeAll(async () => {
    const api = await makeApi();
    ready.api = api;
    const request = { amount: '5', crypto_selected: 'BTC' };
    ready.transactionId = (await api.call('/create_transaction', request)).json.transaction_id;
    ready.reviewId = (await api.call('/create_transaction', request)).json.transaction_id;
    await api.sql(`update transactions set status = 'review', review_cause = 'late' where id = $1`, [ready.reviewId]);
    ready.paidId = (await api.call('/create_transaction', request)).json.transaction_id;
    await api.sql(`update transactions set status = 'succeeded', succeeded_at = now() where id = $1`, [ready.paidId]);
    ready.foreignId = (await api.call('/create_transaction', request, {}, 'other')).json.transaction_id;
    const hook = async (username: string): Promise<string> =>
      (await api.call('/create_webhook', good('createWebhook'), {}, username)).json.webhook.id;
    ready.webhookId = await hook('shop');
    ready.foreignWebhookId = await hook('other');
    await openPayouts(api);
    await openPaid(api);
    for (const scope of ['read', 'payments', 'payouts']) await api.tokenOf(`only.${scope}`);
    ready.rowsBefore = await api.rowCounts();
  });
  afterAll(() => ready.api.end());

  return Object.assign(ready, { seen, good, note, refused });
}
