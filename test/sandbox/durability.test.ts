// What a control has answered survives kill -9 of the sandbox, a torn last line is cut off, and a sandbox comes back on its port with
// everything it had.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { openSimulatedNode } from '../../src/sandbox/utxo/simulated-node.ts';
import { post, rpc } from './support/table-service.ts';

const folder = mkdtempSync(join(tmpdir(), 'bursar-durable-'));
const running: ChildProcess[] = [];
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

type Started = { readonly url: string; readonly secret: string; kill(): Promise<void> };
async function start(name: string, blockSeconds: number): Promise<Started> {
  const own = join(folder, name);
  const program = fileURLToPath(new URL('./support/sandbox-child.ts', import.meta.url));
  const child = spawn(process.execPath, [program, own, String(blockSeconds)], { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(child);
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return {
    ...(JSON.parse(line) as { url: string; secret: string }),
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
const fresh = (name: string): string => {
  const own = mkdtempSync(join(folder, `${name}-`));
  return own.slice(folder.length + 1);
};

describe('a sandbox that is killed', () => {
  it('has everything that it answered for, at the same address', async () => {
    const name = fresh('killed');
    const first = await start(name, 0);
    const { json: paid } = await post(first.url, 'pay', { transaction_id: 'txn_btc_1' });
    const { json: mined } = await post(first.url, 'mine', { currency: 'BTC', blocks: 2 });
    const { json: open } = await post(first.url, 'pay', { transaction_id: 'txn_ltc_1' });
    const { json: outside } = await post(first.url, 'address', { currency: 'BTC' });
    await post(first.url, 'rates', { BTC: '70000.00' });
    await post(first.url, 'clock', { advance_seconds: 86_400 });
    await post(first.url, 'node', { currency: 'LTC', fault: 'reject', for: 5 });
    await first.kill();

    const second = await start(name, 0);
    expect(second.url).toBe(first.url);
    expect(second.secret).toBe(first.secret);
    expect(await rpc(second, 'btc', 'getbestblockhash')).toBe(mined.hash);
    expect(await rpc(second, 'btc', 'getrawtransaction', paid.txid, 1)).toMatchObject({ confirmations: 2 });
    expect(await rpc(second, 'ltc', 'getrawmempool')).toEqual([open.txid]);
    expect((await post(second.url, 'address', { currency: 'BTC' })).json.address).not.toBe(outside.address);
    expect((await post(second.url, 'rates', {})).json.rates).toMatchObject({
      BTC: ['70000.00', '70000.00', '70000.00', '70000.00'],
    });
    const { json: later } = await post(second.url, 'clock', { advance_seconds: 0 });
    expect(Date.parse(later.now as string)).toBeGreaterThan(Date.now() + 86_390_000);
    expect((await post(second.url, 'node', { currency: 'LTC', down: false })).json).toMatchObject({ fault: 'reject', for: 5 });
    await second.kill();
  });

  it('loses no answered payment and no block that it showed, wherever it is killed', async () => {
    const name = fresh('storm');
    let known: { txid: unknown; height: number; hash: unknown } | null = null;
    const all: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      const sandbox = await start(name, 0.02);
      if (known !== null) expect(await rpc(sandbox, 'btc', 'getblockhash', known.height)).toBe(known.hash);
      for (const txid of all) expect(await rpc(sandbox, 'btc', 'getrawtransaction', txid)).toEqual(expect.any(String));
      const until = performance.now() + 300;
      while (performance.now() < until) {
        const { json } = await post(sandbox.url, 'pay', { transaction_id: 'txn_btc_9' });
        all.push(json.txid);
        const height = (await rpc(sandbox, 'btc', 'getblockcount')) as number;
        known = { txid: json.txid, height, hash: await rpc(sandbox, 'btc', 'getblockhash', height) };
      }
      await sandbox.kill();
    }
    expect(all.length).toBeGreaterThan(5);
  });
});

describe('a journal', () => {
  const now = () => 1_800_000_000_000;
  it('is cut where a crash tore its last line, and goes on', () => {
    const own = join(folder, fresh('torn'));
    const first = openSimulatedNode({ currency: 'BTC', folder: own, now });
    const hash = first.mine(1).hash;
    first.close();
    const file = join(own, 'btc.journal');
    const { size } = statSync(file);
    const text = readFileSync(file, 'utf8');
    appendFileSync(file, text.slice(0, 200).trimEnd());
    const second = openSimulatedNode({ currency: 'BTC', folder: own, now });
    expect(second.state.active.at(-1)?.hash).toBe(hash);
    expect(statSync(file).size).toBe(size);
    const next = second.mine(1).hash;
    second.close();
    expect(openSimulatedNode({ currency: 'BTC', folder: own, now }).state.active.at(-1)?.hash).toBe(next);
  });

  it('that is damaged before its end is an error that names the line', () => {
    const own = join(folder, fresh('damaged'));
    openSimulatedNode({ currency: 'BTC', folder: own, now }).mine(1);
    const file = join(own, 'btc.journal');
    writeFileSync(file, readFileSync(file, 'utf8').replace('"block"', '"blok"').replace('[["', '[{"'));
    expect(() => openSimulatedNode({ currency: 'BTC', folder: own, now })).toThrow(/line 1 of .*btc\.journal/);
  });

  it('of thousands of blocks is read in a moment', () => {
    const own = join(folder, fresh('long'));
    const node = openSimulatedNode({ currency: 'BTC', folder: own, now });
    const { hash } = node.mine(3000);
    node.close();
    const began = performance.now();
    expect(openSimulatedNode({ currency: 'BTC', folder: own, now }).state.active.at(-1)?.hash).toBe(hash);
    expect(performance.now() - began).toBeLessThan(1500);
  });
});
