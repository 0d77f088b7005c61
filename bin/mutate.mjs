// `npm run mutate [-- <path of a file>]`: breaks one comparison, operator, number or statement of the money code at a time and runs the tests
// that must notice. Each mutant that survives is printed; it wants a test, or a line in test/mutants.json that says why it changes nothing.
// Works in a copy of the repository. Not part of `npm test`: a whole run takes hours.
import { cpSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Which tests answer for which code, in parts that are run one after the other: the cheapest first, since the first failure ends a run. */
const AREAS = [
  {
    code: /^src\/core\/judge\/refunds\.ts$/,
    tests: ['test/core/judge/refund', 'test/core/judge/credit-variants', 'test/core/judge/credit-places'],
  },
  { code: /^src\/core\/(judge\/.*|confirmations)\.ts$/, tests: ['test/core/'] },
  {
    code: /^src\/core\/(money|rate|rate-median)\.ts$/,
    tests: ['test/core/money', 'test/core/rate', 'test/core/judge', 'test/rates/'],
  },
  {
    code: /^src\/flow\/transactions\/(decide|judging|facts)\.ts$/,
    tests: ['test/flow/transactions/', 'test/store/cases', 'test/simulation/credit'],
  },
  {
    code: /^src\/store\/ledger\/ledger\.ts$/,
    tests: ['test/store/ledger', 'test/store/roll-up', 'test/flow/transactions/judge-together', 'test/flow/audit'],
  },
  {
    code: /^src\/store\/chain\/(payment-facts|payment-writes|sightings|sighting-plan)\.ts$/,
    tests: ['test/store/chain-facts', 'test/store/many-outputs', 'test/nodes/races', 'test/nodes/bitcoind-cases'],
  },
  { code: /^src\/core\/payouts\/(gas|sweeps)\.ts$/, tests: ['test/core/gas', 'test/signer/evm', 'test/nodes/sweeps'] },
  {
    code: /^src\/outside\/evm\/(by-balance|balances)\.ts$/,
    tests: ['test/nodes/evm-unexplained', 'test/nodes/evm-balances', 'test/nodes/evm-by-balance'],
  },
  { code: /^src\/outside\/evm\/waiting-calls\.ts$/, tests: ['test/nodes/evm-waiting-calls'] },
  {
    code: /^src\/outside\/evm\/(payments|answers|traces|paying)\.ts$/,
    tests: [
      'test/nodes/evm-block-answers',
      'test/nodes/evm-traces',
      'test/nodes/evm-answers',
      'test/nodes/evm.test',
      'test/nodes/evm-token-owner',
      'test/nodes/evm-payouts',
    ],
  },
  { code: /^src\/store\/chain\/inner-ether\.ts$/, tests: ['test/store/inner-ether', 'test/nodes/evm-by-balance'] },
  { code: /^src\/(flow|store)\/sweeps\/.*\.ts$/, tests: ['test/nodes/sweeps', 'test/nodes/evm-gas-for-usdt'] },
  {
    code: /^src\/flow\/evm\/.*\.ts$/,
    tests: ['test/nodes/evm-payouts', 'test/nodes/evm-reverts', 'test/nodes/evm-nonces', 'test/nodes/evm-recovered'],
  },
  {
    code: /^src\/core\/payouts\/(held-reason|coin-selection|outgoing-fees|states|validation|units|intent|signing-refusals)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/flow/payouts/variants',
      'test/flow/payouts/holds',
      'test/flow/payouts/batches.test',
      'test/flow/payouts/queue',
    ],
  },
  {
    code: /^src\/core\/payouts\/(postings|evm-postings)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/flow/payouts/booked-amounts',
      'test/flow/payouts/audit',
      'test/flow/payouts/batches.test',
      'test/flow/payouts/restored',
      'test/flow/payouts/reimbursements.test',
    ],
  },
  {
    code: /^src\/(core\/payouts\/ach-postings|core\/ach\/.*|flow\/ach\/.*)\.ts$/,
    tests: [
      'test/core/ach',
      'test/flow/ach/audit',
      'test/flow/ach/protocol',
      'test/flow/ach/clock-set',
      'test/flow/ach/trace-numbers',
      'test/flow/ach/bank-reports',
      'test/flow/ach/payouts',
      'test/flow/ach/stolen-database',
      'test/flow/ach/forgotten',
      'test/flow/ach/put-back',
      'test/flow/ach/folder',
      'test/flow/ach/automatic',
    ],
  },
  {
    code: /^src\/flow\/payouts\/(cancel-and-approve|held-reasons)\.ts$/,
    tests: [
      'test/flow/payouts/booked-amounts',
      'test/flow/payouts/holds',
      'test/flow/payouts/reimbursements-cancelled',
      'test/flow/payouts/reimbursements-approval',
      'test/flow/payouts/refusals',
      'test/flow/payouts/restored',
    ],
  },
  {
    code: /^src\/flow\/payouts\/(batches|batch-progress|progress|sufficient-balance|signed-payouts)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/flow/payouts/variants',
      'test/flow/payouts/descendants',
      'test/flow/payouts/batches.test',
      'test/flow/payouts/batch-audit',
      'test/flow/payouts/restored',
      'test/flow/payouts/queue',
      'test/flow/payouts/reimbursements.test',
      'test/flow/payouts/many-outputs',
      'test/flow/payouts/refusals',
    ],
  },
  {
    code: /^src\/flow\/payouts\/(resolve|reimbursements|refund-rail|internal-payouts|waiting-for-operator|after-restore\/.*)\.ts$/,
    tests: [
      'test/flow/payouts/booked-amounts',
      'test/flow/payouts/resolved',
      'test/flow/payouts/reimbursements-stale',
      'test/flow/payouts/reimbursements-cancelled',
      'test/flow/payouts/reimbursements.test',
      'test/flow/payouts/restored',
      'test/flow/payouts/recovered',
      'test/flow/payouts/internal',
      'test/flow/payouts/reimbursements-approval',
      'test/flow/payouts/refusals',
    ],
  },
  {
    code: /^src\/store\/(payouts|ach)\/.*\.ts$/,
    tests: ['test/flow/payouts/', 'test/flow/ach/', 'test/store/payout-plans'],
  },
  {
    code: /^src\/flow\/lightning\/(payout-progress|payout-request|restored-.*|internal-payouts)\.ts$/,
    tests: ['test/lightning/payout-variants', 'test/lightning/payout-restored'],
  },
  {
    code: /^src\/store\/lightning\/(payment-rows|under-way|sent-payments|paying-node|payer-facts|outgoing)\.ts$/,
    tests: [
      'test/lightning/payout-variants',
      'test/lightning/payout-restored',
      'test/lightning/replaced-node',
      'test/lightning/payout-attacks',
      'test/lightning/payout-resolved',
      'test/lightning/htlc-slots',
    ],
  },
  {
    code: /^src\/(core\/lightning\/postings|(worker|store)\/lightning\/(holdings|operators-part|unknown-invoices)|outside\/lightning\/lnd-statement)\.ts$/,
    tests: ['test/lightning/holdings', 'test/lightning/unknown-invoices'],
  },
  { code: /^src\/core\/lightning\/under-way\.ts$/, tests: ['test/lightning/htlc-slots'] },
  {
    code: /^src\/(store\/lightning\/|flow\/lightning\/invoices|worker\/lightning\/(watcher|jobs|read-schedule)).*\.ts$/,
    tests: [
      'test/lightning/payments',
      'test/lightning/restored-node',
      'test/lightning/revived-invoices',
      'test/lightning/at-rest',
    ],
  },
  {
    code: /^src\/worker\/(payouts\/lightning\/(steps|driver|comparison)|lightning\/sent-comparison)\.ts$/,
    tests: [
      'test/lightning/payout-variants',
      'test/lightning/replaced-node',
      'test/lightning/payout-restored',
      'test/lightning/long-lists',
      'test/lightning/payout-attacks',
    ],
  },
  {
    code: /^src\/signer\/lightning\/(paying|payment-journal|failed-payments)\.ts$/,
    tests: ['test/lightning/payout-variants', 'test/signer/give-up'],
  },
  { code: /^src\/flow\/ledger-links\.ts$/, tests: ['test/flow/ledger-links'] },
  {
    code: /^src\/signer\/(rules|limits|previous-outputs|signature-index)\.ts$/,
    tests: [
      'test/signer/rules',
      'test/signer/replacements',
      'test/signer/amounts',
      'test/signer/attacks',
      'test/signer/reimbursements',
    ],
  },
  { code: /^src\/signer\/(evm-rules|request)\.ts$/, tests: ['test/signer/evm', 'test/signer/socket'] },
  {
    code: /^src\/signer\/(signature-journal|intent-trust)\.ts$/,
    tests: ['test/signer/signature-journal', 'test/signer/intent-key'],
  },
  {
    code: /^src\/(main\/wiring\/event-tail|http\/event-streams|flow\/events\/stream)\.ts$/,
    tests: ['test/http/event-streams'],
  },
  {
    code: /^src\/(worker\/deliveries\/(pace|slots|turns)|core\/webhooks)\.ts$/,
    tests: ['test/worker/deliveries/pace', 'test/worker/deliveries/turns'],
  },
  { code: /^src\/(worker\/deliveries\/.*|outside\/webhooks\/.*)\.ts$/, tests: ['test/worker/deliveries/'] },
  { code: /^src\/core\/events\.ts$/, tests: ['test/core/events', 'test/http/webhooks'] },
  {
    code: /^src\/(store\/deliveries\/(deliveries|webhooks|events)|flow\/events\/(webhooks|list-events|body))\.ts$/,
    tests: [
      'test/store/deliveries',
      'test/flow/events/',
      'test/http/webhooks',
      'test/http/unreadable-events',
      'test/worker/deliveries/deliveries',
      'test/worker/deliveries/results',
      'test/worker/deliveries/clock',
    ],
  },
  { code: /^src\/outside\/outbound\/.*\.ts$/, tests: ['test/outside/outbound'] },
];
const SWAPS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '+': '-',
  '-': '+',
};
const CALLS = { plus: 'minus', minus: 'plus', least: 'greatest', greatest: 'least', some: 'every', every: 'some' };
/** SQL stands in templates: what decides there is swapped by its words. */
const SQL = [
  [/ <> /, ' = '],
  [/ <= /, ' < '],
  [/ >= /, ' > '],
  [/ and not exists /, ' and exists '],
  [/ for (?:no key )?update\b/, ' '],
  [/ order by id\b/, ' '],
  [/ is not null\b/, ' is null'],
];
const RUN_WITHIN_MS = 120_000;
/** A part of the tests is ended when it takes this many times as long as without a mutant. */
const SLOWER = 4;

