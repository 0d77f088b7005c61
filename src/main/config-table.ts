// Every environment variable of the service, one row each: its form, its default, what it is for. config.ts reads the environment by this
// table, .env.example is generated from it.
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import type { Network } from '../core/currency.ts';

/** Turns the text of a variable into its value, or throws an Error whose message says what is accepted. */
type Reader<T> = (text: string) => T;

export type Variable<T> = {
  readonly name: string;
  readonly section: string;
  /** What is read when it is not set; null = nothing. */
  readonly fallback: string | null;
  readonly read: Reader<T>;
  /** May also be given as the path of a file in `<name>_FILE`, and is never printed. */
  readonly secret: boolean;
  /** The only process that is told it and reads it; null = every one. */
  readonly owner: 'signer' | null;
  readonly help: string;
};

type Required<T> = Variable<T> & { readonly fallback: string; readonly owner: null };
type Optional<T> = Variable<T> & { readonly fallback: null; readonly owner: null };
type SignerOnly<T> = Variable<T> & { readonly fallback: null; readonly owner: 'signer' };

function integer(low: number, high: number): Reader<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < low || value > high) throw new Error(`a whole number from ${low} to ${high}`);
    return value;
  };
}

function decimal(low: number, high: number): Reader<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(text) || value < low || value > high) throw new Error(`a number from ${low} to ${high}`);
    return value;
  };
}

function oneOf<const T extends string>(...names: readonly T[]): Reader<T> {
  return (text) => {
    const found = names.find((name) => name === text);
    if (found === undefined) throw new Error(`one of ${names.join(', ')}`);
    return found;
  };
}

function url(...schemes: readonly string[]): Reader<string> {
  return (text) => {
    const parsed = URL.canParse(text) ? new URL(text) : null;
    if (parsed === null || !schemes.includes(parsed.protocol.slice(0, -1)))
      throw new Error(`a URL of the form ${schemes[0]}://…`);
    return text;
  };
}

/** A list separated by commas; no URL twice. */
function urls(...schemes: readonly string[]): Reader<readonly string[]> {
  const read = url(...schemes);
  return (text) => {
    const list = text.split(',').map((one) => read(one.trim()));
    if (new Set(list).size < list.length) throw new Error('a list in which no URL stands twice');
    return list;
  };
}

