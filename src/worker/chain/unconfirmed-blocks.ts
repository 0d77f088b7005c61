// Blocks that pay to us by one node's word (Ethereum, outside/evm/second-word): all are asked again, and what they say is recorded.
import { BALANCE_PLACE } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, isUtxo } from '../../core/currency.ts';
import { sum } from '../../core/money.ts';
import type { BlockFacts, ChainPort, NodeCondition } from '../../core/ports.ts';
import { isInnerOutput, isInnerPlace, type RecordedPlace } from '../../store/chain/inner-ether.ts';
import { rewindBelow } from '../../store/chain/receipts.ts';
import {
  blockBefore,
  confirmBlock,
  orderOf,
  readUnconfirmed,
  recordedAt,
  type UnconfirmedBlock,
} from '../../store/chain/unconfirmed-blocks.ts';
import { recordAgain } from '../rescan/rescan.ts';
import { followBlocks } from './block-follower.ts';
import type { ChainContext } from './context.ts';
import { reachable } from './pass-result.ts';
import { type Followed, type FollowOptions, followFork } from './reorganisation.ts';
import { type ChainWatchList, watchOnly } from './watch-list.ts';

export type UnconfirmedBlocks = {
  /** Advances along the chain, and asks again about what is unconfirmed. */
  follow(options: FollowOptions): Promise<Followed>;
  /** A condition as it is recorded: with what is unconfirmed. */
  told(condition: NodeCondition): NodeCondition;
};

const SOON_MS = 1_000;
/** While no other node can say; a node that is asked reads the whole block. */
const SILENT_MS = 15_000;
const DENIED_MS = 60_000;
const TOLD = 20;
/** Each is read anew at two nodes. */
const ASKED_AT_ONCE = 5;

/** @param watch what the chain is searched for */
export function createUnconfirmedBlocks(ctx: ChainContext, port: ChainPort, watch: ChainWatchList): UnconfirmedBlocks {
  const { clock } = ctx.ports;
  const steadyMs = (): number => clock.steady?.() ?? performance.now();
  let known: readonly UnconfirmedBlock[] = [];
  /** Those up to this one were asked about: some may never be confirmed, and must not hide the others. */
  let askedTo = -1;
  let nextMs = 0;
  const noticing: ChainPort = {
    ...port,
    async readBlock(hash, watched) {
      const facts = await port.readBlock(hash, watched);
      if (facts.unconfirmed !== undefined) nextMs = Math.min(nextMs, steadyMs() + SOON_MS);
      return facts;
    },
  };

  /** What is said of a block now: whether it stays as it is, or something else is recorded of it. */
  async function askAbout(block: UnconfirmedBlock, atMs: number): Promise<'same' | 'over'> {
    const read = port.readByAll ?? port.readBlock;
    const facts = await reachable(() => read(block.hash, watchOnly(block.scripts)));
    if (facts === null) return 'same';
    const recorded = await recordedAt(ctx.db, port.currency, block);
    const isSaidByTwo = !block.isDenied && areSaidByTwo(port.currency, { block, recorded, facts });
    if (facts.unconfirmed?.state === 'silent') {
      if (!isSaidByTwo || !isAllShown(facts, recorded)) return 'same';
      await ctx.db.transaction((sql) => confirmBlock(sql, port.currency, block));
      return 'over';
    }

    const isUnseen = facts.inner === 'unseen';
    const isHiding = facts.unconfirmed?.state === 'hidden';
    if (isHiding && !block.isDenied && facts.unconfirmed?.unseen !== undefined) return 'same';
    const isContradicted = facts.unconfirmed !== undefined && (block.isDenied || !isHiding);
    if (isContradicted && (block.isDenied || isUnseen)) return 'same';
    // whoever said it then may say nothing of it now, or another node is read
    const gone = block.isDenied ? [] : notShown(port.currency, recorded, facts);
    // and nobody may know any more what contracts sent there
    if (gone.length > 0 && isUnseen) return 'same';
    const place = { height: block.height, hash: block.hash, previousHash: facts.previousHash, timeMs: facts.timeMs };
    if (isContradicted || gone.length > 0) {
      await recordAgain(ctx, port, place, { ...facts, insteadOf: { block, gone: scriptsOf(gone), atMs } });
      return 'over';
    }
    // of a single node its word stands
    const isOpen = isUnseen && port.readByAll !== undefined && !isSaidByTwo;
    if (isOpen && !block.isDenied && recorded.some(({ vout }) => isInnerPlace(vout))) return 'same';
    const unrecorded = unrecordedIn(block, recorded, facts);
    // what was denied at the others may have been what contracts sent
    const isOver = !isOpen || !block.isDenied || unrecorded === block.scripts.length;
    if (!isOver && unrecorded === 0) return 'same';
    // whoever showed it first has seen it at that time, and when the others do is none of the payer's business
    await recordAgain(ctx, port, place, isHiding ? { ...facts, touched: [] } : { ...facts, seenAtMs: block.sinceMs });
    await ctx.db.transaction(async (sql) => {
      if (isOver) await confirmBlock(sql, port.currency, block);
      const before = blockBefore(block);
      // the second reading may have come past it while a part of it was not recorded
      if (block.isDenied && before !== null) await rewindBelow(sql, port.currency, before, clock.now());
    });
    return isOver ? 'over' : 'same';
  }

  /** Asks again about some of them. */
  async function look(atMs: number): Promise<void> {
    if (isUtxo(port.currency) || steadyMs() < nextMs) return;
    const asked = await readUnconfirmed(ctx.db, port.currency, { after: askedTo, limit: ASKED_AT_ONCE });
    askedTo = asked.length < ASKED_AT_ONCE ? -1 : orderOf(asked.at(-1) as UnconfirmedBlock);
    let isOver = false;
    for (const block of asked) isOver = (await askAbout(block, atMs)) === 'over' || isOver;
    known = await readUnconfirmed(ctx.db, port.currency, { after: -1, limit: TOLD });
    // a node that is there again after a day may have thousands to confirm
    nextMs = steadyMs() + (isOver && known.length > 0 ? SOON_MS : known.some((block) => !block.isDenied) ? SILENT_MS : DENIED_MS);
  }

  return {
    async follow(options) {
      const followed = await followFork(ctx, noticing, watch, options);
      if (followed !== null) return followed;
      await look(options.atMs);
      return followBlocks(ctx, noticing, watch, options);
    },
    told(condition) {
      if (condition.state !== 'ready' || known.length === 0) return condition;
      return { ...condition, others: [...(condition.others ?? []), ...alarmsOf(known)] };
    },
  };
}

