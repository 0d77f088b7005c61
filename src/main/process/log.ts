// The log of the API and of the worker.
import pino from 'pino';

/** A log on standard error, one JSON object a line, as the other processes write it. */
export function openLog(name: string): pino.Logger {
  return pino({ name, base: { name, pid: process.pid } }, process.stderr);
}
