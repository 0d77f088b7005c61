// A bank outside of the service for tests of its driver: it notices the same file again or not, loses answers, is silent, and counts how often
// it executes a file. It reads and writes NACHA files.
import { createHash } from 'node:crypto';
import { type BankFile, type BankPort, type BankReport, BankTrouble, type KeptFiles } from '../../src/core/ach/bank-port.ts';
import { changeAddenda, returnAddenda, writeNachaFile } from '../../src/core/ach/nacha-file.ts';
import { readNachaFile } from '../../src/core/ach/nacha-reader.ts';
import { referencesIn } from '../../src/core/ach/own-file.ts';
import type { Context } from '../../src/flow/context.ts';
import { SANDBOX_BANK } from '../../src/sandbox/bank/bank.ts';
import { isTrusted } from '../../src/signer/intent-trust.ts';
import { achJob } from '../../src/worker/payouts/ach/driver.ts';
import { tellingTo } from './payout-jobs.ts';
import { INTENT_KEY } from './ports.ts';

/** What a report says of an entry that the bank does not have. */
const NOBODYS = { routing: '021000021', account: '123456789', id: '', name: 'MERCHANT' };
const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A file of the bank that sends back an entry of 99 dollars of this trace number and name. */
export function returnOf(trace: string, id: string): string {
  const returned = { trace, routing: '021000021' };
  const entry = {
    transactionCode: 21,
    routing: SANDBOX_BANK.bankRouting,
    account: '123456789',
    cents: 99_00n,
    name: 'SHOP',
  } as const;
  return writeNachaFile({
    origin: { ...SANDBOX_BANK, bankRouting: returned.routing },
    date: '2026-06-02',
    time: '0900',
    modifier: 'A',
    entryClass: 'CCD',
    description: 'PAYOUT',
    effective: '2026-06-02',
    entries: [{ ...entry, id, trace: '021000020000001', addenda: returnAddenda('R03', returned) }],
  });
}

