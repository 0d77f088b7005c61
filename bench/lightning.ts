// What Lightning costs above the time of the node itself: invoices, the way from a payment to `succeeded`, many payments at once, payouts.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sandboxTarget } from '../src/main/wiring/lightning.ts';
import { createLnd } from '../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../src/outside/lightning/lnd-payer.ts';
import type { Instance } from './instance.ts';
import type { Figure } from './report.ts';
import { sum, watchRest } from './rest.ts';

type Size = {
  readonly each: number;
  readonly parallel: number;
  /** Invoices that wait at once, and how they are watched. */
  readonly open: number;
  readonly rest: { readonly afterMs: number; readonly seconds: number };
};
type Json = Record<string, string>;
type Setting = {
  readonly instance: Instance;
  readonly size: Size;
  call(path: string, body?: object): Promise<Json>;
};

const AMOUNT = '1.30';
const SAT = 2_000n;
const WITHIN_MS = 60_000;
const CREATORS = 8;
/** How often a payout is looked at: its figure is up to that much too high. */
const LOOK_MS = 2;

async function timed<T>(work: () => Promise<T>): Promise<readonly [ms: number, made: T]> {
  const began = performance.now();
  const made = await work();
  return [performance.now() - began, made];
}
/** One after the other: the milliseconds of each, the shortest first, after a few that do not count. */
async function series(count: number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const all: number[] = [];
  for (let n = -3; n < count; n++) {
    const [ms] = await timed(work);
    if (n >= 0) all.push(ms);
  }
  return all.sort((a, b) => a - b);
}
const at = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
const ms = (value: number): string => `${value.toFixed(1)} ms`;

const create = ({ call }: Setting) => call('/create_transaction', { amount: AMOUNT, crypto_selected: 'BTC-LN' });
const succeeded = async ({ call }: Setting, id: string): Promise<void> => {
  for (const end = performance.now() + WITHIN_MS; performance.now() < end; ) {
    const asked = { transaction_id: id, status_was: 'started', wait_seconds: 20 };
    if ((await call('/check_transaction', asked)).status === 'succeeded') return;
  }
  throw new Error(`${id} is not paid within ${WITHIN_MS} ms`);
};

/** What the node needs for an invoice: the calls that a create makes of it. */
async function invoices(setting: Setting): Promise<Figure> {
  const node = createLnd(sandboxTarget(setting.instance.dataFolder), { chain: 'regtest' });
  const own = await series(setting.size.each, async () => {
    await node.receivableMsat();
    const asked = { amountMsat: SAT * 1_000n, expirySeconds: 900, description: 'bench' };
    await node.addInvoice({ ...asked, preimage: randomBytes(32) });
  });
  node.close();
  const whole = await series(setting.size.each, () => create(setting));
  return {
    work: 'create_transaction over Lightning above the time of its node',
    measured: `p50 ${ms(at(whole, 0.5) - at(own, 0.5))} (${ms(at(whole, 0.5))} less ${ms(at(own, 0.5))})`,
    goal: '≤ 3 ms',
  };
}

/** From the payer's click, so the node's part is in it; the sandbox's control answers a little later, and is no part of it. */
async function paid(setting: Setting): Promise<Figure> {
  const all: number[] = [];
  for (let n = 0; n < setting.size.each; n++) {
    const { transaction_id: id = '' } = await create(setting);
    const waits = succeeded(setting, id);
    const began = performance.now();
    const pays = setting.call('/sandbox/pay', { transaction_id: id });
    await waits;
    all.push(performance.now() - began);
    await pays;
  }
  all.sort((a, b) => a - b);
  return {
    work: 'a payment over Lightning to succeeded, seen by a waiting check',
    measured: `p50 ${ms(at(all, 0.5))}, p99 ${ms(at(all, 0.99))}`,
    goal: 'p99 ≤ 50 ms',
  };
}

