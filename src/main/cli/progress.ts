// How a command that reads a chain for long reports its progress, on standard error: a line every few seconds, none with --json.
const PRINTED_EVERY_MS = 3_000;

/**
 * @param what begins each line
 * @param blocks the heights it begins and ends at
 * @param isQuiet with --json standard error is for failures only
 * @returns a function to call with each height reached
 */
export function openProgress(
  what: string,
  blocks: { readonly from: number; readonly to: number },
  isQuiet: boolean,
): (height: number) => void {
  const began = performance.now();
  let printed = began;
  return (height) => {
    const nowMs = performance.now();
    if (isQuiet || nowMs - printed < PRINTED_EVERY_MS || height >= blocks.to) return;
    printed = nowMs;
    process.stderr.write(`${what}: ${progressLine(height, blocks, nowMs - began)}\n`);
  };
}

/** How far it is, and how long the rest takes at this pace. */
export function progressLine(
  height: number,
  { from, to }: { readonly from: number; readonly to: number },
  tookMs: number,
): string {
  const done = Math.max(0, height - from) / Math.max(1, to - from);
  const left = done === 0 ? '' : `, about ${duration((tookMs * (to - height)) / (height - from))} left`;
  return `block ${height} of ${to} (${Math.floor(done * 100)} %)${left}`;
}

function duration(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.ceil(ms / 1_000)} s`;
  return minutes < 90 ? `${Math.round(minutes)} min` : `${(minutes / 60).toFixed(1)} h`;
}