/** Every mutant of a text: where it begins and ends, and what stands there instead. */
function mutantsOf(path, text) {
  const found = [];
  const put = (start, end, to) => found.push({ start, end, to });
  const { program } = parseSync(path, text);
  const swap = ({ left, right, operator }) => {
    const at = text.indexOf(operator, left.end);
    if (SWAPS[operator] !== undefined && at >= 0 && at < right.start) put(at, at + operator.length, SWAPS[operator]);
  };
  new Visitor({
    BinaryExpression: swap,
    LogicalExpression: swap,
    UnaryExpression: ({ operator, start, argument }) => operator === '!' && put(start, argument.start, ''),
    IfStatement: ({ test }) => put(test.start, test.end, 'false'),
    ConditionalExpression: ({ test }) => put(test.start, test.end, 'true'),
    CallExpression: ({ callee }) => {
      const name = callee.type === 'MemberExpression' ? callee.property : callee;
      if (Object.hasOwn(CALLS, name.name ?? '')) put(name.start, name.end, CALLS[name.name]);
    },
    ExpressionStatement: ({ start, end, expression }) =>
      ['CallExpression', 'AssignmentExpression', 'AwaitExpression'].includes(expression.type) && put(start, end, ';'),
    Literal: ({ start, end, value, raw }) => {
      if (typeof value === 'boolean') put(start, end, String(!value));
      else if (typeof value === 'bigint') put(start, end, value === 0n ? '1n' : '0n');
      else if (typeof value === 'number' && !raw.startsWith('0x')) put(start, end, String(value + 1));
    },
    TemplateElement: ({ start, end }) => {
      for (const [words, to] of SQL) {
        for (const match of text.slice(start, end).matchAll(new RegExp(words, 'g')))
          put(start + match.index, start + match.index + match[0].length, to);
      }
    },
  }).visit(program);
  return found.sort((a, b) => a.start - b.start);
}

