// Several of Ethereum's nodes behind one port: one is read, and what it says of a block that pays us is asked of the others too.
import type { BlockRef } from '../../core/block-ref.ts';
import { GAS } from '../../core/currencies/evm.ts';
import type { EvmPort, SaidByOne, SaidToHold } from '../../core/evm/port.ts';
import { greatest, least } from '../../core/money.ts';
import type { BlockFacts, WatchList } from '../../core/ports.ts';
import { comparedPrices, grouped, type NodeGroupOptions, sendToAll } from '../utxo/node/group.ts';
import { type Member, patienceNow, rest, saidInTime, steadyMs } from '../utxo/node/member.ts';
import type { ChainNode, ReadingNode } from '../utxo/node/node.ts';
import { succeededAnywhere } from '../utxo/node/paid-by-word.ts';
import { within } from '../utxo/node/patience.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';
import { authorizedByWord } from './authorizations.ts';
import { endedByWord } from './ended.ts';
import { middleGasFees } from './gas-fees.ts';
import { heldByWord } from './held.ts';
import { withAllWords, withSecondWord } from './second-word.ts';
import { sentByWord } from './sent-by-word.ts';

/** Whoever reads for all addresses waits longer than a watcher, behind which payments wait. */
const FOR_ALL = 5;
/** An answer may drip for ever: after this long another one is asked for. */
const OVERDUE_MS = 60_000;
/** Answers about blocks that came too late, and are kept until the same is asked again. */
const MOST_LATE = 1_000;

