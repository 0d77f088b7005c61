// What a payout costs until it is taken: request_payout, in CPU of the API and of PostgreSQL, which meanwhile also serves the worker that forms
// batches of what was asked for.
import type { Instance } from './instance.ts';
import { cpuOf, type Measured, measure, median } from './measure.ts';
import type { Figure } from './report.ts';

const CONNECTIONS = 8;
const MOST_USD = 100_000;

/** @param requests in one round; the demo merchant earns what they need */
export async function measurePayouts(
  instance: Instance,
  { requests, rounds }: { requests: number; rounds: number },
): Promise<Figure> {
  const token = await instance.token();
  const ask = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(`http://127.0.0.1:${instance.port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  for (let left = requests * (rounds + 1) * 0.0015 * 65_000; left > 0; left -= MOST_USD) {
    const order = { access_token: token, amount: `${Math.min(MOST_USD, Math.ceil(left))}.00`, crypto_selected: 'BTC' };
    const { transaction_id } = await ask('/create_transaction', order);
    await ask('/sandbox/pay', { transaction_id });
    await ask('/sandbox/mine', { currency: 'BTC', blocks: 6 });
    await ask('/check_transaction', { access_token: token, transaction_id, status_was: 'pending', wait_seconds: 20 });
  }
  const { address } = await ask('/sandbox/address', { currency: 'BTC' });
  const bodies = [JSON.stringify({ access_token: token, method: 'bitcoin', amount: '0.001', destination: address })];
  const server = { port: instance.port, pid: instance.apiPid, postmasterPid: instance.postmasterPid };
  const all: Measured[] = [];
  for (let round = 0; round <= rounds; round++)
    all.push(await measure(server, { path: '/request_payout', bodies, connections: CONNECTIONS, requests }));
  const one = median(all.slice(1), cpuOf);
  return {
    work: `request_payout, ${CONNECTIONS} connections, one merchant`,
    measured: `${(cpuOf(one) / 1_000).toFixed(2)} ms CPU (API ${(one.nodeMicros / 1_000).toFixed(2)}, PostgreSQL ${(one.postgresMicros / 1_000).toFixed(2)}), p99 ${one.p99Ms.toFixed(1)} ms`,
    goal: '≤ 1.5 ms',
  };
}
