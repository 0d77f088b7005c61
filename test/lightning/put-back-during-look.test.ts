// A node that is put back while a worker looks at it: what was read of it before is not what it is now, and what is kept of its run is kept whole. On a
// simulated node with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AMOUNT, at, close, engine, invoice, looks, MINUTE, open, outgoing, pass, reached, unheard } from './funded-payouts.ts';
import { bothPutBack } from './put-back.ts';

let end: () => Promise<void> = async () => undefined;
beforeEach(() => open());
afterEach(async () => {
  await end();
  end = async () => undefined;
  await close();
});
const WAITS = { status: 'processing', heldReason: null };

/** A payout of which no answer came, of a node that has run for hours, and what puts that back to before it. The other side of its channels is away then. */
async function unanswered() {
  pass(3 * 60 * MINUTE);
  await looks(1);
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const copy = engine.backup();
  await at.look(unheard());
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  async function putBack(): Promise<void> {
    await copy();
    engine.node().setPeerAway(true);
    await reached();
  }
  return { id, hash: to.hash, putBack };
}

test('what the node said before it was put back lets nothing be asked for again', async () => {
  const { id, hash, putBack } = await unanswered();
  pass(16_000);
  let isBack = false;
  await at.look({
    async track(asked) {
      if (!isBack) await putBack();
      isBack = true;
      return at.paying.track(asked);
    },
  });
  expect(isBack).toBe(true);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
});

test('a process that ends while it notes a start of the node has noted all of it or nothing', async () => {
  const { id, hash, putBack } = await unanswered();
  pass(16_000);
  await putBack();
  await at.admin.query(
    `create function dies() returns trigger language plpgsql as $$ begin raise exception 'the process has ended'; end $$`,
  );
  await at.admin.query('create trigger dies before update of started_at on lightning_nodes for each row execute function dies()');
  await expect(at.look()).rejects.toThrow('the process has ended');
  await at.admin.query('drop trigger dies on lightning_nodes');
  await looks(2);
  expect(outgoing().payment(hash)).toBeNull();
  expect(await at.payout(id)).toMatchObject(WAITS);
});

test('nor what it said when the comparison with an older database began', async () => {
  pass(3 * 60 * MINUTE);
  await looks(1);
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  let putBack: () => Promise<void> = async () => undefined;
  const sent: string[] = [];
  let isBack = false;
  const restored = await bothPutBack(
    async () => {
      await at.look();
      expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
      putBack = engine.backup();
    },
    {
      putBack: async () => undefined,
      over: {
        async track(asked) {
          if (!isBack) {
            await putBack();
            engine.node().setPeerAway(true);
            outgoing().resolve(to.hash, false);
            await reached();
          }
          isBack = true;
          return at.paying.track(asked);
        },
        send(asked) {
          sent.push(asked.payoutId);
          return at.paying.send(asked);
        },
      },
    },
  );
  end = restored.end;
  await restored.looks(2);
  expect(isBack).toBe(true);
  expect(sent).toEqual([]);
  expect(await restored.seen(id)).toMatchObject(WAITS);
});
