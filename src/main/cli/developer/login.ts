// `bursar login`: signs in at an API and keeps the tokens in a profile.
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { readConfig } from '../../config/read-config.ts';
import { DEMO_PASSWORD } from '../../config/variables.ts';
import { liveGroup } from '../../process/group-file.ts';
import { CommandFailed, calledWrongly, leaf, print } from '../output.ts';
import { post } from './api-client.ts';
import { profilePath, saveProfile } from './profile.ts';
import type { TokenPair } from './session.ts';

type LoginOptions = {
  readonly url?: string;
  readonly username: string;
  readonly password?: string;
  readonly profile: string;
  readonly json?: boolean;
};

export const DEMO_USER = 'demo';

/** Adds `login`, which keeps the tokens in the profile's file (mode 0600) and prints none. */
export function addLoginCommand(bursar: Command): void {
  withProfile(leaf(bursar, 'login', 'Signs in, and keeps the tokens in a file that only you can read.'))
    .option('--url <base>', 'base address of the API; default: of the server that runs on BURSAR_DATA_DIR, else of PORT and HOST')
    .option('--username <name>', 'the user', DEMO_USER)
    .option('--password <text>', "default: asked for, or read from standard input; the demo user's is known")
    .action(login);
}

/** Adds `--profile`. */
export function withProfile(command: Command): Command {
  return command.option('--profile <name>', 'whose sign-in to use', 'default');
}

/** The address of the API: as named, else of the server that runs here. */
export function apiAddress(named: string | undefined): string {
  const config = readConfig();
  const base = named ?? liveGroup(config.dataFolder)?.url ?? `http://${config.host}:${config.port}`;
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol))
    throw calledWrongly(`--url: ${base} is no address; accepted is http://host:port or https://host`);
  return base.replace(/\/+$/, '');
}

async function login({ url, username, password: given, profile, json }: LoginOptions): Promise<void> {
  const path = profilePath(profile);
  const base = apiAddress(url);
  const password = given ?? (username === DEMO_USER ? (readConfig().demoPassword ?? DEMO_PASSWORD) : await askPassword(username));
  const { access_token, refresh_token } = await post<TokenPair>(base, '/auth', { username, password });
  const { account } = await post<{ account: { affiliate_id: string; business_name: string } }>(base, '/get_account_info', {
    access_token,
  });
  saveProfile(profile, { url: base, username, access_token, refresh_token });
  const { affiliate_id, business_name } = account;
  print(json, { url: base, username, affiliate_id, profile: path }, [
    `Signed in at ${base} as ${username} (${business_name}, ${affiliate_id}).`,
    `The tokens are in ${path}.`,
  ]);
}

/** Reads a line, unseen on a terminal. */
async function askPassword(username: string): Promise<string> {
  const { stdin, stderr } = process;
  if (stdin.isTTY) stderr.write(`Password of ${username}: `);
  const unseen = new Writable({ write: (_part, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: unseen, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) {
      if (stdin.isTTY) stderr.write('\n');
      return line;
    }
  } finally {
    lines.close();
  }
  throw new CommandFailed('no password: name it with --password, or write it to standard input');
}
