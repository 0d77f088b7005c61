// Which network a database belongs to. Every process and command checks it before anything else: payments of two networks must never be in
// one ledger.
import type pg from 'pg';
import { type Network, utxoRow, WATCHED_CODES } from '../../core/currency.ts';

const TEST_NETWORKS = ['sandbox', 'regtest', 'testnet'] as const;
const ADDRESS_FORMS: readonly (readonly [RegExp, readonly Network[]])[] = [
  [/^(bcrt1|rltc1|bchreg:)/, ['sandbox', 'regtest']],
  [/^(tb1|tltc1|bchtest:)/, ['testnet']],
];

/** The networks that a database can belong to, judged by its content; null when nothing shows it (a new one). Reads only. */
export async function networksOf(client: pg.Client): Promise<readonly Network[] | null> {
  if (await hasTable(client, 'network')) {
    const { rows } = await client.query<{ name: Network }>('select name from network');
    if (rows[0] !== undefined) return [rows[0].name];
  }
  if (!(await hasTable(client, 'account_xpubs'))) return null;
  // a database older than this row: its first key distinguishes mainnet from the others, addresses distinguish those
  const keys = await client.query<{ xpub: string }>('select xpub from account_xpubs order by id limit 1');
  const xpub = keys.rows[0]?.xpub;
  if (xpub === undefined) return null;
  if (xpub.startsWith('xpub')) return ['mainnet'];
  const found = await client.query<{ address: string }>({
    text: 'select address from transactions where currency = any ($1) limit 1',
    values: [
      WATCHED_CODES.filter((code) => utxoRow(code).utxo.address.mainnet.bech32 ?? utxoRow(code).utxo.address.mainnet.cashaddr),
    ],
  });
  const address = found.rows[0]?.address ?? '';
  return ADDRESS_FORMS.find(([form]) => form.test(address))?.[1] ?? TEST_NETWORKS;
}

/** Writes the network for good. The caller has checked that the database can belong to it, and holds the lock of migrations. */
export async function writeNetwork(client: pg.Client, network: Network): Promise<void> {
  await client.query({ text: 'insert into network (name) values ($1) on conflict do nothing', values: [network] });
}

async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>({
    text: 'select to_regclass($1) is not null as there',
    values: [`public.${name}`],
  });
  return rows[0]?.there === true;
}
