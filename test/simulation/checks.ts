// What must be true of a simulated history: while it runs, nothing is booked before our node showed it deep enough; at rest, the ledger is
// the chain, unit by unit, every history of statuses is a path of the table, and the audit is green. Findings are lines of text.
import { runAudit } from '../../src/flow/audit.ts';
import { outpointKey } from '../../src/sandbox/utxo/transaction.ts';
import { AT_REST, CODES, type Code, centsUp, deepEnough } from './behaviour.ts';
import { expectedEnd, type Life } from './endings.ts';
import { wrongEntries } from './entries.ts';
import type { Model, Purchase } from './model.ts';
import { wrongSteps } from './paths.ts';
import type { SimulatedService } from './simulated-service.ts';

export type Checked = {
  readonly service: SimulatedService;
  readonly model: Model;
  readonly wrong: string[];
  lastEntry: bigint;
};
/** Money that was here before this round. */
const buried = new WeakMap<SimulatedService, Map<Code, bigint>>();

type Line = {
  id: bigint;
  key: string;
  kind: string;
  of: string | null;
  account: string;
  currency: Code;
  amount: string;
  /** Of each payment in the entry its key, its currencies, and whether it was taken back. */
  parts: readonly (readonly [string, string, boolean])[] | null;
};
const LINES = `select e.id, e.key, e.kind, e.transaction_id as of, a.kind as account, p.currency, p.amount,
                      (select jsonb_agg(jsonb_build_array(d.key, d.amount::text, exists (select 1 from ledger.part r where r.reverses = d.key)))
                         from ledger.part d where d.entry_id = e.id) as parts
                 from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id`;

export async function newChecks(service: SimulatedService, model: Model): Promise<Checked> {
  const { rows } = await service.db.query<{ id: bigint | null }>({ text: 'select max(id) as id from ledger.entry' });
  return { service, model, wrong: [], lastEntry: rows[0]?.id ?? 0n };
}

const total = (amounts: Iterable<bigint>): bigint => {
  let sum = 0n;
  for (const amount of amounts) sum += amount;
  return sum;
};
const of = (lines: readonly Line[], ...accounts: string[]): bigint =>
  total(lines.filter((line) => accounts.includes(line.account)).map((line) => BigInt(line.amount)));

/** Looks at what was booked since the last look: every deposit had the depth that its value needs, every loss its time. */
export async function bookedTooEarly(checks: Checked): Promise<void> {
  const { service, model, wrong } = checks;
  wrong.push(...(await wrongEntries(service, model, checks.lastEntry)));
  const { rows } = await service.db.query<Line>({ text: `${LINES} where e.id > $1 order by e.id`, values: [checks.lastEntry] });
  const entries = Map.groupBy(rows, (line) => line.id);
  const creditOf = (lines: readonly Line[]): bigint => -of(lines, 'available', 'receivable', 'income');
  // rule 5 books all payments that have the R of the price together: what of them is above it goes to suspense then
  const byRule5 = new Set(
    [...entries.values()].flatMap((lines) => (lines[0]?.kind === 'deposit' && creditOf(lines) > 0n ? [lines[0].of] : [])),
  );
  for (const [id, lines] of entries) {
    checks.lastEntry = id;
    const { kind, of: owner, parts } = lines[0] as Line;
    if (kind !== 'deposit') continue;
    const credited = creditOf(lines);
    if (total((parts ?? []).map(([, amount]) => BigInt(amount))) !== of(lines, 'asset_chain'))
      wrong.push(`${id} has other currencies than its parts`);
    for (const [key, amount] of parts ?? []) {
      const [, code = '', txid = ''] = key.split(':');
      const sent = model.known(txid);
      const purchase = model.purchases.find((one) => one.id === owner);
      const currency = code.toUpperCase() as Code;
      if (sent === undefined || purchase === undefined) {
        wrong.push(`${key} is booked for ${owner}: nobody sent that`);
        continue;
      }
      const price = currency === purchase.currency ? purchase.price : model.lowest(currency);
      const own = centsUp(credited > 0n && parts?.length === 1 ? credited : BigInt(amount), price);
      const cents = credited > 0n && currency === purchase.currency ? purchase.cents : own;
      const isDeep = (worth: bigint) => deepEnough(currency, worth, sent.best, sent.coinbase);
      const asPrice = currency === purchase.currency && byRule5.has(owner) && isDeep(purchase.cents);
      // which payments of several got the credit the entry does not say
      const asOneOfSeveral = (parts?.length ?? 0) > 1 && isDeep(own);
      if (!asPrice && !asOneOfSeveral && !isDeep(cents)) {
        wrong.push(
          `${key} (${cents} cents) is booked for ${owner} when our node has shown ${JSON.stringify(sent.best)} of it at most`,
        );
      }
    }
  }
}

