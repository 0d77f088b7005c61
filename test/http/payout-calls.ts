// A merchant with bitcoin who calls the operations of payouts over HTTP: what their tests share.
import { afterAll, beforeAll, expect } from 'vitest';
import { fund, OUTSIDE, owe, tellFee } from '../support/funded.ts';
import { type ApiServer, makeApi, type Reply } from './api-server.ts';

export let api: ApiServer;
export let merchantId: bigint;
/** Starts the API before the tests of the file, and ends it afterwards. */
export function payoutCallsForAll(): void {
  beforeAll(async () => {
    api = await makeApi();
    await tellFee(api.ctx);
    merchantId = BigInt((await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId]))[0].id);
    await fund(api.ctx, merchantId, 100n * BTC);
  });
  afterAll(async () => {
    expect(api.bugs).toEqual([]);
    await api.end();
  });
}
export const BTC = 100_000_000n;
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
export const OTHER = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
export const LEGACY = 'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn';

export const request = (body: object = {}, headers: Record<string, string> = {}, username = 'shop') =>
  api.call('/request_payout', { method: 'bitcoin', amount: '0.01', destination: OUTSIDE, ...body }, headers, username);
export const check = async (payout_id: string) => (await api.call('/check_payout', { payout_id })).json.payout;
export const balance = async (): Promise<string> => (await api.call('/get_account_info', {})).json.balances.BTC;
export const refused = ({ status, json }: Reply) => [status, json.error, json.param];
/** One that waits. */
export async function waiting(): Promise<string> {
  await owe(api.ctx, merchantId, 1n);
  const { json } = await request();
  await owe(api.ctx, merchantId, -1n);
  return json.payout.id;
}
