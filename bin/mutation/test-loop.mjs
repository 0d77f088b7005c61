// Runs in a thread of its own, inside one test of vitest's: loads the tests of a file once, and runs them for one mutant after the other until one
// fails. The quickest are first, and before them what has killed one lately: the next mutant is often on the same line. A test that fails is
// run again without the mutant: if it fails then as well, it says nothing of this one.

import { pathToFileURL } from 'node:url';
import { BroadcastChannel } from 'node:worker_threads';
import fc from 'fast-check';
import { collected, inFile } from './collected-tests.mjs';
import { CHOSEN } from './switched.mjs';

const LONGEST_MESSAGE = 200;

/** Why a test fails, or null. */
async function failure({ run }, number) {
  globalThis[CHOSEN] = number;
  try {
    await run();
    return null;
  } catch (error) {
    return String(error?.message ?? error)
      .split('\n')[0]
      .slice(0, LONGEST_MESSAGE);
  } finally {
    globalThis[CHOSEN] = 0;
  }
}

/** @returns the test that a mutant fails, or null */
async function killerOf(number, tests) {
  for (const test of tests) {
    if ((await failure(test, number)) === null) continue;
    if ((await failure(test, 0)) === null) return test;
  }
  return null;
}

/** @param channelName where the mutants' numbers are told; @param files of the tests, by their absolute paths */
export async function loop(channelName, { files, numbers, longestMs }) {
  // the least example of what fails is not looked for
  fc.configureGlobal({ endOnFailure: true });
  const channel = new BroadcastChannel(channelName);
  globalThis[CHOSEN] = 0;
  for (const file of files) {
    inFile(file);
    await import(/* @vite-ignore */ pathToFileURL(file).href);
  }
  const usable = [];
  for (const test of collected) {
    const began = process.threadCpuUsage();
    const why = await failure(test, 0);
    test.ms = process.threadCpuUsage(began).user / 1000;
    if (why !== null) channel.postMessage({ unusable: `${test.file}: ${test.name}: ${why}` });
    else if (test.ms <= longestMs) usable.push(test);
  }
  usable.sort((a, b) => a.ms - b.ms);
  const ms = usable.reduce((all, test) => all + test.ms, 0);
  channel.postMessage({ tests: usable.length, left: collected.length - usable.length, ms, longestMs: usable.at(-1)?.ms ?? 0 });
  let lately = [];
  for (const number of numbers) {
    channel.postMessage({ begins: number });
    const began = process.threadCpuUsage();
    const killer = await killerOf(number, [...lately, ...usable.filter((test) => !lately.includes(test))]);
    if (killer !== null) lately = [killer, ...lately.filter((test) => test !== killer)].slice(0, 8);
    const ms = process.threadCpuUsage(began).user / 1000;
    channel.postMessage({ number, ms, killer: killer === null ? null : { file: killer.file, name: killer.name } });
  }
  channel.close();
}
