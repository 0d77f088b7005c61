// The error for a file of ours that does not hold what we wrote into it; starts and commands print it as one line.

/** Thrown with one sentence for the operator; {@link damaged} writes it. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile';
}

/**
 * The sentence for a file that cannot be read.
 * @param way what the operator can do, follows "put it back from a copy, or"
 */
export function damaged(file: string, why: unknown, way: string): DamagedFile {
  const reason = why instanceof Error ? why.message : String(why);
  return new DamagedFile(`${file} cannot be read (${reason.split('\n')[0]}): put it back from a copy, or ${way}`, { cause: why });
}