type Paid = { readonly script: string; readonly amountMinor: bigint };
const paidAt = (all: readonly Paid[], script: string): bigint =>
  sum(all.filter((one) => one.script === script).map((one) => one.amountMinor));
const shownIn = ({ touched }: BlockFacts): readonly Paid[] => touched.flatMap(({ outputs }) => outputs);

/**
 * What is recorded of a block and not shown. Another payment in the place of one does not show it, whatever it pays. But ether of contracts has
 * other names at other kinds of nodes: of that counts what an address got altogether, and nothing at all where it is not shown.
 */
export function notShown(
  currency: CurrencyCode,
  recorded: readonly RecordedPlace[],
  facts: BlockFacts,
): readonly RecordedPlace[] {
  const all = facts.touched.flatMap(({ txid, coinbase, outputs }) => outputs.map((one) => ({ txid, coinbase, ...one })));
  const left = Map.groupBy(all, nameOf);
  const missing = recorded.filter((one) => left.get(nameOf(one))?.pop() === undefined);
  const isInner = ({ vout }: RecordedPlace): boolean => currency === ETHER && isInnerPlace(vout);
  const byContracts = [...left.values()].flat().filter((one) => !one.coinbase && isInnerOutput(one));
  const inner = missing.filter(isInner);
  return missing.filter((one) => {
    if (!isInner(one)) return true;
    return facts.inner !== 'unseen' && paidAt(byContracts, one.script) < paidAt(inner, one.script);
  });
}

type Said = { readonly block: UnconfirmedBlock; readonly recorded: readonly RecordedPlace[]; readonly facts: BlockFacts };
/** Whether it is ether that a contract has sent; what a block pays by itself has its name too. */
const isByContract = ({ hash }: Pick<UnconfirmedBlock, 'hash'>, { txid, vout }: RecordedPlace): boolean =>
  isInnerPlace(vout) && (txid !== hash || vout >= BALANCE_PLACE);

/**
 * Whether two nodes have said of each address just what is recorded there of contracts, one of them perhaps when it could see that yet. One that
 * shows more beside it has said something else.
 */
function areSaidByTwo(currency: CurrencyCode, { block, recorded, facts }: Said): boolean {
  if (currency !== ETHER) return false;
  const byContracts = recorded.filter((one) => isByContract(block, one));
  const words = [...block.words, ...(facts.innerWords ?? [])];
  return [...new Set(byContracts.map(({ script }) => script))].every((script) => {
    const amountMinor = paidAt(byContracts, script);
    const alike = words.filter((word) => word.script === script && word.amountMinor === amountMinor);
    return new Set(alike.map(({ node }) => node)).size > 1;
  });
}

/** Whether all that no second node could see is what is recorded. */
function isAllShown({ hash, unconfirmed, touched }: BlockFacts, recorded: readonly RecordedPlace[]): boolean {
  if (unconfirmed?.isOnlyUnseen !== true) return false;
  const byContracts = recorded.filter((one) => isByContract({ hash }, one));
  const shown = touched.filter(({ coinbase }) => !coinbase).flatMap(({ outputs }) => outputs.filter(isInnerOutput));
  return unconfirmed.scripts.every((script) => paidAt(shown, script) === paidAt(byContracts, script));
}

type Named = Paid & { readonly txid: string };
const nameOf = ({ txid, script, amountMinor }: Named): string => `${txid} ${script} ${amountMinor}`;
/** Where they are. */
export const scriptsOf = (places: readonly RecordedPlace[]): readonly Buffer[] =>
  [...new Set(places.map(({ script }) => script))].map((script) => Buffer.from(script, 'hex'));

/** At how many of its addresses a block shows more than is recorded of it. */
function unrecordedIn({ scripts }: UnconfirmedBlock, recorded: readonly RecordedPlace[], facts: BlockFacts): number {
  const all = scripts.map((script) => Buffer.from(script).toString('hex'));
  return all.filter((script) => paidAt(shownIn(facts), script) > paidAt(recorded, script)).length;
}

/** Each contradiction, and one sentence for all blocks of which nobody could say what they pay: it must not be another one with each new block. */
function alarmsOf(known: readonly UnconfirmedBlock[]): readonly string[] {
  const contradictions = known
    .filter(({ isDenied }) => isDenied)
    .map(
      ({ reason }) =>
        `contradiction: ${reason}: nothing of that is recorded; take the node that is wrong out of the configuration`,
    );
  const [first, ...others] = known.filter(({ isDenied }) => !isDenied);
  if (first === undefined) return contradictions;
  const what = `what block ${first.height}${others.length === 0 ? ' pays' : ' and later ones pay'}`;
  return [...contradictions, `unconfirmed: ${what} is one node's word, and nothing large of it is booked: ${first.reason}`];
}
