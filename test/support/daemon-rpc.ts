// JSON-RPC to a real daemon, and the wait until a started one answers.
import type { ChildProcess } from 'node:child_process';
import { caller } from './json-rpc.ts';

/** Calls a daemon at a URL with its user and password (percent-encoded); throws with the daemon's text and code. */
export async function callDaemon<T>(url: string, method: string, params: readonly unknown[]): Promise<T> {
  const { username, password, origin, pathname } = new URL(url);
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization = (): string => `Basic ${Buffer.from(credentials).toString('base64')}`;
  return caller(`${origin}${pathname}`, { authorization, version: '1.0' })<T>(method, ...params);
}

/** Waits until a daemon that was just started answers at its URL; throws when it ended, or after 30 seconds. */
export async function untilUp(name: string, running: ChildProcess, url: string): Promise<void> {
  for (const deadline = Date.now() + 30_000; ; ) {
    if (running.exitCode !== null || Date.now() > deadline) throw new Error(`${name} did not start`);
    const up = await callDaemon(url, 'getblockcount', []).then(
      () => true,
      () => false,
    );
    if (up) return;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
