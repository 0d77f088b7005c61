// The table of transitions: it equals behaviour §3, every status can be reached, every transition is used by a history of the judge, and
// the picture in ARCHITECTURE.md is drawn from it (UPDATE=1 redraws it).
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { judge } from '../../src/core/judge/judge.ts';
import { applyEvent } from '../../src/core/judge/steps.ts';
import { TRANSACTION_STATUSES, TRANSITIONS, type TransactionStatus, transition } from '../../src/core/transaction-states.ts';
import { DAY, HOUR, type JudgedTransaction, judgedTransaction, MINUTE, SECOND, W } from '../support/judged-transaction.ts';
import { STATUS_HISTORIES } from '../support/status-histories.ts';

const ARROWS = new Set(
  TRANSITIONS.filter((row) => row.from !== row.to).map((row) => `${row.rule}: ${row.from ?? '–'} to ${row.to}`),
);

test('an event has at most one row in each status', () => {
  expect(new Set(TRANSITIONS.map((row) => `${row.from} ${row.event}`)).size).toBe(TRANSITIONS.length);
});

test('what is not in the table does not happen', () => {
  const { transaction } = judgedTransaction();
  const it = { transaction: { ...transaction, status: 'settled' as const }, steps: [], nowMs: 0 };
  expect(applyEvent(it as never, 'cancelled_by_merchant')).toBe(false);
  expect([it.transaction.status, it.steps]).toEqual(['settled', []]);
  expect(transition('settled', 'cancelled_by_merchant')).toBeNull();
});

test('every status is reached from a created transaction, and none but reimbursed is the end of all ways', () => {
  const reached = new Set<TransactionStatus>(['started']);
  for (let size = 0; size !== reached.size; ) {
    size = reached.size;
    for (const row of TRANSITIONS) if (row.from !== null && reached.has(row.from)) reached.add(row.to);
  }
  expect([...reached].sort()).toEqual([...TRANSACTION_STATUSES].sort());
  const ends = TRANSACTION_STATUSES.filter((status) => !TRANSITIONS.some((row) => row.from === status && row.to !== status));
  expect(ends).toEqual(['reimbursed']);
});

/** One history or more for each transition; the test setup itself checks that only rows of the table are used. */
const STORIES: Record<string, () => JudgedTransaction | undefined> = {
  'paid in time': () => STATUS_HISTORIES.settled!(),
  'short, then another payment': () => {
    const judged = STATUS_HISTORIES.declined!();
    judged.pay();
    return judged;
  },
  'nothing came': () => STATUS_HISTORIES.timedout_checked!(),
  'late while the node was down': () => {
    const judged = judgedTransaction();
    judged.node('down');
    judged.until(W + 3 * HOUR);
    judged.pay();
    judged.node('up');
    return judged;
  },
  'late, accepted by policy': () => {
    const judged = STATUS_HISTORIES.timedout!();
    judged.pay();
    judged.mine();
    return judged;
  },
  'very late': () => {
    const judged = STATUS_HISTORIES.timedout_checked!();
    judged.pay();
    return judged;
  },
  'replaced after the window, and so on time': () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.until(W);
    judged.doubleSpend(tx);
    expect(judged.status).toBe('timedout');
    judged.replace(tx, { amount: judged.amountDue + 1n });
    return judged;
  },
  'on time, evicted, and back after three days': () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    judged.wait(72 * HOUR);
    expect(judged.status).toBe('timedout_checked');
    judged.resend(tx);
    return judged;
  },
  'the other currency, in every status': () => {
    for (const status of ['started', 'timedout', 'timedout_checked', 'cancelled', 'declined']) {
      const judged = STATUS_HISTORIES[status]!();
      judged.pay({ currency: 'LTC', amount: 1n });
      collect(judged);
    }
    return undefined;
  },
  'the other currency, then the right one': () => {
    const judged = judgedTransaction();
    judged.pay({ currency: 'LTC', amount: 1n });
    judged.pay();
    return judged;
  },
  'cancelled before and after the payment': () => {
    const judged = STATUS_HISTORIES.cancelled!();
    judged.pay();
    collect(judged);
    const flying = STATUS_HISTORIES.pending!();
    flying.cancel();
    return flying;
  },
  'accepted and refused by the merchant': () => {
    const judged = STATUS_HISTORIES.review!();
    judged.decline();
    judged.accept();
    collect(judged);
    const other = STATUS_HISTORIES.review!();
    other.accept();
    return other;
  },
  'withdrawn in the window and after it': () => {
    const judged = judgedTransaction();
    judged.doubleSpend(judged.pay());
    collect(judged);
    const after = judgedTransaction();
    const tx = after.pay();
    after.until(W);
    after.doubleSpend(tx);
    return after;
  },
  'lost and back': () => {
    for (const status of ['succeeded', 'settled']) {
      const judged = STATUS_HISTORIES[status]!({ settlementMs: SECOND });
      judged.reorg(6, 'out');
      judged.wait(11 * MINUTE);
      for (const tx of judged.chain().txs) judged.resend(tx);
      judged.mine();
      collect(judged);
    }
    return undefined;
  },
  'confirmed late at a lower price': () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.until(W + 2 * DAY);
    judged.rate(1_000n);
    judged.mine();
    return judged;
  },
  'returned to the customer': () => {
    for (const status of ['review', 'declined', 'succeeded', 'settled']) {
      const judged = STATUS_HISTORIES[status]!();
      judged.openRefund();
      judged.finishRefund();
      collect(judged);
    }
    return undefined;
  },
};
const used = new Set<string>(['1: – to started']);
function collect(judged: JudgedTransaction): void {
  for (const step of judged.steps) if (step.kind === 'status') used.add(`${step.rule}: ${step.from} to ${step.to}`);
}

