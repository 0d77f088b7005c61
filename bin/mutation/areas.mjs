// What `npm run mutate` breaks, and who must notice.

const JUDGE = 'test/core/judge/';
/** Random histories, and what tens of thousands of payments cost: as long as all other tests of the judge together. */
const LONG = ['credit-property', 'portions', 'cost'].map((name) => JUDGE + name);

/**
 * Which tests answer for which code, in parts that are run one after the other: the cheapest first, since the first failure ends a run.
 * `slow` ones are run last, although `tests` name their folder, and not at all with `--quick`. Those of `isPure` need no PostgreSQL.
 */
export const AREAS = [
  {
    code: /^src\/core\/(judge\/.*|confirmations)\.ts$/,
    isPure: true,
    tests: [JUDGE, 'test/core/confirmations'],
    slow: LONG,
  },
  { code: /^src\/core\/rate-median\.ts$/, isPure: true, tests: ['test/rates/median'] },
  {
    code: /^src\/core\/(money|rate)\.ts$/,
    isPure: true,
    tests: ['test/core/money', 'test/core/rate', 'test/core/payouts', 'test/rates/median', JUDGE],
    slow: LONG,
  },
  { code: /^src\/flow\/transactions\/judging\.ts$/, isPure: true, tests: ['test/flow/transactions/judging'] },
  {
    code: /^src\/flow\/transactions\/(decide|facts)\.ts$/,
    tests: ['test/flow/transactions/decide.test', 'test/store/cases'],
    // not the folder, which names the quick ones too
    slow: [
      ...['life', 'judge-', 'decide-large', 'at-once', 'outage'].map((name) => `test/flow/transactions/${name}`),
      'test/simulation/credit',
    ],
  },
  {
    code: /^src\/flow\/transactions\/decision-lines\.ts$/,
    tests: ['test/flow/transactions/decision-lines', 'test/flow/transactions/decide-large'],
  },
  {
    code: /^src\/store\/ledger\/ledger\.ts$/,
    tests: ['test/store/ledger', 'test/store/roll-up'],
    slow: ['test/flow/transactions/judge-together', 'test/flow/audit'],
  },
  {
    code: /^src\/store\/chain\/sightings\.ts$/,
    tests: [
      'test/store/inner-ether',
      'test/store/mempool-comparison',
      'test/store/due-marks',
      'test/store/payment-rows',
      'test/store/chain-facts',
      'test/store/gone-clock',
      'test/nodes/early-payments',
      'test/flow/payouts/agreed-blocks',
      'test/flow/payouts/descendants',
    ],
    slow: [
      ...['unprotected-scripts', 'evm-second-word.test', 'races', 'bitcoind-cases'].map((name) => `test/nodes/${name}`),
      'test/flow/transactions/life',
      'test/store/many-outputs',
    ],
  },
  {
    code: /^src\/store\/chain\/(payment-facts|payment-writes|sighting-plan)\.ts$/,
    tests: ['test/store/payment-rows', 'test/store/chain-facts'],
    slow: ['test/store/many-outputs', 'test/nodes/races', 'test/nodes/bitcoind-cases'],
  },
  {
    code: /^src\/core\/payouts\/(gas|sweeps)\.ts$/,
    tests: ['test/core/gas', 'test/core/kept-by-token', 'test/signer/evm', 'test/nodes/sweeps'],
  },
  {
    code: /^src\/outside\/evm\/(by-balance|balances)\.ts$/,
    tests: ['test/nodes/evm-unexplained', 'test/nodes/evm-balances', 'test/nodes/evm-by-balance'],
  },
  {
    code: /^src\/(outside\/evm\/(second-word|group)|worker\/chain\/unconfirmed-blocks|store\/chain\/unconfirmed-blocks)\.ts$/,
    tests: [
      'test/nodes/evm-second-word-answers',
      'test/nodes/evm-words-kept',
      'test/nodes/evm-three-nodes',
      'test/nodes/evm-hidden-payments',
      'test/nodes/evm-second-word',
    ],
  },
  { code: /^src\/outside\/evm\/gas-fees\.ts$/, tests: ['test/nodes/evm-one-word-gas'] },
  { code: /^src\/outside\/utxo\/node\/(middle-word|fee-rate)\.ts$/, tests: ['test/nodes/fee-rate-words'] },
  {
    code: /^src\/worker\/payouts\/evm\/used-nonce\.ts$/,
    tests: ['test/nodes/evm-one-word-used', 'test/nodes/evm-denied-nonces'],
  },
  { code: /^src\/outside\/evm\/patience\.ts$/, tests: ['test/nodes/evm-patience'] },
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
  {
    code: /^src\/(worker\/payouts\/evm|flow\/sweeps|store\/sweeps)\/forgotten-moves\.ts$/,
    tests: ['test/nodes/evm-forgotten-moves'],
  },
  { code: /^src\/outside\/evm\/held\.ts$/, tests: ['test/nodes/evm-held-by-word'] },
  {
    code: /^src\/(worker\/payouts\/evm|flow\/sweeps)\/write-off\.ts$/,
    tests: [
      'test/nodes/evm-destroyed.test',
      'test/nodes/evm-destroyed-moving',
      'test/nodes/evm-destroyed-refused',
      'test/nodes/evm-destroyed-unbooked',
      'test/nodes/evm-unclear-ended',
    ],
  },
  {
    code: /^src\/flow\/sweeps\/sent-(elsewhere|beside)\.ts$/,
    tests: ['test/nodes/evm-sent-elsewhere', 'test/nodes/evm-sent-between'],
  },
  {
    code: /^src\/(flow|store)\/sweeps\/(?!forgotten-moves|write-off|sent-).*\.ts$/,
    tests: ['test/nodes/sweeps', 'test/nodes/evm-gas-for-usdt', 'test/nodes/evm-fee-on-sweeps'],
  },
  {
    code: /^src\/flow\/evm\/.*\.ts$/,
    tests: [
      'test/nodes/evm-payouts',
      'test/nodes/evm-reverts',
      'test/nodes/evm-nonces',
      'test/nodes/evm-recovered',
      'test/nodes/evm-reimbursement-paid-after-all',
      'test/nodes/evm-lying-receipts',
      'test/nodes/evm-one-word-paid',
      'test/nodes/evm-fee-on-payouts',
      'test/nodes/evm-fee-on-failed',
      'test/nodes/evm-unclear-ended',
    ],
  },
  {
    code: /^src\/core\/payouts\/(held-reason|coin-selection|outgoing-fees|states|validation|units|intent|signing-refusals)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/core/coin-selection',
      'test/flow/payouts/variants',
      'test/flow/payouts/holds',
      'test/flow/payouts/batches.test',
      'test/flow/payouts/queue',
    ],
  },
  {
    code: /^src\/core\/payouts\/(postings|evm-postings|booked-steps)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/flow/payouts/booked-amounts',
      'test/flow/payouts/audit',
      'test/flow/payouts/batches.test',
      'test/flow/payouts/restored',
      'test/flow/payouts/reimbursements.test',
      'test/flow/payouts/displaced-again',
      'test/flow/payouts/reimbursements-paid',
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
      'test/flow/ach/executed',
      'test/flow/ach/payouts',
      'test/flow/ach/stolen-database',
      'test/flow/ach/forgotten',
      'test/flow/ach/lost-entries',
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
    code: /^src\/flow\/payouts\/(batches|unpayable|batch-progress|progress|sufficient-balance|signed-payouts)\.ts$/,
    tests: [
      'test/core/payouts',
      'test/flow/payouts/variants',
      'test/flow/payouts/found-inputs',
      'test/flow/payouts/given-up',
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
    code: /^src\/(flow\/payouts\/give-up|store\/payouts\/given-up)\.ts$/,
    tests: ['test/flow/payouts/given-up'],
  },
  {
    code: /^src\/store\/(payouts|ach)\/.*\.ts$/,
    tests: ['test/flow/payouts/', 'test/flow/ach/', 'test/store/payout-plans'],
  },
  {
    code: /^src\/flow\/lightning\/(payout-progress|payout-request|restored-.*|internal-payouts)\.ts$/,
    tests: [
      'test/lightning/payout-variants',
      'test/lightning/commit-guards',
      'test/lightning/payout-guards',
      'test/lightning/false-preimage',
      'test/lightning/other-amount',
      'test/lightning/payout-attacks',
      'test/lightning/payout-restored',
    ],
  },
  {
    code: /^src\/flow\/lightning\/unasked-payments\.ts$/,
    tests: [
      'test/lightning/operators-own',
      'test/lightning/operators-under-way',
      'test/lightning/missing-booked',
      'test/lightning/unknown-invoices',
      'test/lightning/restored-node',
      'test/lightning/unpayable',
    ],
  },
  {
    code: /^src\/store\/lightning\/(payment-rows|payment-hashes|under-way|sent-payments|paying-node|payer-facts|outgoing)\.ts$/,
    tests: [
      'test/lightning/payout-variants',
      'test/lightning/payout-restored',
      'test/lightning/replaced-node',
      'test/lightning/payout-attacks',
      'test/lightning/payout-resolved',
      'test/lightning/htlc-slots',
      'test/lightning/missing-booked',
      'test/lightning/operators-under-way',
    ],
  },
  {
    code: /^src\/(core\/lightning\/postings|(worker|store)\/lightning\/(holdings|operators-part|unknown-invoices)|outside\/lightning\/lnd-statement)\.ts$/,
    tests: [
      'test/lightning/holdings',
      'test/lightning/unknown-invoices',
      'test/lightning/operators-own',
      'test/lightning/missing-booked',
      'test/lightning/long-lists',
      'test/lightning/forgotten-channels',
    ],
  },
  { code: /^src\/outside\/lightning\/left-out\.ts$/, tests: ['test/lightning/many-parts'] },
  {
    code: /^src\/store\/lightning\/(asked-before|channels)\.ts$/,
    tests: [
      'test/lightning/put-back-together',
      'test/lightning/other-side-away',
      'test/lightning/copied-under-way',
      'test/lightning/forgotten-channels',
      'test/lightning/payout-restored',
    ],
  },
  { code: /^src\/outside\/lightning\/bolt11\.ts$/, tests: ['test/lightning/bolt11', 'test/keys/destinations'] },
  { code: /^src\/flow\/lightning\/lnurl\.ts$/, tests: ['test/outside/outbound', 'test/lightning/unpayable'] },
  {
    code: /^src\/(outside\/lightning\/(permissions|macaroon-caveats)|core\/lightning\/macaroon)\.ts$/,
    tests: ['test/lightning/permissions', 'test/cli/config-check', 'test/lightning/payout-variants'],
  },
  {
    code: /^src\/(outside\/lightning\/(lnd|lnd-answers|lnd-connections|lnd-payer|lnd-rest)|core\/lightning\/payment-failures)\.ts$/,
    tests: [
      'test/lightning/connections',
      'test/lightning/long-lists',
      'test/lightning/many-parts',
      'test/lightning/permissions',
      'test/lightning/payments',
      'test/lightning/payout-variants',
      'test/lightning/hanging',
    ],
  },
  { code: /^src\/core\/lightning\/(under-way|payout-fees)\.ts$/, tests: ['test/core/lightning-fees'] },
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
    code: /^src\/worker\/(payouts\/lightning\/(steps|driver|comparison|hanging)|lightning\/sent-comparison)\.ts$/,
    tests: [
      'test/lightning/payout-variants',
      'test/lightning/payout-guards',
      'test/lightning/other-amount',
      'test/lightning/replaced-node',
      'test/lightning/payout-restored',
      'test/lightning/long-lists',
      'test/lightning/payout-attacks',
      'test/lightning/missing-booked',
      'test/lightning/closing',
      'test/lightning/forgotten-requests',
      'test/lightning/years-long-invoices',
      'test/lightning/put-back-together',
      'test/lightning/other-side-away',
      'test/lightning/copied-under-way',
      'test/lightning/forgotten-channels',
    ],
  },
  {
    code: /^src\/signer\/lightning\/(paying|payment-journal|failed-payments)\.ts$/,
    tests: [
      'test/lightning/signer-guards',
      'test/lightning/payout-variants',
      'test/lightning/reimbursed-twice',
      'test/lightning/limits-together',
      'test/lightning/payout-attacks',
    ],
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
    code: /^src\/(worker\/deliveries\/(pace|slots|turns|beginning)|core\/webhooks)\.ts$/,
    tests: [
      'test/worker/deliveries/beginning',
      'test/worker/deliveries/pace',
      'test/worker/deliveries/slots',
      'test/worker/deliveries/turns',
      'test/cli/webhooks',
    ],
  },
  {
    code: /^src\/(worker\/deliveries\/.*|outside\/webhooks\/.*)\.ts$/,
    tests: ['deliveries', 'results', 'next-look', 'forgotten', 'clock', 'wake', 'fairness'].map(
      (name) => `test/worker/deliveries/${name}.test`,
    ),
  },
  { code: /^src\/store\/postgres\/database-home\.ts$/, tests: ['test/store/database-home'] },
  { code: /^src\/core\/events\.ts$/, tests: ['test/core/events', 'test/http/webhooks'] },
  {
    code: /^src\/(store\/deliveries\/failing|flow\/events\/(redelivery|webhook-problems)|main\/cli\/webhooks)\.ts$/,
    tests: ['test/flow/events/redelivery', 'test/cli/webhooks', 'test/http/health'],
  },
  {
    code: /^src\/store\/deliveries\/event-tail\.ts$/,
    tests: ['test/store/event-tail', 'test/http/event-streams', 'test/http/health', 'test/flow/events/'],
  },
  {
    code: /^src\/(store\/deliveries\/events|flow\/events\/(body|list-events))\.ts$/,
    tests: [
      'test/store/event-rows',
      'test/flow/events/list-events',
      'test/http/webhooks',
      'test/http/unreadable-events',
      'test/worker/deliveries/results',
    ],
  },
  {
    code: /^src\/(store\/deliveries|flow\/events)\/webhooks\.ts$/,
    tests: [
      'test/flow/events/secrets',
      'test/flow/events/written-before',
      'test/http/webhooks',
      'test/worker/deliveries/clock',
      'test/store/deliveries',
    ],
  },
  {
    code: /^src\/store\/deliveries\/deliveries\.ts$/,
    tests: [
      'test/store/deliveries',
      'test/http/webhooks',
      'test/worker/deliveries/deliveries',
      'test/worker/deliveries/results',
      'test/worker/deliveries/clock',
    ],
  },
  { code: /^src\/outside\/outbound\/merchant-costs\.ts$/, tests: ['test/outside/merchant-costs'] },
  { code: /^src\/outside\/outbound\/turns\.ts$/, tests: ['test/outside/turns', 'test/outside/outbound-turns'] },
  { code: /^src\/outside\/outbound\/calls-in-turn\.ts$/, tests: ['test/outside/outbound-turns'] },
  { code: /^src\/outside\/outbound\/dear-merchants\.ts$/, tests: ['test/outside/dear-merchants'] },
  {
    code: /^src\/outside\/outbound\/(thread|thread-answers|thread-work)\.ts$/,
    tests: ['test/outside/thread', 'test/outside/outbound-thread', 'test/outside/outbound-merchants'],
  },
  {
    code: /^src\/outside\/outbound\/handshake-costs\.ts$/,
    tests: ['test/outside/outbound-handshake-costs', 'test/outside/outbound-taken', 'test/outside/outbound-turns'],
  },
  {
    code: /^src\/outside\/outbound\/(certificates|der|handshake-sight|handshake-bytes|tls-records)\.ts$/,
    tests: ['test/outside/tls-records', 'test/outside/outbound-certificates', 'test/outside/outbound-handshakes'],
    slow: ['test/outside/outbound-turns', 'test/outside/outbound-faults', 'test/outside/outbound-tls'],
  },
  { code: /^src\/outside\/outbound\/.*\.ts$/, tests: ['test/outside/outbound', 'test/outside/tls-records'] },
];