/** @param nodes at least one, in the order of preference; all of one currency */
export function createEvmGroup(nodes: readonly (ReadingNode & EvmPort)[], options: NodeGroupOptions): ChainNode & EvmPort {
  const { node, use, members, waiting } = grouped(nodes, options);
  const prices = comparedPrices(node);
  /** Of members that have not answered about a block in time: until when they are asked about no other, unless that answer comes. */
  const overdue = new Map<Member, number>();

  const late = new Map<string, BlockFacts>();

  function keepLate(question: string, facts: BlockFacts): void {
    late.set(question, facts);
    const [oldest] = late.keys();
    if (late.size > MOST_LATE && oldest !== undefined) late.delete(oldest);
  }

  /** What a member besides the one that was read says of a block; nothing more is asked of one that has not answered about another block yet. */
  async function readInTime(member: Member, hash: string, watch: WatchList): Promise<BlockFacts | NodeTrouble> {
    const { name } = member.node;
    const question = questionOf(name, hash, watch);
    const known = late.get(question ?? '');
    if (question !== null && known !== undefined) {
      late.delete(question);
      return known;
    }
    if (steadyMs(options.clock) < (overdue.get(member) ?? 0))
      return new NodeTrouble('down', `${name}: no answer about another block yet`);
    const reading = member.node.readBlock(hash, watch);
    const patienceMs = patienceNow(member, waiting) * (watch.scripts === undefined ? FOR_ALL : 1);
    try {
      const facts = await within(reading, patienceMs);
      if (facts !== null) return facts;
    } catch (error) {
      if (!(error instanceof NodeTrouble)) throw error;
      return error;
    }
    overdue.set(member, steadyMs(options.clock) + OVERDUE_MS);
    const end = (): void => void overdue.delete(member);
    reading.then((facts) => {
      end();
      if (question !== null) keepLate(question, facts);
    }, end);
    return new NodeTrouble('down', `${name}: no answer within ${patienceMs / 1000} s`);
  }

  /** A block as the node in use shows it, and the others, to be asked about it. */
  async function read(hash: string, watch: WatchList) {
    const reading = async (one: ReadingNode) => ({ facts: await one.readBlock(hash, watch), saidBy: one });
    const { facts, saidBy } = await use(reading);
    const others = members()
      .filter((member) => member.node !== saidBy)
      .map((member) => ({ node: member.node, read: (wanted: WatchList) => readInTime(member, hash, wanted) }));
    const leave = (why: string): void => {
      const outvoted = members().find((member) => member.node === saidBy);
      if (outvoted !== undefined) rest(outvoted, new NodeTrouble('bad_answer', why), options.clock);
    };
    return { facts, nodes: { saidBy, others, leave } };
  }

  /** What the one in use hides, or cannot say, is held all the same. */
  async function etherSaid(addresses: readonly string[], block: BlockRef): Promise<readonly SaidToHold[] | null> {
    const { held, saidBy } = await use(async (one) => ({ held: await one.etherOf(addresses, block), saidBy: one }));
    const others = members().filter((member) => member.node !== saidBy);
    const asked = others.map(async (member) => {
      const answer = within(member.node.etherOf(addresses, block), patienceNow(member, waiting) * FOR_ALL);
      const theirs = await answer.catch((error: unknown) => {
        if (error instanceof NodeTrouble) return null;
        throw error;
      });
      return { held: theirs, by: member.node.name };
    });
    const said = [{ held, by: saidBy.name }, ...(await Promise.all(asked))];
    const all = addresses.map((_, at) =>
      said.flatMap((one) => (one.held === null ? [] : [{ amount: (one.held[at] as SaidToHold).most, by: one.by }])),
    );
    return said.every((one) => one.held === null) ? null : all.map(saidToHold);
  }

  /** What each says that answers. @throws NodeTrouble where fewer do */
  async function unitsSaid(address: string, height: number, fewest: number): Promise<readonly SaidByOne[]> {
    const asked = members().map(async (member) => ({
      by: member.node.name,
      answer: await saidInTime(member, member.node.account(address, height), waiting),
    }));
    const answers = await Promise.all(asked);
    const said = answers.flatMap(({ by, answer }) => (answer instanceof NodeTrouble ? [] : [{ amount: answer.units, by }]));
    if (said.length < fewest) throw answers.find(({ answer }) => answer instanceof NodeTrouble)?.answer;
    return said;
  }

  /** The most that one of the nodes says, as far as it may be given. */
  async function mostGas(call: Parameters<EvmPort['gasOf']>[0]): ReturnType<EvmPort['gasOf']> {
    const { answer, saidBy } = await use(async (one) => ({ answer: await one.gasOf(call), saidBy: one }));
    if (!('gas' in answer)) return answer;
    const others = members().filter((member) => member.node !== saidBy);
    const said = await Promise.all(others.map((member) => saidInTime(member, member.node.gasOf(call), waiting)));
    const possible = said.flatMap((one) => ('gas' in one && one.gas <= GAS.most ? [one.gas] : []));
    return { gas: Math.max(answer.gas, ...possible) };
  }

  return {
    ...node,
    currency: (nodes[0] as EvmPort).currency,
    condition: prices.condition,
    async readBlock(hash, watch) {
      const { facts, nodes } = await read(hash, watch);
      // a list that cannot name what it watches credits nobody
      return watch.scripts === undefined ? facts : withSecondWord(facts, nodes);
    },
    async readByAll(hash, watch) {
      const { facts, nodes } = await read(hash, watch);
      return withAllWords(facts, nodes, watch);
    },
    finalized: () => use((one) => one.finalized()),
    send: (raw) => sendToAll(members(), raw, waiting),
    gasFees: () => prices.of(middleGasFees(members(), waiting)),
    account: (address, height) => use((one) => one.account(address, height)),
    // one node that is wrong makes nothing missing, and nothing that has left be there
    unitsOf: async (address, height) => saidToHold(await unitsSaid(address, height, 1)),
    async leastUnits(address, height) {
      const said = await unitsSaid(address, height, Math.min(2, members().length));
      return said.map(({ amount }) => amount).reduce(least);
    },
    sentBy: (address) => sentByWord(members(), address, waiting),
    heldBy: (address, block) => heldByWord(members(), { address, block }, waiting),
    etherOf: etherSaid,
    isContract: (address) => use((one) => one.isContract(address)),
    gasOf: (call) => (call.asksAll === true ? mostGas(call) : use((one) => one.gasOf(call))),
    payeeProblem: (from, to) => use((one) => one.payeeProblem(from, to)),
    succeeded: (...asked) => succeededAnywhere(members(), asked, waiting),
    ended: (txid) => endedByWord(members(), txid, waiting),
    carrierIn: (hash, signer) => use((one) => one.carrierIn(hash, signer)),
    signersIn: (txid) => use((one) => one.signersIn(txid)),
    authorized: (txid, signer) => authorizedByWord(members(), { txid, signer }, waiting),
    mined: (txid) => use((one) => one.mined(txid)),
  };
}

/** @param said at least one */
function saidToHold(said: readonly SaidByOne[]): SaidToHold {
  const most = said.map(({ amount }) => amount).reduce(greatest);
  const lowest = said.reduce((one, other) => (other.amount < one.amount ? other : one));
  return { most, less: lowest.amount < most ? lowest : null };
}

/** What a node is asked about a block, as text; null where the list does not name what it watches. */
function questionOf(name: string, hash: string, watch: WatchList): string | null {
  const scripts = watch.scripts?.();
  if (scripts === undefined) return null;
  const named = [...scripts].map((script) => Buffer.from(script).toString('hex')).sort();
  return [name, hash, ...named].join(' ');
}
