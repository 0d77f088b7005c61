// One step of the jobs that pay: what fails in it is told, and the rest goes on.
import type { Telling } from './driver-options.ts';

/**
 * Runs what may fail, of one thing or of all: a failure is told, and stops nothing that comes after it.
 * @param otherwise the result where it fails
 */
export async function tried<T>(
  { onFault }: Pick<Telling, 'onFault'>,
  what: string,
  work: () => Promise<T>,
  otherwise: T,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    onFault(what, error);
    return otherwise;
  }
}
