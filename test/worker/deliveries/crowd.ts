// Very many endpoints, for tests of who has its turn beside them.
import { addMerchant } from '../../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { type ApiServer, PASSWORD } from '../../http/api-server.ts';

/** A merchant's most. */
export const WEBHOOKS = 16;
let merchants = 0;

/** Merchants with all the endpoints that they may have, for each of which events wait. */
export async function addMerchantsAt(
  api: ApiServer,
  url: string,
  { events, count }: { readonly events: number; readonly count: number },
): Promise<void> {
  for (let n = 0; n < count; n++) {
    merchants += 1;
    const { affiliateId } = await addMerchant(api.ctx, {
      username: `slow-${merchants}`,
      password: PASSWORD,
      email: 'a@example.com',
      businessName: 'S',
    });
    const [{ id }] = await api.sql('select id from merchants where affiliate_id = $1', [affiliateId]);
    await api.sql(
      `insert into webhooks (id, merchant_id, url, secret, created_at)
         select 'wh_' || $1::bigint || 'x' || n, $1::bigint, $2, 'whsec_AAAA', now() from generate_series(1, $3::int) n`,
      [id, url, WEBHOOKS],
    );
    for (let event = 0; event < events; event++)
      await createTransaction(api.ctx, { merchantId: BigInt(id), usdMinor: 25_00n, method: 'BTC', label: null, email: null });
  }
}

/** Attempts of the days before, of every endpoint that there is: all were away. */
export const wereAway = (api: ApiServer, attempts = 5) =>
  api.sql(
    `insert into delivery_attempts (webhook, event_id, at, took_ms, error, answer)
       select number, 0, now() - n * interval '1 day', 15000, 'timed_out: ', '' from webhooks, generate_series(1, $1) n`,
    [attempts],
  );

/** More endpoints of a merchant than it may create. */
export const addMoreWebhooks = (api: ApiServer, merchant: string, url: string, count: number) =>
  api.sql(
    `insert into webhooks (id, merchant_id, url, secret, created_at)
       select 'wh_more' || n, $1, $2, 'whsec_AAAA', now() from generate_series(1, $3::int) n`,
    [merchant, url, count],
  );
