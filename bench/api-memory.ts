// What the API keeps in memory: at rest, and whether it grows under load.
import { setTimeout as delay } from 'node:timers/promises';
import { checkBodies, createBodies } from './bodies.ts';
import type { Instance } from './instance.ts';
import { loadWell } from './measure.ts';
import { options, SIZE } from './options.ts';
import { residentBytes } from './processes.ts';
import type { Figure } from './report.ts';

const MEBIBYTE = 2 ** 20;

/** The memory of the API at rest, after its caches are filled, and after many requests more. */
export async function apiMemory({ port, apiPid }: Instance, token: string): Promise<Figure[]> {
  await delay(options.quick ? 100 : 5000);
  const rest = residentBytes(apiPid);
  const made = await loadWell({
    port,
    path: '/create_transaction',
    bodies: createBodies(token),
    connections: 8,
    requests: 1000,
    collect: 'transaction_id',
  });
  const bodies = checkBodies(token, made.collected);
  await loadWell({ port, path: '/check_transaction', bodies, connections: 32, requests: 10_000 });
  const warm = residentBytes(apiPid);
  await loadWell({ port, path: '/check_transaction', bodies, connections: 32, requests: SIZE.soak });
  const after = residentBytes(apiPid);
  const mib = (bytes: number) => `${(bytes / MEBIBYTE).toFixed(0)} MiB`;
  return [
    { work: 'API memory (RSS) at rest', measured: mib(rest), goal: '≤ 150 MB' },
    {
      work: `API memory after ${SIZE.soak.toLocaleString('en')} requests more`,
      measured: `${mib(after)}: ${(100 * (after / warm - 1)).toFixed(0)} % over the ${mib(warm)} after the first 11,000, ${(100 * (after / rest - 1)).toFixed(0)} % over rest`,
      goal: 'no growth beyond 20 %',
    },
  ];
}