/** Looks at what is booked after everybody has looked: nothing of it is spent by somebody else on a chain that was read to its end. */
export async function bookedThoughSpent({ service, model, wrong }: Checked): Promise<void> {
  const { rows } = await service.db.query<{ txid: string }>({
    text: `select distinct split_part(d.key, ':', 3) as txid from ledger.entry e join ledger.part d on d.entry_id = e.id
            where e.transaction_id = any ($1) and e.kind = 'deposit' and not exists (select 1 from ledger.part r where r.reverses = d.key)`,
    values: [model.purchases.map((one) => one.id)],
  });
  for (const { txid } of rows) {
    const sent = model.known(txid);
    if (sent === undefined || model.caughtUpAt(sent.currency) < service.now() || model.placeOf(sent).where !== 'dead') continue;
    const { spenders, alive, denied } = service.node(sent.currency).state;
    const rival = sent.tx.inputs.map((input) => spenders.get(outpointKey(input))).find((one) => one !== undefined);
    // an output that the rival has too (same currencies, same script, same amount) is that one's by now
    const shared = sent.outputs.some(({ purchase, amount }) =>
      alive
        .get(rival ?? '')
        ?.transaction.outputs.some((output) => output.script.equals(purchase.script) && output.minor === amount),
    );
    // a rival that the node does not show is nothing that anybody could have seen
    if (rival !== undefined && !denied.has(rival) && !shared)
      wrong.push(`${sent.currency} ${txid} is booked, and ${rival} has spent its currencies`);
  }
}

/** Compares everything with the model once nothing happens any more. */
export async function wrongAtRest(checks: Checked): Promise<void> {
  const { service, model, wrong } = checks;
  const ids = model.purchases.map((one) => one.id);
  const { rows: lines } = await service.db.query<Line>({ text: `${LINES} where e.transaction_id = any ($1)`, values: [ids] });
  const lives = await readLives(service, ids);
  for (const purchase of model.purchases) {
    const life = lives.get(purchase.id) as Life;
    const own = lines.filter((line) => line.of === purchase.id);
    wrong.push(...wrongMoney(model, purchase, own).map((what) => `${purchase.id} (${life.path.join(' > ')}): ${what}`));
    const words = [
      ...wrongSteps(model, purchase, life),
      ...wrongReceived(model, purchase, life),
      ...expectedEnd(model, purchase, life, {
        credited: -of(own, 'available', 'receivable', 'income'),
        creditedRight: -of(inCode(own, purchase.currency), 'available', 'receivable', 'income'),
      }),
    ];
    const [given, fee] = [-of(own, 'available', 'receivable', 'income'), -of(own, 'income')];
    const off = fee * 10_000n - given * service.feeBps;
    // each booking rounds down
    if (life.status === 'settled' && (off > 0n || off < -20n * 10_000n)) words.push(`the fee is ${fee} of ${given}`);
    wrong.push(...words.map((what) => `${purchase.id} (${life.path.join(' > ')}): ${what}`));
  }
  wrong.push(...(await wrongTotals(checks)), ...(await wrongBalances(checks, lines)), ...(await restless(checks)));
  const report = await runAudit(service.ctx);
  // what the moves put aside as a payout would is held without a payout
  const answers = report.answers.filter(({ id }) => id !== 'INV-5');
  wrong.push(...answers.flatMap((answer) => answer.findings.map((finding) => `${answer.id} is red: ${finding}`)));
}

const inCode = (lines: readonly Line[], currency: Code): Line[] => lines.filter((line) => line.currency === currency);

/** Outpoint by outpoint: what lies at the script is booked exactly once, and nothing else is. */
function wrongMoney(model: Model, purchase: Purchase, lines: readonly Line[]): string[] {
  return CODES.flatMap((currency) => {
    const here = inCode(lines, currency);
    const booked = here
      .filter((line) => line.kind === 'deposit' && line.account === 'asset_chain')
      .flatMap((line) => line.parts ?? [])
      .filter(([, , taken]) => !taken)
      .map(([, amount]) => BigInt(amount))
      .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const truth = model.outputsAt(purchase, currency);
    const found: string[] = [];
    if (String(booked) !== String(truth)) found.push(`of ${currency} [${truth}] lies on the chain, [${booked}] is booked`);
    if (of(here, 'asset_chain') !== total(truth))
      found.push(`the entries add up to ${of(here, 'asset_chain')} ${currency}, not ${total(truth)}`);
    if (-of(here, 'suspense') < 0n || -of(here, 'suspense') > total(truth))
      found.push(`${-of(here, 'suspense')} ${currency} in suspense`);
    return found;
  });
}

function wrongReceived(model: Model, purchase: Purchase, life: Life): string[] {
  const truth = total(model.outputsAt(purchase, purchase.currency));
  const found = life.received === truth ? [] : [`crypto_received is ${life.received}, on the chain lies ${truth}`];
  if (!AT_REST.has(life.status)) found.push(`it still is ${life.status}`);
  return found;
}