/** What a mutant is called, in the output and in test/mutants.json: its line as it stands, and as it would stand. */
function nameOf(text, { start, end, to }) {
  const from = text.lastIndexOf('\n', start - 1) + 1;
  const until = text.indexOf('\n', end);
  const trim = (line) => line.trim().replace(/\s+/g, ' ');
  return `${trim(text.slice(from, until))}  =>  ${trim(text.slice(from, start) + to + text.slice(end, until))}`;
}

/** Ends what hangs: a mutant may never come to an end, and no test's time limit can stop it. */
function endWorkers() {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, , , parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/\(.*\)/, '')
        .split(/\s+/);
      if (Number(parent) === process.pid && readlinkSync(`/proc/${pid}/exe`) === process.execPath)
        process.kill(Number(pid), 'SIGKILL');
    } catch {
      // it has ended by itself
    }
  }
}

const wanted = process.argv.slice(2);
const copy = mkdtempSync(join(tmpdir(), 'bursar-mutate-'));
for (const name of readdirSync(root).filter((one) => !['node_modules', '.git', 'data'].includes(one)))
  cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
process.chdir(copy);
const equivalent = JSON.parse(readFileSync(join(root, 'test/mutants.json'), 'utf8'));
const { createVitest } = await import(pathToFileURL(join(root, 'node_modules/vitest/dist/node.js')).href);
const vitest = await createVitest('test', { root: copy, watch: false, bail: 1, reporters: [{}], silent: true, retry: 0 });
await vitest.standalone?.();

