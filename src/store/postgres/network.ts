// To which network a database belongs. Asked and written by store/postgres/migrate.ts, so by every process and command before it does anything else: coins
// of two worlds must never meet in one ledger.
import type pg from 'pg';
import { type Network, utxoRow, WATCHED_CODES } from '../../core/currency.ts';

const TEST_NETWORKS = ['sandbox', 'regtest', 'testnet'] as const;
const ADDRESS_FORMS: readonly (readonly [RegExp, readonly Network[]])[] = [
  [/^(bcrt1|rltc1|bchreg:)/, ['sandbox', 'regtest']],
  [/^(tb1|tltc1|bchtest:)/, ['testnet']],
];

/** The networks that a database can belong to, by what is in it; null when nothing tells (a new one). Reads only. */
export async function networksOf(client: pg.Client): Promise<readonly Network[] | null> {
  if (await hasTable(client, 'network')) {
    const { rows } = await client.query<{ name: Network }>('select name from network');
    if (rows[0] !== undefined) return [rows[0].name];
  }
  if (!(await hasTable(client, 'account_xpubs'))) return null;
  // older than the row: its first key tells mainnet from the others, the addresses of these tell more
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

/** Writes it down for good. The caller has seen that the database can belong to it, and holds the lock of migrations. */
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