/** libpq leaves the host out where `?host=` names a socket's folder; a URL with a user must have one. */
const postgresUrl: Reader<string> = (value) =>
  url('postgresql', 'postgres')(value.replace(/^(postgres(?:ql)?:\/\/[^/?#]*@)(?=\/)/, '$1localhost'));

const text: Reader<string> = (value) => value;

const host: Reader<string> = (value) => {
  if (isIP(value) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value)) throw new Error('an IP address or a host name');
  return value;
};

const networks: Reader<readonly string[]> = (value) => {
  const list = value.split(',').map((part) => part.trim());
  const wrong = list.find((part) => {
    const [address = '', bits, rest] = part.split('/');
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    return family === 0 || rest !== undefined || (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > most));
  });
  if (wrong !== undefined) throw new Error('IP addresses or networks such as 10.0.0.0/8, separated by commas');
  return list;
};

/** Dollars with at most two decimals; cents come out. */
const dollars: Reader<bigint> = (value) => {
  const match = /^(\d{1,15})(?:\.(\d{1,2}))?$/.exec(value);
  if (match === null) throw new Error('an amount of dollars such as 10000 or 10000.00');
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(2, '0')}`);
};

const evmAddress: Reader<string> = (value) => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw new Error('an Ethereum address (0x and 40 hexadecimal digits)');
  return value;
};

const secretOf =
  (shortest: number): Reader<string> =>
  (value) => {
    if (value.length < shortest || value.length > 128) throw new Error(`${shortest} to 128 characters`);
    return value;
  };

/** The demo merchant's password when BURSAR_DEMO_PASSWORD gives none. */
export const DEMO_PASSWORD = 'demo-demo-demo';

let section = '';
const rows: Variable<unknown>[] = [];
function required<T>(name: string, fallback: string, read: Reader<T>, help: string, secret = false): Required<T> {
  const row = { name, section, fallback, read, secret, owner: null, help };
  rows.push(row);
  return row;
}
function optional<T>(name: string, read: Reader<T>, help: string, secret = false): Optional<T> {
  const row = { name, section, fallback: null, read, secret, owner: null, help };
  rows.push(row);
  return row;
}
/** A secret that can spend, or opens what can. */
function signerOnly<T>(name: string, read: Reader<T>, help: string): SignerOnly<T> {
  const row = { name, section, fallback: null, read, secret: true, owner: 'signer', help } as const;
  rows.push(row);
  return row;
}
function inSection(title: string): Record<never, never> {
  section = title;
  return {};
}

const rpcUrls = (code: string): Optional<readonly string[]> =>
  optional(
    `BURSAR_${code}_RPC_URL`,
    urls('http', 'https'),
    `${code} node: http://user:password@host:port, with /wallet/… where needed; several, the preferred one first, separated by commas (a comma in a password is %2C)`,
    true,
  );

/** The rows by the names under which the code knows them. */
export const VARIABLES = {
  ...inSection('Where it listens'),
  port: required('PORT', '8080', integer(0, 65_535), 'port of the API; 0 = any free one'),
  host: required('HOST', '127.0.0.1', host, 'address of the API'),
  publicUrl: optional('BURSAR_PUBLIC_URL', url('http', 'https'), 'base of checkout.url; default: the listening address'),
  metricsPort: optional('BURSAR_METRICS_PORT', integer(1, 65_535), 'port of /metrics; unset: off'),
  trustedProxies: optional(
    'BURSAR_TRUSTED_PROXIES',
    networks,
    'proxies whose X-Forwarded-* count: addresses or networks, separated by commas',
  ),

  ...inSection('Where it keeps things'),
  dataFolder: required(
    'BURSAR_DATA_DIR',
    './data',
    (path) => resolve(path),
    'folder of the embedded database, keys and the sandbox',
  ),
  databaseUrl: optional('DATABASE_URL', postgresUrl, 'PostgreSQL to use instead of the embedded one', true),
  valkeyUrl: optional(
    'BURSAR_VALKEY_URL',
    url('redis', 'rediss', 'valkey', 'valkeys'),
    'accepted, not used: several servers share their rate limits through the database',
    true,
  ),
  signerPassphrase: signerOnly(
    'BURSAR_SIGNER_PASSPHRASE',
    secretOf(12),
    'opens the encrypted seed of the signer; in the sandbox and on regtest one is generated',
  ),

  ...inSection('The network and its nodes'),
  network: required<Network>(
    'BURSAR_NETWORK',
    'sandbox',
    oneOf('sandbox', 'regtest', 'testnet', 'mainnet'),
    'sandbox, regtest, testnet or mainnet; the sandbox needs nothing else',
  ),
  btcRpcUrl: rpcUrls('BTC'),
  ltcRpcUrl: rpcUrls('LTC'),
  bchRpcUrl: rpcUrls('BCH'),
  dogeRpcUrl: rpcUrls('DOGE'),
  dashRpcUrl: rpcUrls('DASH'),
  ethRpcUrl: optional('BURSAR_ETH_RPC_URL', url('http', 'https', 'ws', 'wss'), 'Ethereum node', true),
  usdtContract: optional('BURSAR_USDT_CONTRACT', evmAddress, 'USDT token contract, where it is not the one of mainnet'),
  lndUrl: optional('BURSAR_LND_URL', url('https', 'http'), 'REST address of LND'),
  lndCert: optional('BURSAR_LND_CERT', text, 'TLS certificate of LND: its PEM text, or the path of the file'),
  lndMacaroon: optional('BURSAR_LND_MACAROON', text, 'macaroon for invoices only', true),
  lndPayMacaroon: signerOnly('BURSAR_LND_PAY_MACAROON', text, 'macaroon of the payout driver; without it no Lightning payouts'),

  ...inSection('The business'),
  feeBps: required(
    'BURSAR_FEE_BPS',
    '0',
    integer(0, 10_000),
    'own fee on what a merchant is credited, in hundredths of a percent',
  ),
  settlementSeconds: required(
    'BURSAR_SETTLEMENT_SECONDS',
    '86400',
    integer(0, 31_536_000),
    'seconds from succeeded to settled, at least',
  ),
  unfinalPayoutMinor: optional(
    'BURSAR_UNFINAL_PAYOUT_USD',
    dollars,
    'dollars a merchant may pay out before its credits are final; default 10000, in the sandbox no limit',
  ),
  contestedLimitMinor: required(
    'BURSAR_CONTESTED_LIMIT_USD',
    '1000',
    dollars,
    'while the nodes of a coin contradict each other, nothing worth more dollars than this is booked on it',
  ),
  rateLimitScale: required('BURSAR_RATE_LIMIT_SCALE', '1', decimal(0.001, 1_000_000), 'multiplies every rate limit'),

  ...inSection('The sandbox'),
  demoPassword: optional(
    'BURSAR_DEMO_PASSWORD',
    secretOf(1),
    `password of the demo merchant (username demo), set at every start; unset: ${DEMO_PASSWORD}, and a changed one is kept`,
    true,
  ),
  sandboxBlockSeconds: required(
    'BURSAR_SANDBOX_BLOCK_SECONDS',
    '2',
    decimal(0, 86_400),
    'seconds between blocks; 0 = only by /sandbox/mine',
  ),

  ...inSection('Tests'),
  peersCache: optional(
    'BURSAR_PEERS_CACHE',
    text,
    'where npm test keeps the real nodes it tests against; the service does not read it',
  ),
};

/** Every row, in the order of the table. */
export const TABLE: readonly Variable<unknown>[] = rows;

/** The text of .env.example: every variable with its default, by sections. */
export function envExample(): string {
  const parts = [
    '# Every setting, with its default. Copy to .env for your own notes; the service reads its environment, not this file.',
  ];
  let title = '';
  for (const row of TABLE) {
    if (row.section !== title) parts.push(`\n# ${row.section}`);
    title = row.section;
    parts.push(`# ${row.help}${row.secret ? ` (or the path of a file with it in ${row.name}_FILE)` : ''}`);
    parts.push(row.fallback === null ? `#${row.name}=` : `${row.name}=${row.fallback}`);
  }
  return `${parts.join('\n')}\n`;
}
