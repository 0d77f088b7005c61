// `bursar demo`: the life of one payment, over the public API and the sandbox's controls only, as a merchant's program would see it.

import type { Command } from 'commander';
import { CURRENCY_CODES } from '../../core/currency.ts';
import { readConfig } from '../config/read-config.ts';
import { DEMO_PASSWORD } from '../config/variables.ts';
import { post } from './developer/api-client.ts';
import { apiAddress } from './developer/login.ts';
import { EXIT, leaf, print } from './output.ts';

type DemoOptions = {
  readonly url?: string;
  readonly username: string;
  readonly password?: string;
  readonly amount: string;
  readonly crypto: string;
  readonly json?: boolean;
};
type Created = {
  readonly transaction_id: string;
  readonly wallet_address: string;
  readonly crypto_amount: string;
  readonly usd_amount: string;
  readonly exchange_rate: string;
};
type Checked = {
  readonly status: string;
  readonly crypto_received: string;
  readonly confirmations: number;
  readonly events: readonly { readonly status: string; readonly at: string; readonly reason: string }[];
};

const GOES_ON: ReadonlySet<string> = new Set(['started', 'pending', 'confirmed']);
const GIVE_UP_MS = 120_000;
const WAIT_SECONDS = 5;

/** Adds `demo`: the life of one payment over the public API and `/sandbox/pay`; it ends with 1 when the payment does not succeed. */
export function addDemoCommand(bursar: Command): void {
  leaf(bursar, 'demo', 'Creates a payment in the sandbox, pays it, and shows its life; exit code 1 when it does not succeed.')
    .option('--url <base>', 'base address of the API; default: of the server that runs on BURSAR_DATA_DIR, else of PORT and HOST')
    .option('--username <name>', 'a user with the scopes read and payments', 'demo')
    .option('--password <text>', `default: BURSAR_DEMO_PASSWORD, else ${DEMO_PASSWORD}`)
    .option('--amount <usd>', 'amount in USD', '25.00')
    .option('--crypto <code>', 'what to pay with', CURRENCY_CODES[0])
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const config = readConfig();
  const base = apiAddress(options.url);
  const say = (line: string): void => {
    if (options.json !== true) process.stdout.write(`${line}\n`);
  };
  const credentials = { username: options.username, password: options.password ?? config.demoPassword ?? DEMO_PASSWORD };
  const { access_token } = await post<{ access_token: string }>(base, '/auth', credentials);
  const bought = { access_token, amount: options.amount, crypto_selected: options.crypto, label: 'bursar demo' };
  const created = await post<Created>(base, '/create_transaction', bought);
  const { transaction_id } = created;
  say(`${transaction_id}: ${created.usd_amount} USD = ${created.crypto_amount} ${options.crypto} at ${created.exchange_rate}`);
  say(`pay to ${created.wallet_address}`);
  const paid = await post<{ txid: string }>(base, '/sandbox/pay', { transaction_id });
  say(`paid by ${paid.txid}`);
  const last = await follow(base, access_token, transaction_id, options.crypto, say);
  const { balances } = await post<{ balances: Record<string, string> }>(base, '/get_account_info', { access_token });
  const ok = last.status === 'succeeded' || last.status === 'settled';
  say(`received ${last.crypto_received}, ${last.confirmations} confirmations`);
  const code = options.crypto.toUpperCase();
  say(`balance ${balances[code] ?? ''} ${code}`);
  const statuses = last.events.map(({ status, at, reason }) => ({ status, at, reason }));
  print(
    options.json,
    { ok, transaction_id, txid: paid.txid, status: last.status, statuses, crypto_received: last.crypto_received, balances },
    [ok ? 'The payment succeeded.' : `The payment ended as ${last.status}.`],
  );
  process.exitCode = ok ? EXIT.done : EXIT.failed;
}

/** Prints each status with its time as it comes; when no blocks come by themselves, asks the sandbox for one. */
async function follow(
  base: string,
  accessToken: string,
  transactionId: string,
  crypto: string,
  say: (line: string) => void,
): Promise<Checked> {
  const until = performance.now() + GIVE_UP_MS;
  let shown = 0;
  let known = 'none';
  for (;;) {
    const asked = { access_token: accessToken, transaction_id: transactionId, expand: ['events'] };
    // a known status is waited on; the first request answers at once
    const wait = known === 'none' ? {} : { wait_seconds: WAIT_SECONDS, status_was: known };
    const checked = await post<Checked>(base, '/check_transaction', { ...asked, ...wait });
    for (const { status, at, reason } of checked.events.slice(shown)) say(`${at}  ${status.padEnd(10)} ${reason}`);
    shown = checked.events.length;
    if (!GOES_ON.has(checked.status) || performance.now() > until) return checked;
    if (checked.status === known && checked.status === 'pending') {
      say(`still ${known}: mining a block`);
      await post(base, '/sandbox/mine', { currency: crypto, blocks: 1 });
    }
    known = checked.status;
  }
}
