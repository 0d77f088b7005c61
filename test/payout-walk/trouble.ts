// What happens to the world while merchants go on: processes are killed, nodes lose answers, refuse or are away, blocks come and are replaced,
// the bank settles, the clock jumps. And how all of it ends, so that everything that is on its way can arrive.
import { readFileSync } from 'node:fs';
import type { Random } from '../simulation/random.ts';
import type { Service } from '../support/service.ts';
import { control, post } from './caller.ts';

export type World = {
  readonly base: () => string;
  readonly service: () => Service;
  /** The second worker's process. */
  readonly second: () => number | null;
  readonly random: Random;
  readonly note: (text: string) => void;
};

const WEIGHTS = {
  worker: 16,
  second: 8,
  signer: 10,
  api: 8,
  postgres: 4,
  cut: 6,
  sandbox: 4,
  loseAnswers: 14,
  reject: 8,
  away: 8,
  reorg: 16,
  mine: 70,
  settle: 8,
  bankLoses: 4,
};
const CHAINS = ['BTC', 'ETH', 'LTC', 'BCH', 'DASH', 'DOGE'] as const;
/** Those that payouts leave by, more often than the rest. */
const BUSY = { BTC: 40, ETH: 40, LTC: 5, BCH: 5, DASH: 5, DOGE: 5 };
const NODES = { BTC: 40, ETH: 30, 'BTC-LN': 30, LTC: 4, DOGE: 4 };
/** Less deep than anything is final. */
const DEEPEST: Readonly<Record<(typeof CHAINS)[number], number>> = { BTC: 3, ETH: 12, LTC: 4, BCH: 4, DASH: 1, DOGE: 6 };

const mine = (base: string, currency: string, blocks: number) => control(base, 'mine', { currency, blocks });

/** Lets one thing happen; what it leaves behind (a node that is away) stays until `calm`, or until the next step of the walk. */
export async function trouble({ base, service, second, random, note }: World): Promise<void> {
  const what = random.weighted(WEIGHTS);
  const kill = (pid: number | null): void => {
    note(`kill -9 of ${what}${pid === null ? ', which is not there' : ''}`);
    try {
      if (pid !== null) process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended meanwhile
    }
  };
  const node = async (of: object): Promise<void> => {
    const currency = random.weighted(NODES);
    note(`node of ${currency}: ${JSON.stringify(of)}`);
    await post(`${base()}/sandbox/node`, { currency, ...of });
  };
  switch (what) {
    case 'worker':
    case 'signer':
    case 'api':
      return kill(service().processOf(what));
    case 'second':
      return kill(second());
    case 'postgres':
      return kill(service().postgres());
    case 'cut':
      note('every connection to the database is cut');
      return cutConnections(service().postgres());
    case 'sandbox':
      return kill(service().processOf('sandbox-process'));
    case 'loseAnswers':
      return node({ fault: 'lose_answers', for: random.whole(1, 3) });
    case 'reject':
      return node({ fault: 'reject', for: random.whole(1, 2) });
    case 'away':
      return node({ down: true });
    case 'reorg': {
      const currency = random.weighted(BUSY);
      const depth = random.whole(1, DEEPEST[currency]);
      const { status } = await post(`${base()}/sandbox/reorg`, { currency, depth });
      return note(`${depth} blocks of ${currency} are replaced: ${status}`);
    }
    case 'mine': {
      const currency = random.weighted(BUSY);
      const blocks = random.whole(1, currency === 'ETH' ? 14 : currency === 'DOGE' ? 20 : 3);
      await mine(base(), currency, blocks);
      return note(`${blocks} blocks of ${currency}`);
    }
    case 'settle':
      note('the bank settles');
      await post(`${base()}/sandbox/bank`, { action: 'settle' });
      return;
    default:
      note('the bank loses an answer');
      await post(`${base()}/sandbox/bank`, { action: 'lose_answer' });
  }
}

/** Ends the sessions of everybody, whatever they are doing: a commit among them has no answer. */
function cutConnections(postgres: number | null): void {
  if (postgres === null) return;
  const childrenOf = (pid: number): string[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  try {
    for (const pid of childrenOf(postgres))
      if (/^postgres: bursar_\w+ /.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) process.kill(Number(pid), 'SIGTERM');
  } catch {
    // one has ended meanwhile
  }
}

/** The clock jumps while nobody asks for anything. */
export async function jump({ base, random, note }: World): Promise<void> {
  const seconds = random.weighted({ lease: 50, window: 20, hours: 10, day: 8 });
  const span = { lease: random.whole(15, 70), window: random.whole(900, 1_100), hours: random.whole(3_600, 20_000), day: 86_400 };
  note(`the clock jumps by ${span[seconds]} s`);
  await post(`${base()}/sandbox/clock`, { advance_seconds: span[seconds] });
}

/** Every node answers again. */
export async function nodesAreBack({ base }: Pick<World, 'base'>): Promise<void> {
  for (const currency of Object.keys(NODES)) await control(base(), 'node', { currency, fault: null, down: false });
}

/** A block on every chain, a moment later: what waits goes on. */
export async function goOn({ base }: Pick<World, 'base'>, seconds: number): Promise<void> {
  await post(`${base()}/sandbox/clock`, { advance_seconds: seconds });
  await Promise.all(CHAINS.map((currency) => mine(base(), currency, currency === 'ETH' ? 13 : 2)));
}

/** Blocks until nothing undoes anything any more. */
export async function allIsFinal({ base }: Pick<World, 'base'>): Promise<void> {
  const depths = { BTC: 7, ETH: 66, LTC: 13, BCH: 11, DASH: 13, DOGE: 61 };
  await Promise.all(CHAINS.map((currency) => mine(base(), currency, depths[currency])));
}
