// Every environment variable of the service, one row each. read-config.ts reads the environment by it, .env.example is made of it.
import { CURRENCY_CODES, type CurrencyCode, ETHER, type Network, nodesOf, TOKEN, UTXO_CODES } from '../../core/currency.ts';
import { rateLimits } from './rate-limits.ts';
import {
  bankOrigin,
  decimal,
  dollars,
  ETHEREUM_HEADS,
  evmAddress,
  FIXED_RATES_EXAMPLE,
  fixedRates,
  hexKey,
  host,
  integer,
  networks,
  oneOf,
  portList,
  postgresUrl,
  type Reader,
  rateSources,
  secretOf,
  signerLimits,
  text,
  url,
  urls,
} from './value-readers.ts';

export type Variable<T> = {
  readonly name: string;
  readonly section: string;
  /** The value when it is not set; null = none. */
  readonly fallback: string | null;
  readonly read: Reader<T>;
  /** May also be given as the path of a file in `<name>_FILE`, and is never printed. */
  readonly secret: boolean;
  /** The only process that gets and reads it; null = every process. */
  readonly owner: 'signer' | null;
  /** A path: a relative one refers to where the variable was set (setting-values.ts), and `read` gets it absolute. */
  readonly isPath: boolean;
  /** Why nothing reads it, as the end of a sentence: set, it ends a start, because whoever sets it counts on it. Null = it is read. */
  readonly unused: string | null;
  readonly help: string;
};

type Required<T> = Variable<T> & { readonly fallback: string; readonly owner: null };
type Optional<T> = Variable<T> & { readonly fallback: null; readonly owner: null };
type SignerOnly<T> = Variable<T> & { readonly fallback: null; readonly owner: 'signer' };

/** The demo merchant's password when BURSAR_DEMO_PASSWORD gives none. */
export const DEMO_PASSWORD = 'demo-demo-demo';

let section = '';
const rows: Variable<unknown>[] = [];
type Extras = Partial<Pick<Variable<unknown>, 'secret' | 'isPath' | 'unused'>>;

function add<R extends Variable<unknown>>(row: Omit<R, 'section' | keyof Extras>, extras: Extras = {}): R {
  const whole = { section, secret: false, isPath: false, unused: null, ...row, ...extras } as unknown as R;
  rows.push(whole);
  return whole;
}
function required<T>(name: string, fallback: string, read: Reader<T>, help: string, extras?: Extras): Required<T> {
  return add({ name, fallback, read, owner: null, help }, extras);
}
function optional<T>(name: string, read: Reader<T>, help: string, extras?: Extras): Optional<T> {
  return add({ name, fallback: null, read, owner: null, help }, extras);
}
/** A secret that can spend, or that opens one that can. */
function signerOnly<T>(name: string, read: Reader<T>, help: string, extras?: Extras): SignerOnly<T> {
  return add({ name, fallback: null, read, owner: 'signer', help }, { secret: true, ...extras });
}
function inSection(title: string): Record<never, never> {
  section = title;
  return {};
}

const SECRET = { secret: true } as const;
const sealingKey = (name: string, help: string) => optional(name, hexKey, help, SECRET);

const rpcUrls = (code: string): Optional<readonly string[]> =>
  optional(
    `BURSAR_${code}_RPC_URL`,
    urls('http', 'https'),
    `${code} node: http://user:password@host:port, with /wallet/… where needed; several, the preferred one first, separated by commas (a comma in a password is %2C)`,
    SECRET,
  );

/** The currencies that name their nodes. */
const NODE_CODES = CURRENCY_CODES.filter((code) => nodesOf(code) === code);
type NodeUrlName = `${Lowercase<CurrencyCode>}RpcUrl`;
/** The variable with the URLs of a currency's nodes. */
export const nodeUrlName = (code: CurrencyCode): NodeUrlName => `${nodesOf(code).toLowerCase() as Lowercase<CurrencyCode>}RpcUrl`;
const nodeUrls = () =>
  Object.fromEntries(NODE_CODES.map((code) => [nodeUrlName(code), rpcUrls(code)])) as Record<
    NodeUrlName,
    Optional<readonly string[]>
  >;

