// A cancel over Lightning asks the node first and is booked then: what becomes of one whose call is cut off between the two. The books follow what the node has
// done, as soon as its list of invoices is compared.
import { expect, test } from 'vitest';
import { closeInvoiceOf } from '../../src/flow/lightning/invoices.ts';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { finishCancels } from '../../src/worker/lightning/interrupted-cancels.ts';
import { clock, eachWithSimulatedNode, engine, MINUTE, pass, pay, port, service } from './simulated-service.ts';

eachWithSimulatedNode();

const DIES = 'the process has ended';
/** A transaction that waits for payment; `of` names it in calls of its merchant. */
async function waiting() {
  await service.work();
  const { transactionId } = await service.create();
  return { of: { merchantId: service.merchantId, transactionId }, hash: await service.hashOf(transactionId) };
}
type Waiting = Awaited<ReturnType<typeof waiting>>;
const atNode = async ({ hash }: Waiting) => (await port.invoice(hash))?.state;
const status = async ({ of }: Waiting) => (await service.path(of.transactionId)).at(-1);
const code = (work: Promise<unknown>) =>
  work.then(
    () => 'accepted',
    (error: { code?: string }) => error.code,
  );
/** The worker compares what the node lists; whatever was under way then has had its time. */
async function compared(): Promise<void> {
  await pass(MINUTE);
  while (await service.compare());
  await service.work();
}
/** The process that cancels ends once the node has done so. @param at what it asks the node for last */
async function diesAfterNode(one: Waiting): Promise<void> {
  const dying = {
    ...port,
    async cancelInvoice(hash: string): Promise<never> {
      await port.cancelInvoice(hash);
      throw new Error(DIES);
    },
  };
  const ctx = { ...service.ctx, ports: { ...service.ctx.ports, lightning: dying } };
  await expect(cancelTransaction(ctx, one.of)).rejects.toThrow(DIES);
}

test('what the node has cancelled is cancelled', async () => {
  const one = await waiting();
  await diesAfterNode(one);
  expect([await atNode(one), await status(one)]).toEqual(['cancelled', 'started']);
  await compared();
  expect(await status(one)).toBe('cancelled');
  // the call that is repeated gets the answer that it would have got
  expect(await cancelTransaction(service.ctx, one.of)).toMatchObject({ status: 'cancelled' });
  expect(await service.findings()).toEqual([]);
});

test('also where the invoice was noted as closed, and its transaction not', async () => {
  const one = await waiting();
  await closeInvoiceOf(service.ctx, one.of);
  expect(await status(one)).toBe('started');
  await compared();
  expect(await status(one)).toBe('cancelled');
});

test('also where the answer of the node was lost', async () => {
  const one = await waiting();
  engine.node().setTrouble({ down: false, fault: 'lose_answers', left: 1 });
  expect(await code(cancelTransaction(service.ctx, one.of))).toBe('lightning_unavailable');
  expect(await atNode(one)).toBe('cancelled');
  await compared();
  expect(await status(one)).toBe('cancelled');
});

test('what the node was not reached for waits on, and can be paid', async () => {
  const one = await waiting();
  engine.node().setTrouble({ down: true, fault: null, left: null });
  expect(await code(cancelTransaction(service.ctx, one.of))).toBe('lightning_unavailable');
  engine.node().setTrouble({ down: false, fault: null, left: null });
  await compared();
  expect([await atNode(one), await status(one)]).toEqual(['open', 'started']);
  expect((await pay(one.of.transactionId)).paid).toBe(true);
  await compared();
  expect(await status(one)).toBe('succeeded');
});

test('what was paid before the node was asked is paid', async () => {
  const one = await waiting();
  await pay(one.of.transactionId);
  await expect(diesAfterNode(one)).resolves.toBeUndefined();
  await compared();
  expect(await status(one)).toBe('succeeded');
});

test('a call that may still be under way is left to itself', async () => {
  const one = await waiting();
  await diesAfterNode(one);
  clock.nowMs += MINUTE / 2;
  while (await service.compare());
  expect(await status(one)).toBe('started');
});

test('what nobody has asked for times out, and so does what is due', async () => {
  const [one, asked] = [await waiting(), await waiting()];
  await port.cancelInvoice(one.hash);
  await compared();
  expect(await status(one)).toBe('started');
  await diesAfterNode(asked);
  await pass(20 * MINUTE);
  while (await service.compare());
  expect([await status(one), await status(asked)]).toEqual(['started', 'started']);
  await service.work();
  expect([await status(one), await status(asked)]).toEqual(['timedout', 'timedout']);
});

test('one that is refused is left for the next time, and keeps no other waiting; what is no refusal is told', async () => {
  const one = await waiting();
  // the first one is the first whose window ends
  await pass(1_000);
  const other = await waiting();
  for (const each of [one, other]) await diesAfterNode(each);
  await pass(MINUTE);
  /** The service, with an answer of the node about the first one that is an error. */
  const answering = (error: Error) => {
    const lightning: typeof port = {
      ...port,
      cancelInvoice: (hash) => (hash === one.hash ? Promise.reject(error) : port.cancelInvoice(hash)),
    };
    return { ...service.ctx, ports: { ...service.ctx.ports, lightning } };
  };
  await expect(finishCancels(answering(new Error('a fault')), port)).rejects.toThrow('a fault');
  expect([await status(one), await status(other)]).toEqual(['started', 'started']);
  await finishCancels(answering(new NodeTrouble('down', 'it is away')), port);
  expect([await status(one), await status(other)]).toEqual(['started', 'cancelled']);
  await finishCancels(service.ctx, port);
  expect(await status(one)).toBe('cancelled');
});