async function together(setting: Setting): Promise<Figure> {
  const { call, size } = setting;
  const satoshis = async () => BigInt(((await call('/get_account_info')).balances as unknown as Json).BTC?.replace('.', '') ?? 0);
  const made: Json[] = [];
  for (let n = 0; n < size.parallel; n++) made.push(await create(setting));
  const before = await satoshis();
  const [took] = await timed(() =>
    Promise.all(
      made.map(async ({ transaction_id: id = '' }) => {
        await call('/sandbox/pay', { transaction_id: id });
        await succeeded(setting, id);
      }),
    ),
  );
  const due = made.reduce((sum, one) => sum + BigInt(one.crypto_amount?.replace('.', '') ?? 0), 0n);
  const credited = (await satoshis()) - before;
  if (credited !== due) throw new Error(`${size.parallel} payments of ${due} satoshis were credited as ${credited}`);
  return {
    work: `${size.parallel} parallel payments over Lightning`,
    measured: `each credited once, ${took.toFixed(0)} ms in all`,
    goal: 'each credited once',
  };
}

/** What the whole service spends while nobody calls, without and with very many invoices that nobody pays. */
async function waiting(setting: Setting): Promise<Figure> {
  const { instance, size } = setting;
  const none = await watchRest(instance, size.rest);
  let left = size.open;
  await Promise.all(
    Array.from({ length: CREATORS }, async () => {
      while (left-- > 0) await create(setting);
    }),
  );
  const many = await watchRest(instance, size.rest);
  const spent = ({ cpu, commits }: typeof none): string =>
    `${sum(cpu).toFixed(1)} ms CPU and ${commits.toFixed(1)} commits a second`;
  return {
    work: `nothing but ${size.open.toLocaleString('en')} open invoices over Lightning`,
    measured: `${spent(many)}, without them ${spent(none)}`,
    goal: 'no polling',
  };
}

/** The last part: what the node pays for nobody turns the audit of this instance red. */
async function payouts({ call, instance, size }: Setting): Promise<Figure[]> {
  const outside = async (): Promise<string> => (await call('/sandbox/invoice', { amount: '0.00000100' })).payment_request ?? '';
  const decided: number[] = [];
  const whole: number[] = [];
  for (let n = 0; n < size.each; n++) {
    const destination = await outside();
    const [took] = await timed(async () => {
      const asked = { method: 'lightning', amount: '0.000001', destination };
      const [answered, { payout }] = await timed(
        async () => (await call('/request_payout', asked)) as unknown as { payout: Json },
      );
      decided.push(answered);
      for (let status = payout.status; status !== 'completed'; await delay(LOOK_MS)) {
        const seen = (await call('/check_payout', { payout_id: payout.id })) as unknown as { payout: Json };
        status = seen.payout.status;
        if (status === 'failed') throw new Error(`a payout failed: ${seen.payout.error}`);
      }
    });
    whole.push(took);
  }
  for (const all of [decided, whole]) all.sort((a, b) => a - b);
  const node = createLndPayer(sandboxTarget(instance.dataFolder, 'payMacaroon'));
  const own: number[] = [];
  for (let n = 0; n < size.each; n++) {
    const paymentRequest = await outside();
    const order = { paymentRequest, amount: null, feeLimit: 10n, notAfterMs: Date.now() + 60_000 };
    // the calls that a payout makes of it
    const [took] = await timed(async () => {
      await node.node();
      await node.decode(paymentRequest);
      await node.send(order);
    });
    own.push(took);
  }
  node.close();
  own.sort((a, b) => a - b);
  return [
    {
      work: 'request_payout over Lightning, to its answer: it is decided and held, no node is asked',
      measured: `p50 ${ms(at(decided, 0.5))}, p99 ${ms(at(decided, 0.99))}`,
      goal: '≤ 10 ms',
    },
    {
      work: 'a payout over Lightning, request to completed, above the time of its node',
      measured: `p50 ${ms(at(whole, 0.5) - at(own, 0.5))} (${ms(at(whole, 0.5))} less ${ms(at(own, 0.5))})`,
      goal: '≤ 10 ms',
    },
  ];
}

export async function measureLightning(instance: Instance, size: Size): Promise<Figure[]> {
  const token = await instance.token();
  const setting: Setting = {
    instance,
    size,
    async call(path, body = {}) {
      const answer = await fetch(`http://127.0.0.1:${instance.port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(path.startsWith('/sandbox/') ? body : { access_token: token, ...body }),
      });
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
      return (await answer.json()) as Json;
    },
  };
  const figures: Figure[] = [];
  for (const part of [invoices, paid, together, waiting, payouts])
    for (const figure of [await part(setting)].flat()) {
      figures.push(figure);
      process.stderr.write(`${figure.work}: ${figure.measured}\n`);
    }
  return figures;
}
