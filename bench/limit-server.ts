// The lower limit of cost: a server that does only the work without which there is no answer (fastify with schemas, a map of known tokens,
// named statements in micro-batches; for create also QR, derivation and the insert), and no business logic. The product is compared with it
// in the same run.
import { randomBytes } from 'node:crypto';
import fastify from 'fastify';
import pg from 'pg';
import { qrDataUri } from '../src/http/qr/data-uri.ts';
import { createAddressDeriver } from '../src/outside/utxo/derive.ts';
import { microBatch } from './limit-batch.ts';

export type LimitStart = { readonly databaseUrl: string; readonly token: string; readonly xpub: string };

type Row = Record<'transaction_id' | 'status' | 'crypto_amount' | 'crypto_received' | 'usd_amount' | 'created_at', string> & {
  confirmations: number;
  confirmed_at: string | null;
};
type Created = { readonly id: string; readonly address: string; readonly script: Uint8Array; readonly index: number };

const TEXT = { type: 'string' } as const;
const CHECK_REPLY = {
  type: 'object',
  properties: {
    transaction_id: TEXT,
    status: TEXT,
    crypto_amount: TEXT,
    crypto_received: TEXT,
    confirmations: { type: 'integer' },
    usd_amount: TEXT,
    created_at: TEXT,
    confirmed_at: { type: ['string', 'null'] },
  },
} as const;
const NAMES = [
  'transaction_id',
  'wallet_address',
  'qr_code',
  'crypto_amount',
  'usd_amount',
  'exchange_rate',
  'expires_at',
  'status',
];
const CREATE_REPLY = { type: 'object', properties: Object.fromEntries(NAMES.map((name) => [name, TEXT])) } as const;

async function serve(start: LimitStart): Promise<number> {
  const pool = new pg.Pool({ connectionString: start.databaseUrl, max: 4 });
  const deriver = createAddressDeriver({ currency: 'BTC', network: 'regtest', xpub: start.xpub });
  const tokens = new Map([[start.token, { expiresAtMs: Date.now() + 3_600_000 }]]);
  let index = 0;

  const find = microBatch<string, Row | null>(async (ids) => {
    const { rows } = await pool.query<Row>({
      name: 'find',
      text: `select id as transaction_id, status, crypto_amount, crypto_received, confirmations, usd_amount, created_at, confirmed_at
             from limit_transactions where id = any($1)`,
      values: [ids],
    });
    const byId = new Map(rows.map((row) => [row.transaction_id, row]));
    return ids.map((id) => byId.get(id) ?? null);
  });
  const insert = microBatch<Created, true>(async (items) => {
    await pool.query({
      name: 'insert',
      text: `with t as (
               insert into limit_transactions (id, address, script, address_index)
               select * from unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[]) returning id
             ) insert into limit_outbox (transaction_id) select id from t`,
      values: [
        items.map((one) => one.id),
        items.map((one) => one.address),
        items.map((one) => Buffer.from(one.script)),
        items.map((one) => one.index),
      ],
    });
    return items.map(() => true);
  });

  const app = fastify({ logger: false });
  const known = (token: string) => (tokens.get(token)?.expiresAtMs ?? 0) > Date.now();
  const body = { type: 'object', required: ['access_token'], properties: { access_token: TEXT, transaction_id: TEXT } } as const;
  app.post<{ Body: { access_token: string; transaction_id: string } }>(
    '/check_transaction',
    { schema: { body, response: { 200: CHECK_REPLY } } },
    async (request, reply) => {
      if (!known(request.body.access_token)) return reply.code(401).send({});
      return (await find(request.body.transaction_id)) ?? reply.code(404).send({});
    },
  );
  app.post<{ Body: { access_token: string } }>(
    '/create_transaction',
    { schema: { body, response: { 200: CREATE_REPLY } } },
    async (request, reply) => {
      if (!known(request.body.access_token)) return reply.code(401).send({});
      const { address, script } = deriver.derive(index++);
      const id = `txn_${randomBytes(12).toString('hex')}`;
      const inserted = insert({ id, address, script, index });
      const qr = qrDataUri(`bitcoin:${address}?amount=0.00038462`);
      await inserted;
      return {
        transaction_id: id,
        wallet_address: address,
        qr_code: qr,
        crypto_amount: '0.00038462',
        usd_amount: '25.00',
        exchange_rate: '65000.00',
        expires_at: new Date().toISOString(),
        status: 'started',
      };
    },
  );
  await app.listen({ port: 0, host: '127.0.0.1' });
  return (app.server.address() as { port: number }).port;
}

process.once('message', (start) => {
  serve(start as LimitStart).then(
    (port) => process.send?.({ port }),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exit(1);
    },
  );
});
process.once('disconnect', () => process.exit(0));