/** Σ of what the service holds is Σ of what lies on the chain, this round's and that of the rounds before. */
async function wrongTotals({ service, model }: Checked): Promise<string[]> {
  const { rows } = await service.db.query<{ currency: Code; amount: string }>({
    text: `select currency, amount from ledger.account_balance where kind = 'asset_chain'`,
  });
  const before = buried.get(service) ?? new Map<Code, bigint>();
  buried.set(service, before);
  return CODES.flatMap((currency) => {
    const here = total(model.purchases.flatMap((purchase) => model.outputsAt(purchase, currency)));
    const truth = (before.get(currency) ?? 0n) + here;
    before.set(currency, truth);
    const ledger = BigInt(rows.find((row) => row.currency === currency)?.amount ?? 0);
    return ledger === truth ? [] : [`the ledger holds ${ledger} ${currency}, the chain ${truth}`];
  });
}

/** What a merchant has and owes is what the purchases gave, less the fee. */
async function wrongBalances({ service, model }: Checked, lines: readonly Line[]): Promise<string[]> {
  const merchants = [...new Set(model.purchases.map((one) => one.merchant.id))];
  const { rows } = await service.db.query<{ merchant: bigint; currency: Code; amount: string }>({
    text: `select merchant_id as merchant, currency, sum(case kind when 'receivable' then -amount else amount end) as amount
             from ledger.account_balance where merchant_id = any ($1) and kind in ('available', 'held', 'receivable') group by 1, 2`,
    values: [merchants],
  });
  return merchants.flatMap((merchant) =>
    CODES.flatMap((currency) => {
      const own = new Set(model.purchases.filter((one) => one.merchant.id === merchant).map((one) => one.id));
      const given = inCode(lines, currency).filter((line) => own.has(line.of ?? ''));
      const explained = total(model.purchases.filter((one) => own.has(one.id)).flatMap((one) => model.outputsAt(one, currency)));
      const elsewhere = -of(given, 'suspense', 'income');
      const has = BigInt(rows.find((row) => row.merchant === merchant && row.currency === currency)?.amount ?? 0);
      return has === explained - elsewhere
        ? []
        : [`merchant ${merchant} has ${has} ${currency}: of ${explained} on the chain ${elsewhere} are in suspense or fees`];
    }),
  );
}

/** Judged once more, nobody has anything to say. */
async function restless(checks: Checked): Promise<string[]> {
  const { service, lastEntry } = checks;
  await service.judge();
  await bookedTooEarly(checks);
  return checks.lastEntry === lastEntry ? [] : ['judged again at rest, something was booked'];
}

async function readLives(service: SimulatedService, ids: readonly string[]): Promise<ReadonlyMap<string, Life>> {
  const { rows } = await service.db.query<{ id: string; status: string; received: string }>({
    text: 'select id, status, crypto_received as received from transactions where id = any ($1)',
    values: [ids],
  });
  const { rows: events } = await service.db.query<{ id: string; type: string; status: string; at: Date; rule: number | null }>({
    text: `select object_id as id, type, status, at, (data->>'rule')::int as rule from events where object_id = any ($1) order by sequence`,
    values: [ids],
  });
  return new Map(
    rows.map(({ id, status, received }) => {
      const own = events.filter((event) => event.id === id);
      const steps = own
        .filter((event) => event.type === `transaction.${event.status}`)
        .map((event) => ({ status: event.status, rule: event.rule, at: event.at.getTime() }));
      return [id, { status, received: BigInt(received), steps, path: steps.map((step) => step.status) }];
    }),
  );
}

/** What the service recorded of the payments of the purchases that findings name, for the story of a failing seed. */
export async function evidence({ service, wrong }: Checked): Promise<string[]> {
  const ids = [...new Set(wrong.flatMap((what) => what.match(/txn_\w+/g) ?? []))];
  const { rows } = await service.db.query<{ line: string }>({
    text: `select t.id || ' ' || t.status || ' ' || t.merchant_decision || ' ' || coalesce(t.review_cause, '-') || ': ' || p.currency || ' ' || p.txid || ':' || p.vout || ' '
                  || p.amount || ' ' || p.state || ' seen ' || p.seen_at || coalesce(' gone ' || p.gone_since, '') || coalesce(' for ' || p.conflict_txid, '')
                  || ' noticed ' || coalesce(p.noticed_at::text, '-') || ' present ' || p.present || ' credited ' || p.credited || ' suspense ' || p.in_suspense
                  || ' key ' || coalesce(p.part_key, '-') as line
             from transactions t left join payments p on p.transaction_id = t.id where t.id = any ($1) order by t.id, p.id`,
    values: [ids],
  });
  const { rows: others } = await service.db.query<{ line: string }>({
    text: `select object_id || ' ' || at || ' ' || type || ' ' || coalesce(data::text, '') as line from events where object_id = any ($1) order by object_id, sequence`,
    values: [ids],
  });
  return [...rows, ...others].map((row) => row.line);
}
