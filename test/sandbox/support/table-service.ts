// A sandbox over a service side that is a table: ids `txn_btc_5` and `txn_ltc_5` ask for 0.001 currencies to the script made of byte 5.
import { evmScript } from '../../../src/core/currencies/evm.ts';
import { Refusal } from '../../../src/core/refusal.ts';
import type { PayableTransaction, SandboxService } from '../../../src/sandbox/service-side.ts';

export const scriptOf = (n: number): Buffer => Buffer.from(`0014${n.toString(16).padStart(2, '0').repeat(20)}`, 'hex');
export const NEED = 100_000n;

function payable(id: string): PayableTransaction | null {
  const [, code = '', n = ''] = /^txn_(btc|ltc|eth)_(\d+)$/.exec(id) ?? [];
  if (code === '') return null;
  const script = code === 'eth' ? evmScript(n.padStart(40, '0')) : scriptOf(Number(n)).toString('hex');
  return { currency: code.toUpperCase() as 'BTC', script, address: '', amountDue: NEED, receivedMinor: 0n };
}

export type Calls = {
  read: string[];
  settled: number;
  canRead: boolean;
  canSettle: boolean;
  refreshed: number;
  merchants: unknown[];
  users: unknown[];
};

/** The service's side, and what was asked of it. */
export function tableService(): { readonly service: SandboxService; readonly calls: Calls } {
  const calls: Calls = { read: [], settled: 0, canRead: true, canSettle: true, refreshed: 0, merchants: [], users: [] };
  const service: SandboxService = {
    findTransaction: async (id) => payable(id),
    addMerchant: async (merchant) => {
      if (merchant.username === 'taken') return null;
      if (merchant.password === 'short')
        throw new Refusal('invalid_request', { message: 'password is short', param: 'password' });
      calls.merchants.push(merchant);
      return { affiliate_id: 'aff_1' };
    },
    addUser: async (user) => {
      if (user.affiliateId !== 'aff_1') throw new Refusal('not_found');
      if (user.username === 'taken') return null;
      if (user.scopes.includes('all')) throw new Refusal('insufficient_balance');
      calls.users.push(user);
      return { affiliate_id: user.affiliateId, username: user.username, scopes: user.scopes };
    },
    findBankEntry: async (id) =>
      id === 'payout_filed' ? { trace: '091000010000001' } : id === 'payout_waits' ? { trace: null } : null,
    untilBankRead: async () => calls.canRead,
    untilHandedOver: async () => undefined,
    untilRead: async (currencies) => {
      calls.read.push(currencies.join(' '));
      return calls.canRead;
    },
    settle: async () => {
      calls.settled += 1;
      return calls.canSettle;
    },
    refreshRates: async () => {
      calls.refreshed += 1;
    },
  };
  return { service, calls };
}

/** Posts to a control; its status and answer. */
export async function post(url: string, name: string, body: unknown): Promise<{ status: number; json: Record<string, unknown> }> {
  const answer = await fetch(`${url}/control/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

/** A call to a simulated node that must succeed. */
export async function rpc(
  sandbox: { url: string; secret: string },
  currency: string,
  method: string,
  ...params: unknown[]
): Promise<unknown> {
  const authorization = `Basic ${Buffer.from(`bursar:${sandbox.secret}`).toString('base64')}`;
  const body = JSON.stringify({ id: 1, method, params });
  const answer = await fetch(`${sandbox.url}/node/${currency}`, { method: 'POST', headers: { authorization }, body });
  const { result, error } = (await answer.json()) as { result: unknown; error: { message: string } | null };
  if (error !== null) throw new Error(error.message);
  return result;
}
