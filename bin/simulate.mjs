// `npm run simulate -- --seeds N [--first F] [--only histories|rules|evm-rules|lightning-rules|payouts|restored]`: random chain histories
// beyond those of `npm test` (test/simulation), five per seed; single orders, each step beside the rules as behaviour words them, also in ether,
// USDT and over Lightning; and merchants whose money leaves while everything is killed, or put back to an earlier copy (test/payout-walk). The
// first seed is drawn anew each time unless it is given; a failing one is printed with what happened, and one of a history belongs into
// test/simulation/seeds.txt.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const FILES = {
  histories: 'test/simulation/histories.test.ts',
  rules: 'test/simulation/rules.test.ts',
  'evm-rules': 'test/simulation/evm-rules.test.ts',
  'lightning-rules': 'test/simulation/lightning-rules.test.ts',
  payouts: 'test/payout-walk/walk.test.ts',
  restored: 'test/payout-walk/restored.test.ts',
};
const USAGE = `npm run simulate -- [--seeds N] [--first F] [--only ${Object.keys(FILES).join('|')}]`;
let given;
try {
  const options = {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string' },
    only: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  };
  given = parseArgs({ options }).values;
} catch (error) {
  console.error(`simulate: ${error.message}\n${USAGE}`);
  process.exit(1);
}
if (given.help) {
  console.log(USAGE);
  process.exit(0);
}
const { seeds, first = String(1_000 + Math.floor(Math.random() * 1e9)) } = given;
for (const [name, value] of Object.entries({ seeds, first })) {
  if (/^[1-9]\d{0,9}$/.test(value)) continue;
  console.error(`simulate: --${name} must be a whole number above 0`);
  process.exit(1);
}

if (given.only !== undefined && FILES[given.only] === undefined) {
  console.error(`simulate: --only must be one of ${Object.keys(FILES).join(', ')}`);
  process.exit(1);
}
const files = given.only === undefined ? Object.values(FILES) : [FILES[given.only]];

console.log(`simulate: seeds ${first} to ${Number(first) + Number(seeds) - 1}`);
const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SIMULATION_SEEDS: seeds, SIMULATION_FIRST: first },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('close', (code) => process.exit(code ?? 1));
