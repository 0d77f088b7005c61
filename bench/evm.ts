// What Ethereum's chain costs: a block of the main chain's size for both currencies together, the calls that a block takes, and a catch-up,
// through the service's own adapters and watchers, on a node in a process of its own.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sortableId } from '../src/core/ids.ts';
import { LOGS, MOST_PAID, TRANSACTIONS } from './evm-block.ts';
import type { BlockResult, FollowResult } from './evm-process.ts';
import type { Figure } from './report.ts';

type Counts = Readonly<Record<string, number>>;

const TIME_DIGITS = 14;
/** A hundredth of a block for us is much. */
const USUALLY_PAID = 4;
const MEBIBYTE = 2 ** 20;
const NODE = fileURLToPath(new URL('evm-node.ts', import.meta.url));
const READER = fileURLToPath(new URL('evm-process.ts', import.meta.url));
const count = (n: number): string => n.toLocaleString('en');

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a process ended with ${code}`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.off('exit', ended);
      resolve(message as T);
    });
  });
}

async function startNode(paid: number, open: number) {
  const child = fork(NODE, [String(paid), String(open)], { execArgv: [] });
  const { port } = await nextMessage<{ port: number }>(child);
  return {
    url: `http://127.0.0.1:${port}`,
    /** Sets its tip; what was asked until now. */
    async moveTo(height: number): Promise<Counts> {
      const counts = nextMessage<Counts>(child);
      child.send(height);
      return counts;
    },
    stop: () => child.disconnect(),
  };
}

/** All of it. */
export async function measureEvm(
  database: (name: string) => Promise<string>,
  size: { readonly open: number; readonly blocks: number },
): Promise<Figure[]> {
  return [await readEvmBlock(size.open), ...(await followEvm(database, size))];
}

/** A block with payments in ether, from contracts and in tokens, read for both currencies. @param open addresses that are watched */
async function readEvmBlock(open: number): Promise<Figure> {
  const node = await startNode(MOST_PAID, open);
  try {
    const child = fork(READER, ['block', node.url, String(open)], { execArgv: [] });
    const { cpuMs, wallMs, found } = await nextMessage<BlockResult>(child);
    if (found !== MOST_PAID) throw new Error(`${found} payments were found, not ${MOST_PAID}`);
    return {
      work: `ETH and USDT block of ${TRANSACTIONS} transactions, ${LOGS} logs and their traces, against ${count(open)} addresses`,
      measured: `CPU ${cpuMs.toFixed(1)} ms, ${wallMs.toFixed(1)} ms with its transfer; ${found} found`,
      goal: '≤ 60 ms of CPU',
    };
  } finally {
    node.stop();
  }
}

type Followed = FollowResult & { readonly idle: Counts; readonly block: Counts };

/** Lets the watchers of both currencies follow a chain: a look without news, one block more, then many at once. */
async function follow(
  databaseUrl: string,
  { paid, open, blocks }: { paid: number; open: number; blocks: number },
): Promise<Followed> {
  await fillOpen(databaseUrl, open);
  const node = await startNode(paid, open);
  try {
    const child = fork(READER, ['follow', node.url, databaseUrl, String(blocks)], { execArgv: [] });
    const asked: Counts[] = [];
    for (;;) {
      const said = await nextMessage<{ tip: number } | FollowResult>(child);
      if ('seconds' in said) return { ...said, idle: asked[1] as Counts, block: asked[2] as Counts };
      asked.push(await node.moveTo(said.tip));
      child.send('go on');
    }
  } finally {
    node.stop();
  }
}

/** What a block adds to a look at the node, and of which calls. */
function added({ idle, block }: Followed): string {
  const more = Object.entries(block).flatMap(([method, n]) => {
    const extra = n - (idle[method] ?? 0);
    return extra > 0 ? [[method, extra] as const] : [];
  });
  const total = more.reduce((sum, [, n]) => sum + n, 0);
  return `${total} (${more.map(([method, n]) => `${n} ${method}`).join(', ')})`;
}

/** @param database makes a migrated one without transactions */
async function followEvm(
  database: (name: string) => Promise<string>,
  { open, blocks }: { readonly open: number; readonly blocks: number },
): Promise<Figure[]> {
  const few = await follow(await database('bursar_evm_few'), { paid: 2, open: 10, blocks: 1 });
  const many = await follow(await database('bursar_evm_many'), { paid: MOST_PAID, open, blocks: 1 });
  const long = await follow(await database('bursar_evm_long'), { paid: USUALLY_PAID, open, blocks });
  if (long.blocks !== blocks) throw new Error(`${long.blocks} blocks were read, not ${blocks}`);
  const mib = (bytes: number): string => `${(bytes / MEBIBYTE).toFixed(0)} MiB`;
  return [
    {
      work: `calls of a node for one more block, ETH and USDT together, 2 of 10 addresses paid, ${MOST_PAID} of ${count(open)}`,
      measured: `${added(few)}; ${added(many)}`,
      goal: '≤ 6 for a currency, the same',
    },
    {
      work: `catch-up on ${count(blocks)} such blocks, ETH and USDT together, ${USUALLY_PAID} payments in each`,
      measured: `${(blocks / long.seconds).toFixed(1)} blocks/s (${(long.cpuMs / blocks).toFixed(0)} ms of CPU each); memory (RSS) at most ${mib(long.mostRss)}, ${mib(long.earlyRss)} after the first tenth`,
      goal: 'no growth beyond 20 %',
    },
  ];
}

/** Open transactions of today, in ether and USDT in turn, at the addresses of {@link payee}. */
async function fillOpen(databaseUrl: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `insert into merchants (affiliate_id, email, business_name, created_at) values ('aff_bench', 'a@example.com', 'Bench', now())`,
  );
  await client.query({
    text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                     address, script, created_at, window_ends_at)
             select $1 || 'z' || lpad(n::text, 11, '0'), (select min(id) from merchants), (array['ETH', 'USDT'])[1 + n % 2], 'started',
                    2500, 38462, 1, now(), '[]', 100, 'accept', 'fill' || n, decode('65766d' || md5(n::text) || substr(md5('x' || n), 1, 8), 'hex'),
                    now(), now() + interval '15 minutes'
               from generate_series(0, $2::int - 1) n`,
    values: [sortableId('txn_', Date.now(), new Uint8Array(10)).slice(0, TIME_DIGITS), rows],
  });
  await client.end();
}
