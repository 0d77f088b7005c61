// A real geth for tests, fetched by scripts/peers/geth.sh when it is not in the cache yet. The test is its consensus client (Engine API): a block
// comes only when asked for, and the test says which one is final, who gets its fees and what it withdraws.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
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
import { callData, rawOf } from './anvil.ts';
import { type Compiled, FORWARDER, QUIRKY_TOKEN } from './compiled.ts';
import { createProposer } from './geth-proposer.ts';

const SENDERS = 400;
/** So many of the senders have tokens from the beginning. */
const RICH = 120;
const RICH_UNITS = 10n ** 15n;
const FEE = 100_000_000_000n;
const LOTS = `0x${(10n ** 26n).toString(16)}`;
const FAUCET = secretOf('geth faucet');
const word = (value: bigint): string => value.toString(16).padStart(64, '0');

export type Geth = Awaited<ReturnType<typeof startGeth>>;

const senderAt = (n: number): Buffer => secretOf(`geth ${n}`);

/** Every fork up to Prague from the first block on. */
function genesis(): object {
  const forks = [
    'homestead',
    'eip150',
    'eip155',
    'eip158',
    'byzantium',
    'constantinople',
    'petersburg',
    'istanbul',
    'berlin',
    'london',
  ];
  const rich = [FAUCET, ...Array.from({ length: SENDERS }, (_, n) => senderAt(n))];
  return {
    config: {
      chainId: CHAIN_ID,
      ...Object.fromEntries(forks.map((fork) => [`${fork}Block`, 0])),
      ...{ terminalTotalDifficulty: 0, shanghaiTime: 0, cancunTime: 0, pragueTime: 0 },
      blobSchedule: {
        cancun: { target: 3, max: 6, baseFeeUpdateFraction: 3_338_477 },
        prague: { target: 6, max: 9, baseFeeUpdateFraction: 5_007_716 },
      },
    },
    ...{ difficulty: '0x0', gasLimit: '0x1c9c380', baseFeePerGas: '0x3b9aca00', timestamp: '0x1', extraData: '0x' },
    alloc: Object.fromEntries(rich.map((secret) => [addressOf(secret), { balance: LOTS }])),
  };
}

function tokenOf(secret: Buffer): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iat: Math.floor(Date.now() / 1000) })}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

export async function startGeth() {
  const path = execFileSync(fileURLToPath(new URL('../../../scripts/peers/geth.sh', import.meta.url)), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-geth-'));
  const secret = randomBytes(32);
  writeFileSync(join(folder, 'jwt'), secret.toString('hex'));
  writeFileSync(join(folder, 'genesis.json'), JSON.stringify(genesis()));
  const scheme = ['--datadir', folder, '--state.scheme', 'hash'];
  execFileSync(path, ['init', ...scheme, join(folder, 'genesis.json')], { stdio: 'ignore' });
  const [port, engine] = [await freePort(), await freePort()];
  const running = run(path, folder, { port, engine, scheme });
  const url = `http://127.0.0.1:${port}`;
  const rpc = caller(url);
  const consensus = caller(`http://127.0.0.1:${engine}`, { authorization: () => `Bearer ${tokenOf(secret)}` });
  for (const deadline = Date.now() + 60_000; ; await delay(50)) {
    if (running.exitCode !== null || Date.now() > deadline) throw new Error('geth did not start');
    if (await rpc('eth_chainId').then(Boolean, () => false)) break;
  }
  const { propose, rewind, height } = await createProposer(rpc, consensus);
  let count = 0;
  let faucetNonce = 0;
  const secrets = new Map<string, Buffer>();

  async function send(
    call: Partial<Unsigned> & Pick<Unsigned, 'to'>,
    { secret: named, units = 0n }: { readonly secret?: Buffer; readonly units?: bigint } = {},
  ): Promise<EvmTransaction> {
    if (units > RICH_UNITS) throw new Error('no sender has so much');
    const from = named ?? senderAt(units > 0n ? count++ % RICH : RICH + (count++ % (SENDERS - RICH)));
    const made = signTransaction({ value: 0n, input: '0x', nonce: 0, gas: 3_000_000, maxFee: FEE, tip: TIP, ...call }, from);
    secrets.set(made.hash, from);
    await rpc('eth_sendRawTransaction', rawOf(made));
    return made;
  }
  const byFaucet = (call: Partial<Unsigned> & Pick<Unsigned, 'to'>) =>
    send({ nonce: faucetNonce++, ...call }, { secret: FAUCET });
  async function deploy(compiled: Compiled, args = ''): Promise<string> {
    const { hash } = await byFaucet({ to: '0x', input: `0x${compiled.bytecode}${args}`, gas: 5_000_000 });
    await propose();
    return (await rpc<{ contractAddress: string }>('eth_getTransactionReceipt', hash)).contractAddress.toLowerCase();
  }
  const token = await deploy(QUIRKY_TOKEN, word(10n ** 18n));
  const forwarder = await deploy(FORWARDER);
  const units = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', forwarder, 10n ** 18n - 10n ** 15n);
  await byFaucet({ to: token, input: units });
  await propose();
  const rich = Array.from({ length: RICH }, (_, n) => addressOf(senderAt(n)));
  const spread = callData(
    FORWARDER,
    'spreadTokens(address,address[],uint256[])',
    token,
    rich,
    rich.map(() => RICH_UNITS),
  );
  await byFaucet({ to: forwarder, input: spread, gas: 12_000_000 });
  await propose();
  return {
    version: await rpc<string>('web3_clientVersion'),
    url,
    token,
    forwarder,
    rpc,
    mine: async (blocks = 1): Promise<void> => {
      for (let n = 0; n < blocks; n++) await propose();
    },
    /** One block, as the test wants it. */
    propose,
    height,
    /** Takes the top blocks away; their transactions are not sent again. */
    rewind,
    /** The pool forgets everything. */
    async forget(): Promise<void> {
      await rpc('miner_setGasPrice', `0x${(10n ** 18n).toString(16)}`);
      await rpc('miner_setGasPrice', '0x1');
    },
    send,
    /** A call by the token's owner, mined. */
    async asOwner(data: string): Promise<void> {
      await byFaucet({ to: token, input: data });
      await propose();
    },
    deploy,
    secretOf: (hash: string): Buffer => secrets.get(hash) as Buffer,
    async remove(): Promise<void> {
      running.kill('SIGKILL');
      if (running.exitCode === null && running.signalCode === null) await once(running, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function run(path: string, folder: string, at: { port: number; engine: number; scheme: readonly string[] }): ChildProcess {
  const args = [
    ...at.scheme,
    ...[
      '--networkid',
      String(CHAIN_ID),
      '--syncmode',
      'full',
      '--gcmode',
      'archive',
      '--nodiscover',
      '--maxpeers',
      '0',
      '--port',
      '0',
    ],
    ...[
      '--http',
      '--http.port',
      String(at.port),
      '--http.api',
      'eth,net,web3,txpool,debug,miner',
      '--ipcdisable',
      '--nat',
      'none',
    ],
    ...['--authrpc.port', String(at.engine), '--authrpc.jwtsecret', join(folder, 'jwt'), '--authrpc.vhosts', '*'],
    ...[
      '--miner.gasprice',
      '1',
      '--rpc.txfeecap',
      '0',
      '--txpool.pricelimit',
      '1',
      '--txpool.nolocals',
      // its index of logs, made meanwhile, ends the whole process where the head is set back ("nil targetView", 1.16.8)
      '--history.logs.disable',
      '--verbosity',
      '1',
      '--cache',
      '64',
    ],
  ];
  return spawn(path, args, { stdio: 'ignore' });
}
