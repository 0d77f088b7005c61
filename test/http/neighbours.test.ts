// Rate limits hold across all servers of one database: what one counts, the others count too, and none waits for another.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFailureCount, createLimiter, type Shared } from '../../src/http/rate-limit.ts';
import { openNeighbours } from '../../src/main/neighbours.ts';
import { freshDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

describe('two servers on one database', () => {
  let database: Awaited<ReturnType<typeof freshDatabase>>;
  let servers: Awaited<ReturnType<typeof openNeighbours>>[];
  const troubles: unknown[] = [];
  const nowMs = Date.parse('2026-01-01T00:00:00Z');
  const shared = (n: number): Shared<string> => ({
    neighbours: (servers[n] as (typeof servers)[number]).neighbours,
    now: () => nowMs,
    keyOf: (text) => text,
  });

  beforeAll(async () => {
    database = await freshDatabase();
    const open = () => openNeighbours(database.db, (error) => troubles.push(error));
    servers = [await open(), await open()];
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
    await database.drop();
    expect(troubles).toEqual([]);
  });

  test('calls to one are counted by the other', async () => {
    const [here, there] = [0, 1].map((n) => createLimiter<string>('auth', { perMinute: 20 }, 1, shared(n)));
    // the neighbours know of each other a moment after they opened
    await eventually('the other counts', () => {
      here?.take('warm up', nowMs);
      return there?.retryAfterSeconds('warm up', nowMs) !== 1 || !there.take('warm up', nowMs);
    });
    for (let i = 0; i < 20; i++) expect(here?.take('192.0.2.1', nowMs)).toBe(true);
    await eventually('the other refuses', () => there?.take('192.0.2.1', nowMs) === false);
    expect(there?.take('192.0.2.2', nowMs)).toBe(true);
  });

  test('failed sign-ins at one block the name at the other', async () => {
    const [here, there] = [0, 1].map((n) => createFailureCount(1, shared(n)));
    for (let i = 0; i < 5; i++) here?.add('192.0.2.1 shop', nowMs);
    expect(here?.blockedSeconds('192.0.2.1 shop', nowMs)).toBe(900);
    await eventually('the other blocks', () => there?.blockedSeconds('192.0.2.1 shop', nowMs) === 900);
  });
});