export function testBank(ctx: Context, { dedupes }: { readonly dedupes: boolean }) {
  const copies = new Map<string, Uint8Array>();
  const kept = new Map<string, BankReport>();
  const executed: BankFile[] = [];
  let reports: BankReport[] = [];
  let number = 0;
  const troubles: string[] = [];
  const state = {
    /** How the next hand-overs end, in order; afterwards normally. */
    next: [] as ('lost_answer' | 'lost_request' | 'refused')[],
    /** Whether it leaves files where we have put them. */
    isLeaving: false,
    /** Whether it answers nothing but hand-overs. */
    isSilent: false,
    /** What it said when it was asked for a file that it does not show yet: a hand-over under way lands later. */
    landsLate: null as BankFile | null,
    /** Its list of files is its own, and was not put back with anything of ours. */
    isWitness: true,
    /** Nobody says which APIs are trusted. */
    isSignerAway: false,
    /** Our folder takes no copies. */
    isDiskFull: false,
    onHandOver: async (_file: BankFile): Promise<void> => undefined,
    cutOffMs: null as number | null,
  };
  const has = (file: BankFile): boolean => executed.some(({ sha256 }) => Buffer.from(sha256).equals(file.sha256));
  const trouble = (): never => {
    throw new BankTrouble('connection reset');
  };
  const bank: BankPort = {
    async handOver(file) {
      await state.onHandOver(file);
      const how = state.next.shift();
      if (how === 'refused') return { state: 'refused', reason: 'no funds' };
      if (how === 'lost_request') return trouble();
      if (dedupes && has(file)) return { state: 'duplicate' };
      executed.push(file);
      if (state.isLeaving) return { state: 'waiting', forMs: 0 };
      return how === 'lost_answer' ? trouble() : { state: 'accepted' };
    },
    async ask(file) {
      if (state.isSilent) return trouble();
      const late = state.landsLate;
      state.landsLate = null;
      if (late !== null) {
        executed.push(late);
        return { state: 'never' };
      }
      if (state.isLeaving) return { state: 'waiting', forMs: 5 * 3_600_000 };
      return { state: has(file) ? 'accepted' : 'never' };
    },
    async news() {
      return state.isSilent ? trouble() : { cutOffMs: state.cutOffMs, reports };
    },
    get isWitness() {
      return state.isWitness;
    },
    forgets: async () => [],
    async had() {
      return state.isSilent ? trouble() : executed;
    },
    contentOf: async (file) => (executed.find(({ name }) => name === file.name) as BankFile).bytes,
    async acknowledge(id) {
      reports = reports.filter((report) => report.id !== id);
    },
  };
  const files: KeptFiles = {
    async keep({ name, bytes }) {
      if (state.isDiskFull) throw new Error('ENOSPC');
      const before = copies.get(name);
      if (before === undefined) copies.set(name, bytes);
      return before === undefined || hashOf(before) === hashOf(bytes);
    },
    names: async () => [...copies.keys()],
    read: async (name) => copies.get(name) ?? new Uint8Array(),
    references: async (name) => referencesIn(copies.get(name) ?? new Uint8Array()),
    async keepReport(report) {
      kept.set(report.id, report);
    },
    reports: async () => [...kept.values()],
  };
  const { keyId } = INTENT_KEY.sign(new Uint8Array());
  const job = achJob(ctx, {
    bank,
    files,
    origin: SANDBOX_BANK,
    intents: async () => (state.isSignerAway ? null : (intent, key, signature) => isTrusted([keyId], intent, key, signature)),
    owner: 'test',
    ...tellingTo(troubles),
  });
  const entryOf = (trace: string) => {
    const all = executed.flatMap(({ bytes }) => readNachaFile(new TextDecoder().decode(bytes)).entries);
    return all.find((entry) => entry.trace === trace) as (typeof all)[number];
  };
  /** A file of the bank of an entry's receiver. */
  function answersOf(
    trace: string,
    code: string,
    answers: readonly { readonly trace: string; readonly cents: bigint; readonly code?: string }[],
  ): string {
    const { routing } = entryOf(trace) ?? NOBODYS;
    const isReturn = code.startsWith('R');
    return writeNachaFile({
      origin: { ...SANDBOX_BANK, bankRouting: routing },
      date: '2026-06-02',
      time: '0900',
      modifier: 'A',
      entryClass: isReturn ? 'CCD' : 'COR',
      description: 'PAYOUT',
      effective: '2026-06-02',
      entries: answers.map((answer, at) => {
        const of = { trace: answer.trace, routing };
        const { account, id, name } = entryOf(answer.trace) ?? NOBODYS;
        return {
          transactionCode: 21,
          routing: SANDBOX_BANK.bankRouting,
          account,
          cents: isReturn ? answer.cents : 0n,
          id,
          name,
          trace: `${routing.slice(0, 8)}000000${at + 1}`,
          addenda: isReturn ? returnAddenda(answer.code ?? code, of) : changeAddenda(code, of, '1234567'),
        };
      }),
    });
  }
  function report(make: (id: string) => BankReport): void {
    number += 1;
    reports.push(make(`report-${number}`));
  }
  return {
    state,
    acknowledge: bank.acknowledge,
    copies,
    kept,
    executed,
    troubles,
    reports: () => reports,
    /** One pass of the worker's job. */
    look: () => job.run(),
    /** Asks for what waits, as at the end of a business day. */
    cutOff(): void {
      state.cutOffMs = ctx.ports.clock.now();
    },
    /** Sends an entry back, or asks for a change (C…); the same twice when it is called twice. */
    answer(trace: string, code: string, cents = entryOf(trace).cents): void {
      report((id) => ({ id, kind: 'nacha', content: answersOf(trace, code, [{ trace, cents }]) }));
    },
    /** Says something of a trace number, whatever it has. */
    answerTo: ({ trace, cents, code }: { readonly trace: string; readonly cents: bigint; readonly code: string }): void =>
      report((id) => ({ id, kind: 'nacha', content: answersOf(trace, code, [{ trace, cents }]) })),
    /** Says something of several entries of one receiver in one file. */
    answerTogether(answers: readonly { readonly trace: string; readonly code: string }[]): void {
      const all = answers.map((one) => ({ ...one, cents: entryOf(one.trace).cents }));
      report((id) => ({ id, kind: 'nacha', content: answersOf(all[0]?.trace ?? '', 'R03', all) }));
    },
    /** Sends an entry back together with one that is not ours. */
    returnBeside(trace: string, foreign: string): void {
      const { cents } = entryOf(trace);
      const both = [trace, foreign].map((one) => ({ trace: one, cents }));
      report((id) => ({ id, kind: 'nacha', content: answersOf(trace, 'R03', both) }));
    },
    /** It has had the file before, as it says of a second copy. */
    hadBefore: (file: string) => report((id) => ({ id, kind: 'had', file })),
    refuse: (file: string) => report((id) => ({ id, kind: 'refused', file, reason: 'unknown company' })),
    say: (content: string) => report((id) => ({ id, kind: 'nacha', content })),
  };
}
