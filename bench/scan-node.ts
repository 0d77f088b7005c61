// A node that knows one block: answers `getblock <hash> 0` over JSON-RPC as bitcoind does.
import { createServer } from 'node:http';
import { makeBlock } from './block.ts';

process.once('message', (watched) => {
  const block = makeBlock((watched as string[]).map((hex) => Buffer.from(hex, 'hex')));
  const answer = JSON.stringify({ result: block.hex, error: null, id: 0 });
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(answer));
  });
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as { port: number }).port, hash: block.hash, hits: block.hits });
  });
});
process.once('disconnect', () => process.exit(0));
