// Tells the other API servers of one database what this one counted against its rate limits, and hears what they did, some twenty times a
// second and only while there are others. What is lost with a broken connection is a moment's calls; no call ever waits for this.
import { randomBytes } from 'node:crypto';
import type { Neighbours } from '../http/neighbours.ts';
import type { Database } from '../store/connect.ts';
import { NEIGHBOUR_CHANNEL, tellNeighbours } from '../store/neighbours.ts';

const TELL_EVERY_MS = 50;
/** A neighbour that has not been heard of for two roll calls is gone. */
const ROLL_CALL_MS = 20_000;
const MOST_BYTES = 7_000;

type Word =
  | { readonly from: string; readonly kind: 'here'; readonly answer: boolean }
  | { readonly from: string; readonly kind: 'counts'; readonly counts: readonly (readonly [string, string, number])[] };

export async function openNeighbours(
  db: Database,
  onTrouble: (error: unknown) => void,
): Promise<{ neighbours: Neighbours; close(): Promise<void> }> {
  const self = randomBytes(6).toString('base64url');
  const heard = new Map<string, number>();
  const listeners = new Map<string, (key: string, n: number) => void>();
  let pending = new Map<string, Map<string, number>>();
  let telling: NodeJS.Timeout | null = null;

  const say = (word: Word): void => {
    tellNeighbours(db, JSON.stringify(word)).catch(onTrouble);
  };
  function hear(word: Word): void {
    if (word.from === self) return;
    heard.set(word.from, performance.now());
    if (word.kind === 'here') {
      if (word.answer) say({ from: self, kind: 'here', answer: false });
      return;
    }
    for (const [list, key, n] of word.counts) listeners.get(list)?.(key, n);
  }
  function rollCall(): void {
    const oldest = performance.now() - 2 * ROLL_CALL_MS;
    for (const [name, at] of heard) if (at < oldest) heard.delete(name);
    say({ from: self, kind: 'here', answer: true });
  }
  function tell(): void {
    telling = null;
    const counts = [...pending].flatMap(([list, keys]) => [...keys].map(([key, n]) => [list, key, n] as const));
    pending = new Map();
    let part: (readonly [string, string, number])[] = [];
    let bytes = 0;
    for (const count of counts) {
      const size = JSON.stringify(count).length * 2;
      if (bytes + size > MOST_BYTES && part.length > 0) {
        say({ from: self, kind: 'counts', counts: part });
        part = [];
        bytes = 0;
      }
      part.push(count);
      bytes += size;
    }
    if (part.length > 0) say({ from: self, kind: 'counts', counts: part });
  }

  const stopListening = await db.listen([NEIGHBOUR_CHANNEL], (_channel, text) => hear(JSON.parse(text) as Word), rollCall);
  rollCall();
  const timer = setInterval(rollCall, ROLL_CALL_MS);
  timer.unref();
  return {
    neighbours: {
      counted(list, key) {
        if (heard.size === 0) return;
        let keys = pending.get(list);
        if (keys === undefined) {
          keys = new Map();
          pending.set(list, keys);
        }
        keys.set(key, (keys.get(key) ?? 0) + 1);
        telling ??= setTimeout(tell, TELL_EVERY_MS).unref();
      },
      onCounted: (list, count) => void listeners.set(list, count),
    },
    async close() {
      clearInterval(timer);
      if (telling !== null) clearTimeout(telling);
      await stopListening();
    },
  };
}
