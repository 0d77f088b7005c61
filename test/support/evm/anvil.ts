// A real Ethereum node (anvil) for tests, fetched by scripts/peers/anvil.sh when it is not in the cache yet: an EVM, blocks only when asked,
// a token with mainnet's quirks and a contract that sends ether and tokens on.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { signedBytes } from '../../../src/core/evm/transaction.ts';
import {
  addressOf,
  CHAIN_ID,
  type EvmTransaction,
  secretOf,
  signTransaction,
  TIP,
  type Unsigned,
} from '../../../src/sandbox/evm/transaction.ts';
import { freePort } from '../core-daemon.ts';
import { caller } from '../json-rpc.ts';
import { type Compiled, FORWARDER, QUIRKY_TOKEN } from './compiled.ts';

const word = (value: bigint | string): string =>
  (typeof value === 'string' ? value.replace(/^0x/, '') : value.toString(16)).padStart(64, '0');
const FEE = 100_000_000_000n;
const SUPPLY = 10n ** 18n;

/** The first account of anvil's own words, which deploys. */
const DEPLOYER = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';

export type Anvil = Awaited<ReturnType<typeof startAnvil>>;

/** Call data: the selector and words; a list of addresses or amounts is put behind them. */
export function callData(
  of: Compiled,
  name: string,
  ...args: readonly (bigint | string | readonly (bigint | string)[])[]
): string {
  const selector = of.selectors[name];
  if (selector === undefined) throw new Error(`no function ${name}`);
  let tail = '';
  const head = args.map((arg) => {
    if (typeof arg !== 'object') return word(arg);
    const offset = args.length * 32 + tail.length / 2;
    tail += word(BigInt(arg.length)) + arg.map(word).join('');
    return word(BigInt(offset));
  });
  return `0x${selector}${head.join('')}${tail}`;
}

export async function startAnvil(options: { readonly args?: readonly string[] } = {}) {
  const path = execFileSync(fileURLToPath(new URL('../../../scripts/peers/anvil.sh', import.meta.url)), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
  const port = await freePort();
  // its finalized block lies two epochs back: 64 blocks, as on mainnet
  const args = ['--port', String(port), '--no-mining', '--silent', '--slots-in-an-epoch', '32', ...(options.args ?? [])];
  // it writes old states there, hundreds of megabytes after thousands of blocks, and leaves them when it is killed
  const home = mkdtempSync(join(tmpdir(), 'bursar-anvil-'));
  const running = spawn(path, args, { stdio: 'ignore', env: { ...process.env, HOME: home } });
  const url = `http://127.0.0.1:${port}`;
  let count = 0;

  const rpc = caller(url);
  const mine = (blocks = 1): Promise<void> => rpc('anvil_mine', `0x${blocks.toString(16)}`);
  async function deploy(compiled: Compiled, args = ''): Promise<string> {
    const gas = '0x500000';
    const hash = await rpc<string>('eth_sendTransaction', { from: DEPLOYER, data: `0x${compiled.bytecode}${args}`, gas });
    await mine();
    const { contractAddress } = await rpc<{ contractAddress: string }>('eth_getTransactionReceipt', hash);
    return contractAddress.toLowerCase();
  }
  /** A key nobody used before, with ether, and tokens where asked. */
  async function sender(units = 0n): Promise<Buffer> {
    count += 1;
    const secret = secretOf(`anvil ${count}`);
    await rpc('anvil_setBalance', addressOf(secret), `0x${(10n ** 24n).toString(16)}`);
    if (units > 0n) await rpc('anvil_dealERC20', addressOf(secret), token, `0x${units.toString(16)}`);
    return secret;
  }
  const secrets = new Map<string, Buffer>();
  async function send(
    call: Partial<Unsigned> & Pick<Unsigned, 'to'>,
    { secret, units = 0n }: { readonly secret?: Buffer; readonly units?: bigint } = {},
  ): Promise<EvmTransaction> {
    const from = secret ?? (await sender(units));
    const made = signTransaction({ value: 0n, input: '0x', nonce: 0, gas: 3_000_000, maxFee: FEE, tip: TIP, ...call }, from);
    secrets.set(made.hash, from);
    await rpc('eth_sendRawTransaction', rawOf(made));
    return made;
  }

  for (const deadline = Date.now() + 30_000; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    if (running.exitCode !== null || Date.now() > deadline) throw new Error('anvil did not start');
    if (await rpc('eth_chainId').then(Boolean, () => false)) break;
  }
  const token = await deploy(QUIRKY_TOKEN, word(SUPPLY));
  /** A call by the token's owner, mined. */
  async function asOwner(data: string): Promise<void> {
    await rpc('eth_sendTransaction', { from: DEPLOYER, to: token, data, gas: '0x100000' });
    await mine();
  }
  const forwarder = await deploy(FORWARDER);
  return {
    version: await rpc<string>('web3_clientVersion'),
    url,
    token,
    forwarder,
    rpc,
    mine,
    send,
    /** The key that signed a transaction. */
    secretOf: (hash: string): Buffer => secrets.get(hash) as Buffer,
    /** Gives an address tokens without a Transfer. */
    deal: (address: string, units: bigint) => rpc('anvil_dealERC20', address, token, `0x${units.toString(16)}`),
    asOwner,
    /** Every transfer of the token that a block has meanwhile reverts. Its pool is emptied first: the block that pauses it would have what waits. */
    async whilePaused(work: () => Promise<unknown>): Promise<void> {
      await rpc('anvil_dropAllTransactions');
      await asOwner(callData(QUIRKY_TOKEN, 'setPaused(bool)', 1n));
      await work();
      await asOwner(callData(QUIRKY_TOKEN, 'setPaused(bool)', 0n));
    },
    deploy,
    async remove() {
      running.kill('SIGKILL');
      if (running.exitCode === null && running.signalCode === null) await once(running, 'exit');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** The bytes of a signed transaction (EIP-1559). */
export function rawOf({ signature, ...call }: EvmTransaction): string {
  const { yParity, r, s } = signature;
  return `0x${signedBytes({ ...call, chainId: CHAIN_ID }, { yParity, r: BigInt(r), s: BigInt(s) }).toString('hex')}`;
}
