// An Ethereum node with a chain of full blocks, as fast as a local one can be, which counts the calls that it answers. Arguments: how many
// payments a block brings, and among how many addresses they go round. A message sets its tip; each is answered with what was asked meanwhile.
import { createServer } from 'node:http';
import { answersFor, blockTexts, FIRST_TIP, hashOf, payee } from './evm-block.ts';

type Call = { readonly id: number; readonly method: string; readonly params?: readonly unknown[] };

const [paid, open] = process.argv.slice(2).map(Number) as [number, number];
const texts = blockTexts(paid);
let tip = FIRST_TIP;
let counts: Record<string, number> = {};

const answersAt = (height: number) =>
  answersFor(
    texts,
    height,
    Array.from({ length: paid }, (_, n) => payee((height * paid + n) % open)),
  );

function header(tag: unknown): string {
  const height =
    typeof tag === 'string' && tag.startsWith('0x') ? Number(tag) : tag === 'finalized' ? Math.max(0, tip - 64) : tip;
  if (height > tip) return 'null';
  return JSON.stringify({
    number: `0x${height.toString(16)}`,
    hash: hashOf(height),
    parentHash: hashOf(Math.max(0, height - 1)),
    timestamp: '0x6a000000',
    baseFeePerGas: '0x2540be400',
    transactions: [],
  });
}

const SMALL: Readonly<Record<string, string>> = {
  eth_chainId: '"0x7a69"',
  eth_syncing: 'false',
  net_peerCount: '"0x8"',
  txpool_status: '{"pending":"0x0","queued":"0x0"}',
  txpool_content: '{"pending":{},"queued":{}}',
  eth_getCode: '"0xfe"',
};
const word = (hex: string): string => `"0x${hex.padStart(64, '0')}"`;
/** What calls of the token's contract answer: 6 for decimals(), nothing for all others (deprecated(), its owner). */
const TOKEN_CALLS: Readonly<Record<string, string>> = { '0x313ce567': word('6') };

function result({ method, params = [] }: Call): string | null {
  counts[method] = (counts[method] ?? 0) + 1;
  const height = Number(params[0]);
  if (method === 'eth_getBlockByNumber') return header(params[0]);
  if (method === 'eth_getBlockByHash') return answersAt(height).block();
  if (method === 'eth_getBlockReceipts') return answersAt(height).receipts();
  if (method === 'debug_traceBlockByHash') return answersAt(height).traces();
  if (method === 'eth_call') return TOKEN_CALLS[(params[0] as { data: string }).data] ?? word('0');
  return SMALL[method] ?? null;
}

function reply(call: Call): string {
  const text = result(call);
  const head = `{"jsonrpc":"2.0","id":${call.id},`;
  return text === null ? `${head}"error":{"code":-32601,"message":"method not found"}}` : `${head}"result":${text}}`;
}

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('latin1').on('data', (part) => {
    text += part;
  });
  request.on('end', () => {
    const asked = JSON.parse(text) as Call | Call[];
    const body = Array.isArray(asked) ? `[${asked.map(reply).join()}]` : reply(asked);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
  });
});
process.on('message', (height) => {
  tip = height as number;
  process.send?.(counts);
  counts = {};
});
process.once('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }));
