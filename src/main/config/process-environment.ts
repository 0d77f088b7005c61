// What a process reads of its environment besides the settings, and adds to it; where a developer's own files are.
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Whether npm runs us: then it is our parent, and we end when it ends. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined;

/** Variables that a supervisor sends when a process begins; the process reads its configuration after that. */
export function addVariables(variables: Readonly<Record<string, string>>): void {
  Object.assign(process.env, variables);
}

/**
 * Where a developer's own files are: `bursar` below `$XDG_CONFIG_HOME`, else `~/.config` (XDG Base Directory; a relative one is ignored).
 */
export function userFolder(): string {
  const { XDG_CONFIG_HOME: chosen } = process.env;
  return join(chosen !== undefined && isAbsolute(chosen) ? chosen : join(homedir(), '.config'), 'bursar');
}
