// A node's machine that is put back with its memory: the node goes on as if nothing had happened, counts less than it should, and believes in connections that
// have broken. On a simulated node with a clock that the test moves.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PayingNode } from '../../src/core/lightning/payer.ts';
import { AMOUNT, at, close, forced, invoice, looks, MINUTE, open, outgoing, pass } from './funded-payouts.ts';
import { bothPutBack, counted } from './put-back.ts';

let end: () => Promise<void> = async () => undefined;
beforeEach(() => open());
afterEach(async () => {
  await end();
  end = async () => undefined;
  await close();
});
const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };

describe('a machine that is put back with its memory', () => {
  /** It counts on from where it was: a quarter of an hour less than it should. */
  const putBack = (): {
    readonly node: () => Promise<PayingNode>;
    readonly send: typeof at.paying.send;
    readonly sent: string[];
  } => {
    const sent: string[] = [];
    return {
      node: async () => counted(await at.paying.node(), (ms) => Math.max(0, ms - 15 * MINUTE)),
      async send(asked) {
        sent.push(asked.payoutId);
        return at.paying.send(asked);
      },
      sent,
    };
  };

  test('does not know at first who is there: what it has forgotten is not asked for again', async () => {
    pass(3 * 60 * MINUTE);
    await looks(1);
    const { id } = await at.request(invoice('hold').request, AMOUNT);
    await at.look({ send: () => Promise.reject(Object.assign(new Error('no answer'), { fault: 'unreachable' })) });
    pass(15 * MINUTE);
    const machine = putBack();
    await at.look(machine);
    expect(machine.sent).toEqual([]);
    // the connections that it believes in have broken, and the other side has shown that it knows more
    forced(true);
    pass(2 * MINUTE);
    await at.look(machine);
    expect(machine.sent).toEqual([]);
    expect(await at.payout(id)).toMatchObject(UNKNOWN);
  });

  test('together with the database: what only the signer knows to have been paid is not asked for again', async () => {
    pass(3 * 60 * MINUTE);
    await looks(1);
    const to = invoice('hold');
    const { id } = await at.request(to.request, AMOUNT);
    const machine = putBack();
    const restored = await bothPutBack(
      async () => {
        await at.look();
        expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
        pass(15 * MINUTE);
      },
      {
        // its process goes on
        putBack: async () => undefined,
        over: {
          ...machine,
          // as the node that was put back would say it
          track: async () => ({ payment: null, isPending: false }),
        },
      },
    );
    end = restored.end;
    await restored.looks(1);
    expect(machine.sent).toEqual([]);
    forced(true);
    await restored.looks(2, 2 * MINUTE);
    expect(machine.sent).toEqual([]);
    expect(await restored.seen(id)).toMatchObject(UNKNOWN);
  });
});
