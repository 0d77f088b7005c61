// The operator of a service whose database, or database and signer, were put back to an earlier copy: he does what the audit and `/readyz` say, and
// decides what they ask by what lies in the outside world.
import { setTimeout as delay } from 'node:timers/promises';
import { runCli } from '../cli/run.ts';
import { control, type Json } from './caller.ts';
import type { Scene } from './customers.ts';
import type { Payout } from './model.ts';

const NAMES = /\b0x[0-9a-f]{64}\b|\b[0-9a-f]{64}\b|\b\d{4}-\d\d-\d\d-[A-Z0-9]\b/g;
/** What nobody can end, and nobody need. */
const SAID_FOR_A_DAY = /address indexes \d+ to \d+ are passed over/;
/** Where it was killed, on a busy machine. */
const DATABASE_BACK_MS = 60_000;
const EVIDENCE = 'its recipient says so';

export type Operator = {
  /** Does once what there is to do. @returns what is still red, or waits for him */
  work(): Promise<readonly string[]>;
};

export function createOperator(scene: Scene, folder: string, note: (text: string) => void): Operator {
  const run = (...args: string[]) => runCli(args, { BURSAR_DATA_DIR: folder });
  /** A command that only reads, again while the database is coming back. */
  async function read(...args: string[]): Promise<string> {
    for (const end = performance.now() + DATABASE_BACK_MS; ; await delay(250)) {
      const { out, err } = await run(...args);
      if (!err.includes('"overloaded"') || performance.now() > end) return out;
    }
  }
  const said = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await run(...args);
    const text = `${out}${err}`.trim();
    note(`bursar ${args.join(' ')}: ${code} ${text.slice(0, 600)}`);
    return code === 0 ? '' : text;
  };
  const problems = async (): Promise<string[]> =>
    ((await (await fetch(`${scene.base()}/readyz`)).json()) as { problems: string[] }).problems;

  async function recover(name: string): Promise<void> {
    const refused = await said('payout', 'recover', name);
    if (refused.includes('--accept-loss')) await said('payout', 'recover', name, '--accept-loss');
  }
  const askedFor = (id: unknown): Payout | undefined =>
    scene.merchants.flatMap(({ model }) => model.payouts).find((one) => one.id === id);
  /** Whether the outside world has it. */
  async function isPaid({ method, currency, destination }: Json, asked: Payout | undefined): Promise<boolean> {
    const where = method === 'lightning' ? 'BTC-LN' : method === 'ach' ? 'USD' : currency;
    const address = asked?.destination ?? destination;
    const { status, json } = await control(scene.base(), 'receive', { currency: where, address });
    if (status !== 200) throw new Error(`/sandbox/receive ${where} ${address} answered ${status} ${JSON.stringify(json)}`);
    return (json.payments as unknown[]).length > 0;
  }
  async function resolve(one: Json): Promise<void> {
    const asked = askedFor(one.payout_id);
    // what the bank was given arrives days later: only then does its recipient know
    if (one.method === 'ach') await control(scene.base(), 'bank', { action: 'settle' });
    const isThere = await isPaid(one, asked);
    if (asked !== undefined) asked.isResolved = true;
    asked?.mayFail.add(EVIDENCE);
    await said('payout', 'resolve', String(one.payout_id), isThere ? '--paid' : '--failed', '--evidence', EVIDENCE);
  }

  return {
    async work() {
      const out = await read('audit');
      const red = out.split('\n').filter((line) => /^(red|stopped)/.test(line) || line.includes('payout recover'));
      const told = [...red, ...(await problems())];
      const names = new Set(told.filter((line) => line.includes('payout recover')).flatMap((line) => line.match(NAMES) ?? []));
      for (const name of names) await recover(name);
      const { data } = JSON.parse(await read('payout', 'list', '--json')) as { data: Json[] };
      const open = data.filter(({ held_reason }) => held_reason === 'unknown_outcome');
      for (const one of open) await resolve(one);
      if (told.some((line) => line.includes('--acknowledge database'))) await said('audit', '--acknowledge', 'database');
      const isStopped =
        told.some((line) => line.startsWith('stopped')) || data.some(({ held_reason }) => held_reason === 'breaker');
      if (isStopped) await said('audit', '--clear');
      return [...told.filter((line) => !SAID_FOR_A_DAY.test(line)), ...open.map((one) => JSON.stringify(one))];
    },
  };
}