/** The rows by their names in the code. */
export const VARIABLES = {
  ...inSection('Where it listens'),
  port: required('PORT', '8080', integer(0, 65_535), 'port of the API; 0 = any free one'),
  host: required('HOST', '127.0.0.1', host, 'address of the API'),
  publicUrl: optional(
    'BURSAR_PUBLIC_URL',
    url('http', 'https'),
    'where clients reach the API (/openapi.json tells it); default: the listening address',
  ),
  metricsPort: optional('BURSAR_METRICS_PORT', integer(1, 65_535), 'port of /metrics, which asks for no password; unset: off'),
  trustedProxies: optional(
    'BURSAR_TRUSTED_PROXIES',
    networks,
    'proxies whose X-Forwarded-* count: addresses or networks, separated by commas',
  ),

  ...inSection('Where it keeps things'),
  envFile: optional(
    'BURSAR_ENV_FILE',
    text,
    'file that is read instead of .env beside package.json (/dev/null: none); in the environment only',
    { isPath: true },
  ),
  dataFolder: required('BURSAR_DATA_DIR', './data', text, 'folder of the embedded database, keys and the sandbox', {
    isPath: true,
  }),
  credentialKey: sealingKey(
    'BURSAR_CREDENTIAL_KEY',
    'seals users, sign-ins, the settings that let payouts through, and prices, so that the database alone can change none of them: 64 hexadecimal digits; unset: a key that is made in the data folder (credential-key), which all processes must then share',
  ),
  databaseUrl: optional('DATABASE_URL', postgresUrl, 'PostgreSQL to use instead of the embedded one', SECRET),
  valkeyUrl: optional('BURSAR_VALKEY_URL', url('redis', 'rediss', 'valkey', 'valkeys'), 'Valkey server', {
    ...SECRET,
    unused: 'several servers share their rate limits through the database',
  }),
  signerPassphrase: signerOnly(
    'BURSAR_SIGNER_PASSPHRASE',
    secretOf(12),
    'opens the encrypted seed of the signer; in the sandbox and on regtest one is generated',
  ),
  signerSocket: optional(
    'BURSAR_SIGNER_SOCKET',
    text,
    "path of the signer's unix socket, for a signer and a worker of two users: in a folder of the signer's user that the worker's group may enter (mode 750); default: in the data folder, for this user only",
    { isPath: true },
  ),
  signerLimits: optional(
    'BURSAR_SIGNER_LIMITS',
    signerLimits,
    `the most that the signer lets leave in one payout, an hour and a day, network fees included: ${UTXO_CODES[0]}:payout=1,hour=5,day=20;${UTXO_CODES[1]}:day=100; on mainnet nothing leaves in a currency without, elsewhere it is not limited`,
  ),

  ...inSection('The network and its nodes'),
  network: required<Network>(
    'BURSAR_NETWORK',
    'sandbox',
    oneOf('sandbox', 'regtest', 'testnet', 'mainnet'),
    'sandbox, regtest, testnet or mainnet; the sandbox needs nothing else',
  ),
  ...nodeUrls(),
  ethWsUrl: optional(...ETHEREUM_HEADS, SECRET),
  tokenContract: optional(
    `BURSAR_${TOKEN}_CONTRACT`,
    evmAddress,
    `${TOKEN} token contract, where it is not the one of mainnet; it is read from the nodes of ${ETHER}`,
  ),
  lndUrl: optional('BURSAR_LND_URL', url('https', 'http'), 'REST address of LND: https://host:8080'),
  lndCert: optional(
    'BURSAR_LND_CERT',
    text,
    "LND's TLS certificate (its tls.cert), which is pinned: its PEM text, or the path of the file; unset: the system's authorities decide",
  ),
  lndMacaroon: optional(
    'BURSAR_LND_MACAROON',
    text,
    'macaroon for invoices only, in hex, or the path of its file: lncli bakemacaroon --save_to FILE uri:/lnrpc.Lightning/GetInfo … (config check --nodes lists what it must permit)',
    SECRET,
  ),
  lndPayMacaroon: signerOnly(
    'BURSAR_LND_PAY_MACAROON',
    text,
    'macaroon that may pay, for the signer only, in hex, or the path of its file; without it no Lightning payouts (config check --nodes lists what it must permit)',
  ),

  ...inSection('Prices'),
  rateSources: optional(
    'BURSAR_RATE_SOURCES',
    rateSources,
    'exchanges to ask, separated by commas; each may have another address, which must answer as the exchange does: kraken,coinbase=https://proxy.example.org/coinbase; default: kraken, coinbase, bitstamp and bitfinex at their public addresses',
  ),
  fixedRates: optional(
    'BURSAR_FIXED_RATES',
    fixedRates,
    `prices in USD to use where no exchange can be asked: ${FIXED_RATES_EXAMPLE}; regtest and testnet only`,
  ),

  ...inSection('The bank'),
  bankFolder: optional(
    'BURSAR_BANK_DIR',
    text,
    "folder with outgoing/ for our files and incoming/ for the bank's, which the bank's own tools take away from there and put there; unset: no payouts by ach",
    { isPath: true },
  ),
  bankOrigin: optional(
    'BURSAR_BANK_ORIGIN',
    bankOrigin,
    'how the bank knows us: routing=091000019;name=WELLS FARGO BANK;company_id=1234567890;company=EXAMPLE INC',
  ),
  bankKey: sealingKey('BURSAR_BANK_KEY', 'seals account numbers and bank files where they are kept: 64 hexadecimal digits'),

  ...inSection('Webhooks'),
  webhookKey: sealingKey(
    'BURSAR_WEBHOOK_KEY',
    'seals the secrets of webhooks in the database: 64 hexadecimal digits; unset: a key that is made in the data folder (webhook-key), which API and worker must then share; the sandbox seals nothing',
  ),
  outboundPorts: required(
    'BURSAR_OUTBOUND_PORTS',
    '443,8443',
    portList,
    'ports that merchants and customers may name in the addresses that this server calls (webhooks); in the sandbox every port',
  ),

  ...inSection('The business'),
  feeBps: required('BURSAR_FEE_BPS', '0', integer(0, 10_000), 'fee of the service on credits, in hundredths of a percent'),
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
  exposureMinor: optional(
    'BURSAR_EXPOSURE_USD',
    dollars,
    'dollars that the service may have bought, or owe, of one currency by bank payouts; above them payouts stop until it is raised (INV-17); unset: no limit',
  ),
  contestedLimitMinor: required(
    'BURSAR_CONTESTED_LIMIT_USD',
    '1000',
    dollars,
    'where a currency has several nodes, payments worth more dollars than this are booked only in blocks that two of them hold',
  ),
  sweepGasMultiple: required(
    'BURSAR_SWEEP_GAS_MULTIPLE',
    '20',
    integer(0, 1_000_000),
    `payments in ${ETHER} and ${TOKEN} that are final and worth this many times the gas are moved to the address that payouts leave from; 0: none is`,
  ),
  rateLimits: optional(
    'BURSAR_RATE_LIMITS',
    rateLimits,
    'other rate limits than those of docs/behaviour.md, in calls a minute and after a slash the burst: create_transaction=240/120,anonymous=30 (failed_sign_ins: in 15 minutes); the same for all API processes',
  ),
  rateLimitScale: required('BURSAR_RATE_LIMIT_SCALE', '1', decimal(0.001, 1_000_000), 'multiplies every rate limit'),

  ...inSection('The sandbox'),
  demoPassword: optional(
    'BURSAR_DEMO_PASSWORD',
    secretOf(1),
    `password of the demo merchant (username demo), set at every start; unset: ${DEMO_PASSWORD}, and a changed one is kept`,
    SECRET,
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

type Value<V> = V extends { readonly fallback: string; read(text: string): infer T }
  ? T
  : V extends { read(text: string): infer T }
    ? T | null
    : never;

type Variables = typeof VARIABLES;
type Values<Owner> = {
  readonly [K in keyof Variables as Variables[K]['owner'] extends Owner ? K : never]: Value<Variables[K]>;
};

/** The configuration: each variable's value by its name in the code, null where it is not set and has no default. */
export type Config = Values<null>;

/** Secrets that only the signer and the commands that open its seed may read. */
export type SignerSecrets = Values<'signer'>;

/** Every row, in the order of the table. */
export const TABLE: readonly Variable<unknown>[] = rows;
