// The node's own announcements (ZMQ), if it is built and configured with them: rawtx brings transactions, hashblock and rawblock mean "look
// now". Only hints: everything is read again by polling, so a lost message costs a second, never a payment.
import type { MempoolPush, PushSubscription } from '../../../core/ports.ts';
import { FEW_BYTES, type Rpc } from './rpc.ts';
import { RpcRefusal } from './trouble.ts';
import { isPublisherAddress, subscribe } from './zmtp.ts';

/** Transactions that are announced within this time are handed over together: looking at them costs about as much as looking at one. */
const GATHER_MS = 20;
/** As many are handed over at once. */
const MOST_GATHERED = 500;
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
const ANYWHERE = new Set(['0.0.0.0', '::', '*']);

/** @returns null when the node has no ZMQ for blocks and transactions */
export async function subscribeZmq(rpc: Rpc, host: string, push: MempoolPush): Promise<PushSubscription | null> {
  const topics = await announced(rpc, host);
  if (topics.length === 0) return null;
  const addresses = new Set(topics.map(({ address }) => address));
  const gathered = createGathering(push.onTransactions);
  // after a hint the whole mempool is listed: that finds what has just come, and most of it is in the new block
  const onHint = (): void => {
    gathered.drop();
    push.onHint();
  };
  const subscribers = [...addresses].map((address) => {
    const here = topics.filter((one) => one.address === address).map(({ topic }) => topic);
    const onMessage = createReader(here, { onHint, onTransaction: gathered.add });
    // what was announced while we were not connected must be searched for
    return subscribe({ address, topics: here, onMessage, onGap: onHint });
  });
  return {
    isLive: () => subscribers.every((one) => one.isLive()),
    async close() {
      for (const subscriber of subscribers) subscriber.close();
      gathered.drop();
    },
  };
}

/** Hands over what came, once {@link GATHER_MS} have passed since the first of it. */
function createGathering(handOver: MempoolPush['onTransactions']) {
  let raws: Buffer[] = [];
  let timer: NodeJS.Timeout | undefined;
  function drop(): readonly Buffer[] {
    clearTimeout(timer);
    timer = undefined;
    const all = raws;
    raws = [];
    return all;
  }
  return {
    drop,
    add(raw: Buffer): void {
      raws.push(raw);
      if (raws.length >= MOST_GATHERED) handOver(drop());
      else timer ??= setTimeout(() => handOver(drop()), GATHER_MS);
    },
  };
}

type Reading = { readonly onHint: () => void; readonly onTransaction: (raw: Buffer) => void };

/** Reads published messages; a gap in the counter of a topic is a lost message. */
function createReader(topics: readonly string[], push: Reading): (parts: readonly Buffer[]) => void {
  const expected = new Map<string, number>();
  return ([name, body, counter]) => {
    const topic = name?.toString('latin1') ?? '';
    if (body === undefined || !topics.includes(topic)) return;
    const number = counter?.length === 4 ? counter.readUInt32LE(0) : null;
    const lost = expected.has(topic) && number !== null && number !== expected.get(topic);
    if (number === null) expected.delete(topic);
    else expected.set(topic, (number + 1) >>> 0);
    if (topic === 'rawtx') push.onTransaction(body);
    if (topic !== 'rawtx' || lost) push.onHint();
  };
}

/** One block topic and one transaction topic, at the addresses where we can reach them. */
async function announced(rpc: Rpc, host: string): Promise<readonly { topic: string; address: string }[]> {
  let answer: unknown;
  try {
    answer = await rpc.call('getzmqnotifications', [], FEW_BYTES);
  } catch (error) {
    if (error instanceof RpcRefusal) return []; // built without ZMQ
    throw error;
  }
  if (!Array.isArray(answer)) return [];
  const byTopic = new Map<string, string>();
  for (const entry of answer as { type?: unknown; address?: unknown }[]) {
    if (typeof entry?.type === 'string' && typeof entry.address === 'string')
      byTopic.set(entry.type.replace(/^pub/, ''), reachable(entry.address, host));
  }
  const blockTopic = ['hashblock', 'rawblock'].find((topic) => byTopic.has(topic));
  return [blockTopic, 'rawtx'].flatMap((topic) => {
    const address = topic === undefined ? undefined : byTopic.get(topic);
    return topic === undefined || address === undefined || !isPublisherAddress(address) ? [] : [{ topic, address }];
  });
}

/** The node reports where it bound its sockets; an address that means itself or "anywhere" is reached by us at the host of its RPC. */
function reachable(address: string, host: string): string {
  const match = /^tcp:\/\/(\[?[^\]]*?\]?):(\d+)$/.exec(address);
  if (match === null) return address;
  const bound = (match[1] as string).replace(/^\[|\]$/g, '');
  return ANYWHERE.has(bound) || LOOPBACK.has(bound) ? `tcp://${host}:${match[2]}` : address;
}
