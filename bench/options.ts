// The options of a bench run: which parts, how large, and where the figures go.
import { parseArgs } from 'node:util';

/** Everything that can be measured, by the name that --only accepts. */
const PARTS = {
  scan: 'blocks parsed and matched, five currencies',
  replaced: 'the judge on outputs that were replaced again and again',
  flood: 'scripts that somebody has made to collide',
  start: 'npm start to ready, and the memory of all processes at rest',
  rest: 'CPU and database transactions of everything while nothing happens',
  dust: 'the judge on an order that is paid in very many outputs',
  chains: 'catch-up, a first reading of a mempool, the memory of watch lists',
  evm: "Ethereum's blocks: CPU, calls of the node, catch-up",
  memory: 'the memory of the API at rest and under load',
  parallel: '200 parallel creates',
  check: 'check_transaction beside the bare limit',
  create: 'create_transaction beside the bare limit',
  account: 'get_account_info',
  lists: 'list_transactions',
  auth: 'auth',
  payouts: 'request_payout',
  lightning: 'invoices, payments and payouts over Lightning',
  webhooks: 'deliveries to webhooks, and streams of events',
  lives: 'lives of transactions in CPU of every process: paid, unpaid, looked up once more',
  growth: 'create at a million rows against ten thousand',
} as const;
export type PartName = keyof typeof PARTS;

const NAMES = Object.keys(PARTS) as PartName[];
const USAGE = `usage: npm run bench -- [options]

Starts an instance and the bare limit beside it, drives both and prints what a request costs.

  --quick         a few seconds, figures without meaning: to see that it works
  --write         also into bench/RESULTS.md
  --profile       CPU profiles of every process of the service into bench/profiles
  --list          the names of the parts
  --only <names>  those parts alone, separated by commas
  --help          this text
`;

function parsed() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      only: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.only !== undefined && values.write) throw new Error('--only measures a part, --write wants the whole');
  const unknown = values.only?.split(',').filter((name) => !NAMES.some((known) => known === name)) ?? [];
  if (unknown.length > 0) throw new Error(`--only: ${unknown.join(', ')} is no part; they are ${NAMES.join(', ')}`);
  return values;
}

/** Reads the command line; a wrong one, or a request for help, ends the process here. */
function read() {
  try {
    const values = parsed();
    if (values.help) process.stdout.write(USAGE);
    else if (values.list) process.stdout.write(NAMES.map((name) => `${name.padEnd(10)} ${PARTS[name]}\n`).join(''));
    else return values;
    process.exit(0);
  } catch (error) {
    process.stderr.write(`bench: ${(error as Error).message.split('\n')[0]}\n`);
    process.exit(2);
  }
}

export const options = read();
const only = options.only?.split(',');

/** Whether any of these parts is to be measured. */
export function wanted(...names: readonly PartName[]): boolean {
  return only === undefined || names.some((name) => only.includes(name));
}

export const SIZE = options.quick
  ? {
      rounds: 1,
      seconds: 0.1,
      soak: 500,
      smallRows: 1000,
      largeRows: 5000,
      growthRequests: 20,
      watched: 20_000,
      behind: 5,
      waiting: 2_000,
      evm: { open: 2_000, blocks: 20 },
      dust: 1_500,
      webhooks: { idle: 10, waiting: 400, creates: 10, streams: 20, rounds: 1 },
      lightning: { each: 5, parallel: 20, open: 50, rest: { afterMs: 0, seconds: 1 } },
      lives: { unpaid: 20, rounds: 1, afterSeconds: 0, restSeconds: 1 },
    }
  : {
      rounds: 5,
      seconds: 4,
      soak: 100_000,
      smallRows: 10_000,
      largeRows: 1_000_000,
      growthRequests: 2000,
      watched: 1_000_000,
      behind: 600,
      waiting: 100_000,
      evm: { open: 100_000, blocks: 5_000 },
      dust: 20_000,
      webhooks: { idle: 200, waiting: 100_000, creates: 2_000, streams: 1_000, rounds: 9 },
      lightning: { each: 200, parallel: 500, open: 10_000, rest: { afterMs: 20_000, seconds: 60 } },
      lives: { unpaid: 3_000, rounds: 30, afterSeconds: 12, restSeconds: 10 },
    };
