// A real LND whose disk stands still: it has taken a request to pay, answers what it reads, and says that it has no such payment. The payout waits until LND has
// written. Its disk is held by strace, so this part is skipped where that may not be used.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, isPaid, open } from './funded-lnd.ts';

const CAN_HOLD = spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;
/** Longer than the test takes; a smaller delay ends sooner. */
const HELD = 'delay_enter=300s';

/** Nothing of our node reaches its disk until the function returned is called. */
async function holdDisk(): Promise<() => Promise<void>> {
  const pid = execFileSync('pgrep', ['-P', String(process.pid), '-f', 'alias=shop'], { encoding: 'utf8' }).trim();
  const calls = 'fsync,fdatasync';
  const args = ['-f', '-p', pid, '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:${HELD}`];
  const holder = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  await once(holder.stderr, 'data');
  return async () => {
    holder.kill('SIGINT');
    await once(holder, 'exit');
  };
}

describe.runIf(HAS_LND && CAN_HOLD)('on LND', () => {
  beforeAll(open, 300_000);
  afterAll(close, 60_000);

  test('what it has taken, and does not know yet, is not failed when its invoice expires, and is paid', {
    timeout: 180_000,
  }, async () => {
    const { request, hash } = await engine.invoice({ sat: 2_000 });
    const { id } = await at.request(request, '0.00002');
    const release = await holdDisk();
    try {
      await at.look();
      clock.skewMs += 2 * 3_600_000;
      await at.look();
      expect((await at.paying.track(hash)).payment).toBeNull();
      expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
      expect((await at.payment(id)).trouble).toMatch(/the Lightning node writes nothing down/);
    } finally {
      await release();
    }
    await eventually('it arrives', async () => (await engine.arrived(hash)) > 0, 60_000);
    await isPaid(id);
    expect(await at.compared()).toEqual([]);
  });
});