describe('every arrow is used', () => {
  test.each(Object.entries(STORIES))('%s', (_name, story) => {
    const judged = story();
    if (judged !== undefined) collect(judged);
  });

  test('a confirmed one that is found at rest below R (rule 16)', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay();
    const it = {
      transaction: { ...judged.transaction, status: 'confirmed' as const },
      payments: judged.payments.map((payment) => ({ ...payment })),
      nowMs: judged.now,
      chains: new Map([['BTC', judged.chain().view]]),
      blocks: new Map(),
      feeBps: 0,
      settlementMs: 0,
      balances: null,
      refunds: [],
      steps: [],
    };
    judge(it as never);
    expect(it.steps).toMatchObject([{ from: 'confirmed', to: 'pending', rule: 16 }]);
    used.add('16: confirmed to pending');
  });

  test('none is left over', () => {
    expect([...ARROWS].filter((arrow) => !used.has(arrow))).toEqual([]);
    expect([...used].filter((arrow) => !ARROWS.has(arrow))).toEqual([]);
  });
});

const FILE = 'ARCHITECTURE.md';
const BEGIN = '<!-- transaction-states: drawn by test/core/transaction-states.test.ts (UPDATE=1) -->';
const END = '<!-- transaction-states: end -->';

/** The transitions as a Mermaid state diagram, rules that share an arrow on one line. */
function picture(): string {
  const labels = new Map<string, string[]>();
  for (const row of TRANSITIONS) {
    if (row.from === row.to) continue;
    const arrow = `    ${row.from ?? '[*]'} --> ${row.to}`;
    labels.set(arrow, [...(labels.get(arrow) ?? []), `${row.rule} ${row.reason}`]);
  }
  const lines = [...labels].map(([arrow, label]) => `${arrow}: ${label.join(' / ')}`);
  return [BEGIN, '```mermaid', 'stateDiagram-v2', ...lines, '```', END].join('\n');
}

test('ARCHITECTURE.md shows the table as it is', () => {
  const text = existsSync(FILE) ? readFileSync(FILE, 'utf8') : `# Architecture\n\n${BEGIN}\n${END}\n`;
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  const drawn =
    from < 0 || to < from
      ? `${text.trimEnd()}\n\n## The life of a transaction\n\n${picture()}\n`
      : text.slice(0, from) + picture() + text.slice(to + END.length);
  if (process.env.UPDATE === '1') writeFileSync(FILE, drawn);
  expect(readFileSync(FILE, 'utf8'), 'run this test with UPDATE=1').toBe(drawn);
});
