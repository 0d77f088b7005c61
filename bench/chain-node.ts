// A node that has a whole chain of full blocks ready, as fast as a local node can be: each block has the same 2,200 transactions under its
// own header; or one whose mempool is full at once while a block comes every half second. Implements as much of bitcoind's JSON-RPC as the
// watcher uses. Arguments: the number of blocks, and of transactions in the mempool.
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { CURRENCIES } from '../src/core/currency.ts';
import { makeBlock, payment, witnessScript } from './block.ts';

type Call = { readonly id: number; readonly method: string; readonly params?: readonly unknown[] };

const hash256 = (bytes: Buffer): Buffer => createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest();
const display = (hash: Buffer): string => Buffer.from(hash).reverse().toString('hex');

const BLOCK_EVERY_MS = 500;
const [blocks, waiting] = process.argv.slice(2).map(Number) as [number, number];
const sample = Buffer.from(makeBlock([Buffer.from('51', 'hex')]).hex, 'hex');
const body = Buffer.from(sample.subarray(80).toString('hex'));
const genesis = CURRENCIES.BTC.utxo?.genesis.regtest ?? '';
const hashes = [genesis];
const headers = new Map<string, string>();
let previous: Buffer = Buffer.from(genesis, 'hex').reverse();
for (let height = 1; height <= blocks; height++) {
  const header = Buffer.concat([sample.subarray(0, 4), previous, sample.subarray(36, 80)]);
  previous = hash256(header);
  hashes.push(display(previous));
  headers.set(display(previous), header.toString('hex'));
}
let tip = 1;
const mempool = new Map<string, string>();

function fillMempool(): void {
  for (let i = 0; i < waiting; i++) {
    const { bytes, txid } = payment([witnessScript(randomBytes(20)), witnessScript(randomBytes(20))]);
    mempool.set(display(txid), bytes.toString('hex'));
  }
}

function answer({ method, params = [] }: Call): unknown {
  if (method === 'getblockchaininfo')
    return { blocks: tip, headers: tip, bestblockhash: hashes[tip], initialblockdownload: false };
  if (method === 'getblockhash') return Number(params[0]) <= tip ? hashes[Number(params[0])] : undefined;
  if (method === 'getblockheader') return { time: 1_800_000_000 };
  if (method === 'getconnectioncount') return 8;
  if (method === 'getrawtransaction') return mempool.get(String(params[0]));
  return method === 'getrawmempool' ? [...mempool.keys()] : undefined;
}
function reply(call: Call): object {
  const result = answer(call);
  const error =
    call.method === 'getblockhash'
      ? { code: -8, message: 'Block height out of range' }
      : { code: -32601, message: 'Method not found' };
  return result === undefined ? { result: null, error, id: call.id } : { result, error: null, id: call.id };
}

const server = createServer((request, response) => {
  let text = '';
  request.setEncoding('latin1').on('data', (part) => {
    text += part;
  });
  request.on('end', () => {
    const asked = JSON.parse(text) as Call | Call[];
    if (Array.isArray(asked) || asked.method !== 'getblock') {
      response.end(JSON.stringify(Array.isArray(asked) ? asked.map(reply) : reply(asked)));
      return;
    }
    const [before, after] = [`{"result":"${headers.get(String(asked.params?.[0]))}`, `","error":null,"id":${asked.id}}`];
    response.setHeader('content-length', before.length + body.length + after.length);
    response.write(before);
    response.write(body);
    response.end(after);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }));
process.on('message', () => {
  // the watcher has begun: now there is something to catch up with
  if (waiting === 0) tip = blocks;
  else {
    fillMempool();
    setInterval(() => {
      tip = Math.min(blocks, tip + 1);
    }, BLOCK_EVERY_MS);
  }
  process.send?.({ tip });
});
process.once('disconnect', () => process.exit(0));
