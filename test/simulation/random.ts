// Random numbers that can be repeated: the same seed gives the same numbers for ever, whatever library is installed.

import { mulberry32 } from '../support/random.ts';

export type Random = {
  /** At least 0, below 1. */
  fraction(): number;
  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number;
  /** True so many times in a hundred. */
  percent(share: number): boolean;
  one<T>(of: readonly T[]): T;
  /** One of the names, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
};

export function randomOf(seed: number): Random {
  const next = mulberry32(Math.imul(seed + 1, 0x9e3779b1));
  const fraction = (): number => next() / 2 ** 32;
  const whole = (from: number, to: number): number => from + Math.floor(fraction() * (to - from + 1));
  return {
    fraction,
    whole,
    percent: (share) => fraction() * 100 < share,
    one: (of) => {
      if (of.length === 0) throw new Error('there is nothing to choose from');
      return of[whole(0, of.length - 1)] as (typeof of)[number];
    },
    weighted(weights) {
      const names = Object.keys(weights) as (keyof typeof weights)[];
      let left = fraction() * names.reduce((sum, name) => sum + weights[name], 0);
      for (const name of names) {
        left -= weights[name];
        if (left < 0) return name;
      }
      return names[names.length - 1] as (typeof names)[number];
    },
  };
}
