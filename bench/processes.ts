// What the operating system knows of a process (Linux /proc): CPU time, memory, children.
import { readdirSync, readFileSync } from 'node:fs';

/** Microseconds in one clock tick of /proc/<pid>/stat (USER_HZ is 100 on every Linux that Node runs on). */
const MICROS_PER_TICK = 10_000;
const STATE = 0;
const PARENT = 1;
const OWN = [11, 12];
const WAITED_FOR = [13, 14];

// the name in brackets may contain anything: the fields begin after its last bracket
function fields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const list = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return list[STATE] === 'Z' ? null : list;
  } catch {
    return null;
  }
}

/** User and system time of a process so far, in microseconds; with `children` also that of the ended ones that were waited for. */
export function cpuMicros(pid: number, { children = false } = {}): number {
  const list = fields(pid);
  const ticks = (children ? [...OWN, ...WAITED_FOR] : OWN).reduce((sum, index) => sum + Number(list?.[index] ?? 0), 0);
  return ticks * MICROS_PER_TICK;
}

/** CPU time of a PostgreSQL server with all its backends, including those that have ended. */
export function postgresCpuMicros(postmaster: number): number {
  return childrenOf(postmaster).reduce((sum, pid) => sum + cpuMicros(pid), cpuMicros(postmaster, { children: true }));
}

/** The direct children of a process. */
export function childrenOf(parent: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((pid) => Number(fields(pid)?.[PARENT]) === parent);
}

/** A process and everything below it. */
export function treeOf(root: number): number[] {
  return [root, ...childrenOf(root).flatMap(treeOf)];
}

/** The words of a process's command line. */
export function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
  } catch {
    return [];
  }
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS');
}

/** Memory of a process, each shared page counted proportionally (PSS), in bytes; 0 for one that has ended. */
export function proportionalBytes(pid: number): number {
  try {
    const kilobytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** The most that was resident since the process started its program (the operating system's own counter includes its parent's). */
export function peakBytes(pid: number): number {
  return statusBytes(pid, 'VmHWM');
}

function statusBytes(pid: number, name: string): number {
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status names no ${name}`);
  return Number(kilobytes) * 1024;
}
