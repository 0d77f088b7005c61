// One of several nodes of a chain: what is remembered of it, and how long we wait for it. One that fails or is late rests, by name.
import type { Clock, NodeCondition } from '../../../core/ports.ts';
import type { ReadingNode } from './node.ts';
import { createOneRequest, type OneRequest, within } from './patience.ts';
import { createNodeProof, type NodeProof } from './proof.ts';
import { NodeTrouble } from './trouble.ts';

export type HashAt = { readonly height: number; readonly hash: string | null };

export type Member<N extends ReadingNode = ReadingNode> = {
  readonly node: N;
  readonly proof: NodeProof;
  readonly conditions: OneRequest<NodeCondition>;
  readonly hashes: OneRequest<HashAt>;
  /** After a call in which it failed or was late it is not chosen until this time, while another is ready. */
  restsUntilMs: number;
  /** Why it rests. */
  fault: string | null;
  /** What it said of itself last, where that was no good: it stands while nothing more is said. */
  trouble: NodeCondition | null;
  /** Since when it has been below another node with the same history; null while it is not. */
  behindSinceMs: number | null;
};

export type Waiting = {
  readonly clock: Clock;
  /** For a node besides the one in use. */
  readonly patienceMs: number;
  /** Whether this is the node in use. */
  isInUse(member: Member): boolean;
};

const REST_MS = 60_000;
const OWN_PATIENCE = 5;
/** We hardly wait for a node that rests: what it answers later counts at the next look. */
const BRIEFLY = 1 / 20;
/** Timers may end a moment early. */
const ALMOST = 0.9;

/** A node as one of several: its proof of the chain, when it may be asked again, and requests that wait for one answer together. */
export function createMember<N extends ReadingNode>(
  node: N,
  { clock, patienceMs }: Pick<Waiting, 'clock' | 'patienceMs'>,
): Member<N> {
  const member: Member<N> = {
    node,
    proof: createNodeProof(node, patienceMs, (trouble) => rest(member, trouble, clock)),
    conditions: createOneRequest(),
    hashes: createOneRequest(),
    restsUntilMs: 0,
    fault: null,
    trouble: null,
    behindSinceMs: null,
  };
  return member;
}

/** What pauses are measured by: our own clock may be set. */
export const steadyMs = (clock: Clock): number => clock.steady?.() ?? clock.now();

/** Lets a node that failed rest before it is asked again; what was wrong is shown in its condition. */
export function rest(member: Member, trouble: NodeTrouble, clock: Clock): void {
  member.restsUntilMs = steadyMs(clock) + REST_MS;
  member.fault = trouble.message;
}

/** The answer to a call, or the trouble that lets the member rest: it failed, or took longer than we wait for it. */
export async function inTime<T extends object>(member: Member, call: Promise<T>, waiting: Waiting): Promise<T | NodeTrouble> {
  const mostMs = patienceFor(member, waiting);
  return (await orRest(member, within(call, mostMs), waiting)) ?? late(member, mostMs, waiting);
}

/**
 * The same for one of many calls: we wait only briefly for a member that rests, and it rests no longer because of that, or one that is slow would
 * never be heard again.
 */
export async function saidInTime<T extends object>(member: Member, call: Promise<T>, waiting: Waiting): Promise<T | NodeTrouble> {
  const mostMs = patienceNow(member, waiting);
  if (mostMs === patienceFor(member, waiting)) return inTime(member, call, waiting);
  const silent = new NodeTrouble(
    'down',
    `${member.node.name}: no answer within ${mostMs / 1000} s, while it rests (${member.fault})`,
  );
  return (await orRest(member, within(call, mostMs), waiting)) ?? silent;
}

/**
 * The same for a request of which one is made at a time; we wait only briefly for a member that rests, and it rests on only when its answer
 * takes longer than that of any other may.
 */
export async function askInTime<T extends object>(
  member: Member,
  { requests, call }: { readonly requests: OneRequest<T>; readonly call: () => Promise<T> },
  waiting: Waiting,
): Promise<T | NodeTrouble> {
  const mostMs = patienceFor(member, waiting);
  const answer = await orRest(member, requests.ask(call, patienceNow(member, waiting)), waiting);
  if (answer !== null) return answer;
  if (requests.unansweredMs() >= mostMs * ALMOST) return late(member, mostMs, waiting);
  return new NodeTrouble('down', `${member.node.name}: no answer yet`);
}

/** How long we wait for an answer of a member, in milliseconds: only a part of its time while it rests. */
export function patienceNow(member: Member, waiting: Waiting): number {
  const isResting = member.restsUntilMs > steadyMs(waiting.clock) && !waiting.isInUse(member);
  return isResting ? patienceFor(member, waiting) * BRIEFLY : patienceFor(member, waiting);
}

function patienceFor(member: Member, { patienceMs, isInUse }: Waiting): number {
  return isInUse(member) ? patienceMs * OWN_PATIENCE : patienceMs;
}

async function orRest<T>(member: Member, call: Promise<T>, { clock }: Waiting): Promise<T | NodeTrouble> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof NodeTrouble)) throw error;
    rest(member, error, clock);
    return error;
  }
}

function late(member: Member, mostMs: number, { clock }: Waiting): NodeTrouble {
  const trouble = new NodeTrouble('down', `${member.node.name}: no answer within ${mostMs / 1000} s`);
  rest(member, trouble, clock);
  return trouble;
}