const specs = new Map();
/** How long each part of the tests takes without a mutant. */
const usualMs = new Map();

/** Runs one part of the tests; whether it fails. What takes much longer than without a mutant is ended, and has failed. */
async function isRed(part) {
  if (!specs.has(part)) specs.set(part, await vitest.globTestSpecifications([join(copy, part)]));
  if (specs.get(part).length === 0) throw new Error(`there is no test ${part}`);
  const withinMs = Math.max(RUN_WITHIN_MS, SLOWER * (usualMs.get(part) ?? Number.POSITIVE_INFINITY));
  const watchdog = Number.isFinite(withinMs) ? setTimeout(endWorkers, withinMs) : null;
  try {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specs.get(part), true);
    return unhandledErrors.length + testModules.filter((module) => !module.ok()).length > 0;
  } finally {
    clearTimeout(watchdog);
  }
}

/** Part by part, in their order: the first that fails ends it. */
async function areRed(tests) {
  for (const part of tests) if (await isRed(part)) return true;
  return false;
}

/** @throws where one fails without a mutant: then no failure says anything */
async function timeUnchanged(tests, path) {
  for (const part of tests.filter((one) => !usualMs.has(one))) {
    const began = performance.now();
    if (await isRed(part)) throw new Error(`${part}, for ${path}, fails without a mutant`);
    usualMs.set(part, performance.now() - began);
  }
}

let killed = 0;
let excused = 0;
const survivors = [];
const files = readdirSync(join(copy, 'src'), { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name}`)
  .sort();
for (const path of files) {
  const area = AREAS.find(({ code }) => code.test(path));
  if (area === undefined || (wanted.length > 0 && !wanted.some((one) => path.includes(one)))) continue;
  const text = readFileSync(join(copy, path), 'utf8');
  const mutants = mutantsOf(path, text);
  console.log(`${path}: ${mutants.length} mutants`);
  await timeUnchanged(area.tests, path);
  for (const mutant of mutants) {
    const name = nameOf(text, mutant);
    if (equivalent[path]?.[name] !== undefined) {
      excused += 1;
      continue;
    }
    writeFileSync(join(copy, path), text.slice(0, mutant.start) + mutant.to + text.slice(mutant.end));
    vitest.invalidateFile(join(copy, path));
    if (await areRed(area.tests)) killed += 1;
    else {
      survivors.push(`${path}:${text.slice(0, mutant.start).split('\n').length}  ${name}`);
      console.log(`  SURVIVES ${survivors.at(-1)}`);
    }
  }
  writeFileSync(join(copy, path), text);
  vitest.invalidateFile(join(copy, path));
}
await vitest.close();
rmSync(copy, { recursive: true, force: true });
console.log(`${killed} killed, ${excused} equivalent, ${survivors.length} survive`);
process.exitCode = survivors.length === 0 ? 0 : 1;
