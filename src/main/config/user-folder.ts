// Where a user's own files are kept (XDG Base Directory Specification): they belong to who works here, not to the service.
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/**
 * Where a developer's own files are: `bursar` below `$XDG_CONFIG_HOME`, else `~/.config` (XDG Base Directory; a relative one is ignored).
 */
export function userFolder(): string {
  const { XDG_CONFIG_HOME: chosen } = process.env;
  return join(chosen !== undefined && isAbsolute(chosen) ? chosen : join(homedir(), '.config'), 'bursar');
}
