// `npm run bursar -- <command>`: the operator's commands, and a developer's. Every one takes --json, works while the server runs, and starts the embedded
// database by itself when it does not. Exit codes: 0 done, 1 failed or found something red, 2 called in a wrong way.
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { EXIT, print, reportFailure } from './cli/output.ts';

const json = process.argv.includes('--json');

const EXIT_CODES = `
Every command takes --json and --help (or: help <command>); --version tells the version. Exit codes: 0 done, 1 failed or something is red, 2 called in a wrong way.
Settings come from the environment, and below it from the file .env (see .env.example); NO_COLOR is respected.`;

type Added = (bursar: Command) => void;

/**
 * The commands by their first word, in the order of the help. Only what the words name is loaded: all of them together take a third of a second of
 * CPU, and each of them a tenth of one.
 */
const COMMANDS: readonly { readonly words: readonly string[]; readonly load: () => Promise<Added> }[] = [
  {
    words: ['start', 'api', 'worker', 'signer', 'migrate'],
    load: async () => (await import('./cli/processes.ts')).addProcessCommands,
  },
  { words: ['config'], load: async () => (await import('./cli/config.ts')).addConfigCommands },
  { words: ['merchant', 'user'], load: async () => (await import('./cli/merchants.ts')).addMerchantCommands },
  { words: ['transaction'], load: async () => (await import('./cli/transactions.ts')).addTransactionCommands },
  { words: ['review'], load: async () => (await import('./cli/reviews.ts')).addReviewCommands },
  { words: ['payout'], load: async () => (await import('./cli/payouts.ts')).addPayoutCommands },
  { words: ['webhook'], load: async () => (await import('./cli/webhooks.ts')).addWebhookCommands },
  { words: ['keys'], load: async () => (await import('./cli/keys.ts')).addKeyCommands },
  { words: ['audit'], load: async () => (await import('./cli/audit.ts')).addAuditCommands },
  { words: ['chain'], load: async () => (await import('./cli/chain.ts')).addChainCommands },
  { words: ['console'], load: async () => (await import('./cli/console.ts')).addConsoleCommand },
  { words: ['demo'], load: async () => (await import('./cli/demo.ts')).addDemoCommand },
  { words: ['login'], load: async () => (await import('./cli/developer/login.ts')).addLoginCommand },
  { words: ['listen'], load: async () => (await import('./cli/developer/listen.ts')).addListenCommand },
  { words: ['trigger'], load: async () => (await import('./cli/developer/trigger.ts')).addTriggerCommand },
  { words: ['events'], load: async () => (await import('./cli/developer/events.ts')).addEventCommands },
];

/** @param word what was called, of which only the commands are added; all of them when no command begins so */
async function program(word: string | undefined): Promise<Command> {
  const bursar = new Command('bursar')
    .description('Commands of the operator, and of developers who use the API.')
    .addHelpText('after', EXIT_CODES)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ outputError: () => undefined, ...(json ? { writeErr: () => undefined } : {}) });
  const named = COMMANDS.filter(({ words }) => word !== undefined && words.includes(word));
  for (const { load } of named.length > 0 ? named : COMMANDS) (await load())(bursar);
  return bursar;
}

/** The deepest command that was named. */
function namedCommand(bursar: Command, words: readonly string[]): Command {
  let at = bursar;
  for (const word of words) {
    const next = at.commands.find((command) => command.name() === word);
    if (next === undefined) break;
    at = next;
  }
  return at;
}

/** `help` as the first word, or right after a command, is `--help` of the command that is named. */
function withHelp(bursar: Command, words: readonly string[]): readonly string[] {
  const [first, ...rest] = words;
  if (first === 'help') return [...rest, '--help'];
  const depth = depthOf(bursar, words);
  return words[depth] === 'help' ? [...words.slice(0, depth), '--help'] : words;
}

/** How many of the words are part of a command's name. */
function depthOf(bursar: Command, words: readonly string[]): number {
  let depth = 0;
  for (let at = bursar; ; depth++) {
    const next = at.commands.find((command) => command.name() === words[depth]);
    if (next === undefined) return depth;
    at = next;
  }
}

/** An unknown option is reported before a missing one. */
function refuseUnknownOption(bursar: Command, words: readonly string[]): void {
  const command = namedCommand(bursar, words);
  const takesValue = new Set(command.options.filter(({ required }) => required).flatMap(({ long, short }) => [long, short]));
  const known = [...command.options.flatMap(({ long, short }) => [long, short]), '--help', '-h'];
  for (let at = depthOf(bursar, words); at < words.length; at++) {
    const word = words[at] as string;
    if (word === '--') return;
    const [name = ''] = word.split('=');
    if (takesValue.has(name) && !word.includes('=')) at++;
    else if (/^--?[a-z]/i.test(word) && !known.includes(name)) {
      const accepted = command.options.map(({ long }) => long).join(', ');
      throw new CommanderError(EXIT.usage, 'usage', `unknown option '${name}'; accepted: ${accepted}`);
    }
  }
}

function version(): string {
  return (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}

async function main(): Promise<number> {
  // --json belongs to the commands; it must not hide that none was named
  const given = process.argv.slice(2).filter((word) => word !== '--json');
  const bursar = await program(given[0] === 'help' ? given[1] : given[0]);
  const words = withHelp(bursar, given);
  const groups = namedCommand(bursar, words).commands;
  try {
    if (words[depthOf(bursar, words)] === '--version') {
      print(json, { version: version() }, [version()]);
      return EXIT.done;
    }
    if (groups.length === 0) refuseUnknownOption(bursar, words);
    await bursar.parseAsync(json && groups.length === 0 ? [...words, '--json'] : words, { from: 'user' });
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(error, json);
    if (error.exitCode === 0) return EXIT.done;
    const accepted = groups.map((command) => command.name()).join(', ');
    const message =
      error.code === 'commander.help'
        ? `a command is missing; accepted: ${accepted}`
        : error.message.replace(/^error: /, '').replaceAll('\n', ' ') +
          (error.code === 'commander.unknownCommand' ? `; accepted: ${accepted}` : '');
    return reportFailure(new CommanderError(EXIT.usage, 'usage', message), json);
  }
}

for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
const code = await main();
// processes that a command started live on; everything else is done
if (code !== EXIT.running) process.exit(code);
