// Writing no faster than a client reads.
import type { ServerResponse } from 'node:http';

/** Resolves when the client has taken what was written, or is gone: whoever writes much goes on then. */
export function untilTaken(response: ServerResponse): Promise<void> {
  if (!response.writableNeedDrain || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    function go(): void {
      response.off('drain', go).off('close', go);
      resolve();
    }
    response.once('drain', go).once('close', go);
  });
}
