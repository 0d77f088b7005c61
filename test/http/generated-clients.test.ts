// Clients are generated from the served document, and nothing of it is lost: openapi-python-client's calls the API, the types of
// openapi-typescript accept what is right and refuse what is wrong.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MERCHANT_API } from '../../src/contract/merchant-api.ts';
import { openApiDocument } from '../../src/contract/openapi.ts';
import { SANDBOX_API } from '../../src/contract/sandbox-api.ts';
import { SYSTEM_PATHS } from '../../src/contract/system-api.ts';
import { STREAM_API } from '../../src/contract/webhook-api.ts';
import { documentTool, run } from '../support/document-tools.ts';
import { type ApiServer, makeApi, PASSWORD } from './api-server.ts';

const TIMEOUT = 120_000;
const TSC = resolve(import.meta.dirname, '../../node_modules/.bin/tsc');
const OPERATIONS = [MERCHANT_API, STREAM_API, SANDBOX_API, SYSTEM_PATHS].reduce(
  (sum, table) => sum + Object.keys(table).length,
  0,
);

let api: ApiServer;
const folder = mkdtempSync(join(tmpdir(), 'bursar-clients-'));
const document = join(folder, 'openapi.json');
beforeAll(async () => {
  api = await makeApi();
  // the sandbox's has all that the others have
  writeFileSync(document, JSON.stringify(openApiDocument({ url: api.base, version: '0.0.0', sandbox: true })));
});
afterAll(async () => {
  await api.end();
  rmSync(folder, { recursive: true, force: true });
});

const PYTHON = `
import sys
from client import AuthenticatedClient, Client
from client.api.sign_in import auth
from client.api.transactions import check_transaction, create_transaction, list_transactions
from client.models import (AuthRequest, CheckTransactionRequest, CreateTransactionRequest, Error, ErrorCode, ListTransactionsRequest,
                           TransactionStatus)
from client.models.create_transaction_request_crypto_selected_type_0 import CreateTransactionRequestCryptoSelectedType0 as Code

base, password = sys.argv[1:]
pair = auth.sync(client=Client(base_url=base), body=AuthRequest(username="shop", password=password))
client = AuthenticatedClient(base_url=base, token=pair.access_token)
created = create_transaction.sync(client=client, body=CreateTransactionRequest(amount="25.00", crypto_selected=Code.BTC),
                                  idempotency_key="order-1042")
again = create_transaction.sync(client=client, body=CreateTransactionRequest(amount="25.00", crypto_selected=Code.BTC),
                                idempotency_key="order-1042")
assert again.transaction_id == created.transaction_id
checked = check_transaction.sync(client=client, body=CheckTransactionRequest(transaction_id=created.transaction_id))
assert checked.status is TransactionStatus.STARTED and checked.confirmed_at is None and checked.crypto_amount == created.crypto_amount
assert [one.transaction_id for one in list_transactions.sync(client=client, body=ListTransactionsRequest()).data] == [created.transaction_id]
refused = create_transaction.sync(client=client, body=CreateTransactionRequest(amount="25,00", crypto_selected="btc"))
assert isinstance(refused, Error) and refused.error is ErrorCode.INVALID_AMOUNT and refused.param == "amount"
print(created.transaction_id)
`;

test('openapi-python-client loses no operation, and what it makes can be called', { timeout: TIMEOUT }, async ({ skip }) => {
  const tool = await documentTool('schemathesis');
  if (tool.path === null) {
    skip(tool.reason);
    return;
  }
  const bin = dirname(tool.path);
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const output = ['--output-path', join(folder, 'client'), '--meta', 'none', '--fail-on-warning'];
  const made = await run(join(bin, 'openapi-python-client'), ['generate', '--path', document, ...output], { env, cwd: folder });
  expect(made.code, made.output).toBe(0);
  const modules = readdirSync(join(folder, 'client/api'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\/(?!__init__)\w+\.py$/.test(name),
  );
  expect(modules).toHaveLength(OPERATIONS);

  const compiled = await run(join(bin, 'python'), ['-m', 'compileall', '-q', 'client'], { env, cwd: folder });
  expect(compiled).toEqual({ code: 0, output: '' });
  const called = await run(join(bin, 'python'), ['-c', PYTHON, api.base, PASSWORD], { env, cwd: folder });
  expect(called.output).toMatch(/^txn_\w+\n$/);
});

const TYPESCRIPT = `
import type { paths } from './api.d.ts';
type Body<P extends keyof paths> = paths[P] extends { post: { requestBody: { content: { 'application/json': infer B } } } } ? B : never;
type Answer<P extends keyof paths> =
  paths[P] extends { post: { responses: { 200: { content: { 'application/json': infer A } } } } } ? A : never;
const body: Body<'/create_transaction'> = { amount: '25.00', crypto_selected: 'BTC', label: null, expand: ['payments'] };
const answer = {} as Answer<'/check_transaction'>;
const status: 'started' | 'pending' | 'confirmed' | 'succeeded' | 'timedout' | 'cancelled' | 'declined' | 'review' | 'reimbursed' |
  'settled' | 'timedout_checked' = answer.status;
const confirmedAt: string | null = answer.confirmed_at;
const balance: string = ({} as Answer<'/get_account_info'>).balances.BTC;
console.log(body, status, confirmedAt, balance);
`;
/** Each is one error. */
const WRONG = `
const number: Body<'/create_transaction'> = { amount: 25, crypto_selected: 'BTC' };
const missing: Body<'/create_transaction'> = { amount: '25.00' };
const unknown: Body<'/check_transaction'> = { transaction_id: 'txn_1', expand: ['everything'] };
const nothing = answer.confirmedAt;
console.log(number, missing, unknown, nothing);
`;

test('openapi-typescript makes types that say what the API takes', { timeout: TIMEOUT }, async ({ skip }) => {
  const tool = await documentTool('openapi-typescript');
  if (tool.path === null) {
    skip(tool.reason);
    return;
  }
  const made = await run(tool.path, [document, '--output', join(folder, 'api.d.ts')], { cwd: folder });
  expect(made.code, made.output).toBe(0);
  const operations = readFileSync(join(folder, 'api.d.ts'), 'utf8').match(/^ {8}(get|post): operations\[/gm);
  expect(operations).toHaveLength(OPERATIONS);

  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'right.ts'), TYPESCRIPT);
  writeFileSync(join(folder, 'wrong.ts'), TYPESCRIPT + WRONG);
  const flags = [
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--allowImportingTsExtensions',
    '--types',
    '',
  ];
  expect(await run(TSC, [...flags, 'right.ts'], { cwd: folder })).toEqual({ code: 0, output: '' });
  const refused = await run(TSC, [...flags, 'wrong.ts'], { cwd: folder });
  expect(refused.output.match(/error TS\d+/g), refused.output).toHaveLength(4);
});
