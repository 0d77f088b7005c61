// Why the API cannot listen on HOST and PORT, in one line for the operator.
import { StartRefused } from './start-refused.ts';

/** The refusal for what `listen` failed with. */
export function listenRefused(host: string, port: number, error: unknown): StartRefused {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new StartRefused(`HOST: "${host}" cannot be resolved (${code}); accepted is an address or a name of this machine`);
  }
  const why = code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${code})`;
  return new StartRefused(`${host}:${port} ${why}: set PORT or HOST to another`);
}
