// The program of the thread of outbound calls, on a machine on which everything takes four times as much CPU: a fast one checks as many signatures as a
// handshake may bring in less than what is dear.
import { CLOCKS } from '../../src/outside/outbound/handshake-costs.ts';

const { cpuMs } = CLOCKS;
Object.assign(CLOCKS, { cpuMs: () => 4 * cpuMs() });
await import('../../src/outside/outbound/outbound-thread-program.ts');
