// The service's clock. Outside the sandbox it is the system's; in the sandbox all processes add one offset, stored in an 8-byte file, so
// that a move forward reaches every process when it next reads the time, and survives restarts.
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { damaged } from '../core/damaged-file.ts';
import type { Clock } from '../core/ports.ts';

/** The system's clock. */
export const systemClock: Clock = { now: () => Date.now(), steady: () => performance.now(), movedMs: () => 0 };

export type MovableClock = Clock & {
  /** Moves the clock forward, for every process, durably, before it returns; `forwardMs` is a whole number, zero or more. */
  advance(forwardMs: number): void;
  close(): void;
};

/** The sandbox's clock: system time plus the offset in `file` (Int64, little-endian, milliseconds; made when it is missing). Throws DamagedFile. */
export function openMovableClock(file: string): MovableClock {
  const offset = openOffset(file);
  const bytes = Buffer.alloc(8);
  let readAt = Number.NaN;
  let closed = false;
  let offsetMs = 0;

  function read(): number {
    bytes.fill(0);
    readSync(offset, bytes, 0, 8, 0);
    return Number(bytes.readBigInt64LE());
  }

  const { size } = fstatSync(offset);
  if ((size !== 0 && size !== bytes.length) || read() < 0 || Date.now() + read() > LAST_MS)
    throw damaged(file, 'it holds no offset of a clock', WAY);

  return {
    now() {
      const system = Date.now();
      // one read of the file per millisecond is enough: a caller cannot have heard of a move within the millisecond in which it was made
      if (system !== readAt) {
        offsetMs = read();
        readAt = system;
      }
      return system + offsetMs;
    },
    // with the offset of the last read of the time, so that the two agree when read one after the other
    steady: () => performance.now() + offsetMs,
    movedMs: () => offsetMs,
    advance(forwardMs) {
      if (!Number.isSafeInteger(forwardMs) || forwardMs < 0) throw new Error('forwardMs must be a whole number, zero or more');
      const next = Buffer.alloc(8);
      next.writeBigInt64LE(BigInt(read() + forwardMs));
      writeSync(offset, next, 0, 8, 0);
      fsyncSync(offset);
      readAt = Number.NaN;
    },
    // a second time the descriptor may be another file's
    close() {
      if (!closed) closeSync(offset);
      closed = true;
    },
  };
}

const WAY = 'delete it: then the sandbox has the time of the system again';
/** The end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

function openOffset(file: string): number {
  try {
    closeSync(openSync(file, 'a+'));
    return openSync(file, 'r+');
  } catch (error) {
    throw damaged(file, error, WAY);
  }
}
