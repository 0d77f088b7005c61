// Waits until the API of a starting group may be called, and prints what it waits for. On networks whose currencies are worth money `ready`
// is not printed while nothing can be received, or while a node is on another network: both are configuration errors that would lose
// payments.
import { setTimeout as delay } from 'node:timers/promises';
import { configuredCurrencies } from '../config/configured-nodes.ts';
import type { Config } from '../config/variables.ts';
import { httpGet } from './http-get.ts';
import { StartRefused } from './start-refused.ts';

type Answer = {
  readonly error?: string;
  readonly message?: string;
  readonly problems?: readonly string[];
  readonly currencies?: Readonly<
    Record<string, { readonly state: string; readonly reason: string; readonly checked_at: string }>
  >;
  readonly rates?: { readonly sources: readonly object[] };
};
type Waiting = {
  readonly config: Config;
  /** When the group was started, by the system's clock. */
  readonly sinceMs: number;
  readonly isStopping: () => boolean;
  readonly say: (line: string) => void;
};

const READY_WITHIN_MS = 80_000;
/** A node that has not answered after this time counts as down; where currencies are worth nothing, no start waits that long. */
const LOOKED_WITHIN_MS = { mainnet: 20_000, regtest: 3_000, testnet: 3_000, sandbox: 0 } as const;
const TOLD_AFTER_MS = 2_000;
const TOLD_WITHIN_MS = 30_000;

/**
 * Resolves when the API may be called, or the start is being stopped. It waits without limit for what an operator has to fix.
 * @throws StartRefused when the API does not answer within 80 s
 */
export async function untilReady(base: string, waiting: Waiting): Promise<void> {
  const began = performance.now();
  let until = began + READY_WITHIN_MS;
  let last = { missing: '', sinceMs: began, isReported: false };
  while (!waiting.isStopping()) {
    const { status, answer, text } = await ask(base);
    const missing = status === 200 ? foreignNodes(answer, waiting, performance.now() - began) : wanted(answer);
    if (status === 200 && missing === '') return;
    if (missing !== last.missing) last = { missing, sinceMs: performance.now(), isReported: false };
    if (missing !== '') until = performance.now() + READY_WITHIN_MS;
    // what the database still holds from an earlier start is outdated in a moment
    if (missing !== '' && !last.isReported && performance.now() > last.sinceMs + TOLD_AFTER_MS) {
      waiting.say(`not ready: ${missing}`);
      last.isReported = true;
    }
    if (performance.now() > until) throw new StartRefused(`the service is not ready after ${READY_WITHIN_MS / 1000} s: ${text}`);
    await delay(last.isReported ? 500 : 20);
  }
}

/** Prints what is wrong once, as soon as every node and price source was looked at since the start; in the sandbox nothing ever is. */
export async function tellProblems(base: string, waiting: Waiting): Promise<void> {
  for (const until = performance.now() + TOLD_WITHIN_MS; !waiting.isStopping(); await delay(500, null, { ref: false })) {
    const { answer } = await ask(base);
    const isKnown = unseen(answer, waiting).length === 0 && (answer.rates?.sources.length ?? 0) > 0;
    if (!isKnown && performance.now() < until) continue;
    for (const problem of answer.problems ?? []) waiting.say(`problem: ${problem}`);
    return;
  }
}

async function ask(base: string): Promise<{ readonly status: number; readonly answer: Answer; readonly text: string }> {
  try {
    const { status, body } = await httpGet(new URL('/readyz', base), { withinMs: 2000 });
    return { status, answer: JSON.parse(body) as Answer, text: body };
  } catch (error) {
    return { status: 0, answer: {}, text: (error as Error).message };
  }
}

/** What is missing, according to the API; empty when it is only not there yet. */
const wanted = ({ error, message }: Answer): string => (error === 'currency_unavailable' ? (message ?? '') : '');

/**
 * On mainnet the nodes of another network, and for a while those that were not looked at yet: after a longer pause nothing of theirs can be
 * sold before that. Empty when there is neither.
 */
function foreignNodes(answer: Answer, waiting: Waiting, waitedMs: number): string {
  const { network } = waiting.config;
  const foreign = configuredCurrencies(waiting.config).flatMap((code) => {
    const chain = answer.currencies?.[code];
    return network === 'mainnet' && chain?.state === 'wrong_network' ? [`${code}: ${chain.reason}`] : [];
  });
  if (foreign.length > 0) return `a node is on another network: ${foreign.join('; ')}`;
  const late = waitedMs < LOOKED_WITHIN_MS[network] ? unseen(answer, waiting) : [];
  return late.length === 0 ? '' : `waiting for the first look at the nodes of ${late.join(', ')}`;
}

/** The currencies whose nodes were not looked at since the start. */
function unseen(answer: Answer, { config, sinceMs }: Waiting): readonly string[] {
  return configuredCurrencies(config).filter((code) => !(Date.parse(answer.currencies?.[code]?.checked_at ?? '') >= sinceMs));
}
