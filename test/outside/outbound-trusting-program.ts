// What the thread of outbound calls runs, where one more certificate is trusted, and something that nobody waits for fails again and again.
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

setDefaultCACertificates([...getCACertificates('default'), process.env.TRUSTED as string]);
await import('../../src/outside/outbound/outbound-thread-program.ts');
if (process.env.THROWS !== undefined)
  setInterval(() => {
    throw new Error(process.env.THROWS);
  }, 20);
