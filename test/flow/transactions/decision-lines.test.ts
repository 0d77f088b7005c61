// Whose turn a decision is: how many run at once, how many of one caller, how many wait, and what of a large one is asked before its turn.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Refusal } from '../../../src/core/refusal.ts';
import type { Context } from '../../../src/flow/context.ts';
import { type Decider, inTurn } from '../../../src/flow/transactions/decision-lines.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const LARGE = 1_001;
let service: ServiceOnDatabase;
let id: string;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterAll(() => service.drop());
beforeEach(async () => {
  ({ transactionId: id } = await service.create());
});

async function havePayments(last: number, first = 1): Promise<void> {
  await service.admin.query(
    `insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, seen_at, caught_up_at, found_mined)
       select 'BTC', $1, $1, n, 546, '', 'mempool', now(), now(), false from generate_series($2::integer, $3::integer) as n`,
    [id, first, last],
  );
}

/** Calls that decide; each decision goes on until `end`. */
function calls() {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const made: Promise<string | null>[] = [];
  const seen = { asked: 0, begun: 0, refusable: 0 };
  const ctx: Context = {
    ...service.ctx,
    db: {
      ...service.db,
      query: (statement) => {
        if (statement.name === 'count_payments_up_to') seen.asked += 1;
        return service.db.query(statement);
      },
    },
  };
  const { promise: allRefusable, resolve: noteAllRefusable } = Promise.withResolvers<void>();
  function call(merchantId: bigint | null, decider: Partial<Decider> = {}): void {
    const decision = async () => {
      seen.begun += 1;
      await ended;
      return 'decided';
    };
    const refuseEarly = () => {
      seen.refusable += 1;
      if (seen.refusable === made.length) noteAllRefusable();
    };
    made.push(inTurn(ctx, id, { merchantId, refuseEarly, mostPayments: null, ...decider }, decision));
  }
  async function results(): Promise<Record<string, number>> {
    end();
    const count: Record<string, number> = {};
    for (const one of await Promise.allSettled(made)) {
      const result = one.status === 'fulfilled' ? String(one.value) : (one.reason as Refusal).code;
      count[result] = (count[result] ?? 0) + 1;
    }
    return count;
  }
  /** Every call is on a large one, and has come to where its turn is asked for. */
  const allInLine = () => allRefusable;
  return { call, seen, results, allInLine };
}

describe('of small ones', () => {
  test('eight run at once of all callers, and the operator is a caller of his own', async () => {
    const { call, seen, results } = calls();
    for (let n = 1n; n <= 7n; n++) call(n);
    for (let n = 0; n < 3; n++) call(1n);
    expect(seen.asked).toBe(8);
    expect(await results()).toEqual({ decided: 10 });
    const others = calls();
    for (let n = 0; n < 4; n++) others.call(1n);
    others.call(null);
    expect(others.seen.asked).toBe(5);
    expect(await others.results()).toEqual({ decided: 5 });
  });

  test('four of one caller run at once, and a thousand wait', async () => {
    const { call, seen, results } = calls();
    for (let n = 0; n < 1_005; n++) call(1n);
    expect(seen.asked).toBe(4);
    expect(await results()).toEqual({ decided: 1_004, overloaded: 1 });
  });
});

describe('of large ones', () => {
  test('those are large that have more than a thousand payments', async () => {
    await havePayments(LARGE - 1);
    const small = calls();
    small.call(service.merchantId);
    expect([await small.results(), small.seen.refusable]).toEqual([{ decided: 1 }, 0]);
    await havePayments(LARGE, LARGE);
    const large = calls();
    large.call(service.merchantId);
    expect([await large.results(), large.seen.refusable]).toEqual([{ decided: 1 }, 1]);
  });

  test('one runs at a time, of whichever caller, and eight of one caller wait', async () => {
    await havePayments(LARGE);
    const { merchantId } = service;
    const one = calls();
    for (let n = 0; n < 10; n++) one.call(merchantId);
    await one.allInLine();
    expect(one.seen.begun).toBe(1);
    expect(await one.results()).toEqual({ decided: 9, overloaded: 1 });
    const two = calls();
    two.call(merchantId);
    two.call(null);
    await two.allInLine();
    expect(two.seen.begun).toBe(1);
    expect(await two.results()).toEqual({ decided: 2 });
  });

  test('the operator may decide any merchant’s, a merchant none but his own', async () => {
    await havePayments(LARGE);
    for (const [caller, result] of [
      [null, 'decided'],
      [service.merchantId, 'decided'],
      [service.merchantId + 100n, 'null'],
    ] as const) {
      const { call, results, seen } = calls();
      call(caller);
      expect([await results(), seen.begun]).toEqual([{ [result]: 1 }, result === 'null' ? 0 : 1]);
    }
  });

  test('none is decided above a hundred thousand payments, and the refusal says why where there is one for it', {
    timeout: 60_000,
  }, async () => {
    await havePayments(100_001);
    const decide = (decider: Partial<Decider>) =>
      inTurn(service.ctx, id, { merchantId: null, ...decider }, async () => 'decided');
    const message =
      'The transaction has more than 100000 payments, which are not decided: the operator of this server must look at it.';
    await expect(decide({ refusal: 'not_resolvable' })).rejects.toMatchObject({ code: 'not_resolvable', message });
    const told = await decide({}).catch((error) => error);
    expect([told.message, told instanceof Refusal]).toEqual([message, false]);
    expect(await decide({ mostPayments: null })).toBe('decided');
    await service.admin.query('delete from payments where transaction_id = $1 and vout = 1', [id]);
    expect(await decide({})).toBe('decided');
  });
});
