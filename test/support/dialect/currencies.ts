// Facts of the two currencies for which no registry has a daemon, as their reference nodes state them: what the dialect servers answer, and
// what they ask of the bitcoind below. Sources: Dogecoin Core 1.14 (chainparams, policy.h, rpc), Dash Core 20 to 22 (chainparams,
// validation.cpp, the RPC help). Not taken from the product's own tables: those are tested against these.

export type DialectCurrency = 'DOGE' | 'DASH';

export type CurrencyFacts = {
  readonly currency: DialectCurrency;
  /** Version bytes on regtest. */
  readonly pubKeyHash: number;
  readonly scriptHash: number;
  readonly genesis: string;
  readonly version: number;
  readonly subversion: string;
  /** What the header's version says; null leaves bitcoind's. */
  readonly blockVersion: number | null;
  readonly headerHash: 'sha256d' | 'x11';
  readonly coinbaseMaturity: number;
  readonly relayFeePerKb: bigint;
  /** An output below this is refused. */
  readonly hardDust: bigint;
  /** An output below this adds this much to the least fee (Dogecoin); 0 = no such rule. */
  readonly softDust: bigint;
  /** Policy of the bitcoind below. */
  readonly arguments: readonly string[];
};

export const DOGE: CurrencyFacts = {
  currency: 'DOGE',
  pubKeyHash: 0x6f,
  scriptHash: 0xc4,
  genesis: '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
  version: 1140900,
  subversion: '/Shibetoshi:1.14.9/',
  // base version 4, merged mining, chain 0x62
  blockVersion: 0x00620104,
  headerHash: 'sha256d',
  coinbaseMaturity: 240,
  relayFeePerKb: 100_000n,
  hardDust: 100_000n,
  softDust: 1_000_000n,
  arguments: [
    '-minrelaytxfee=0.001',
    '-incrementalrelayfee=0.0001',
    '-blockmintxfee=0.01',
    '-dustrelayfee=0',
    '-mempoolreplacement=fee,optin',
    '-fallbackfee=0.02',
    '-maxtxfee=100',
  ],
};

export const DASH: CurrencyFacts = {
  currency: 'DASH',
  pubKeyHash: 0x8c,
  scriptHash: 0x13,
  genesis: '000008ca1832a4baf228eb1553c03d3a2c8e02399550dd6ea8d65cec3ef23d2e',
  version: 220103,
  subversion: '/Dash Core:22.1.3/',
  blockVersion: null,
  headerHash: 'x11',
  coinbaseMaturity: 100,
  relayFeePerKb: 1_000n,
  hardDust: 546n,
  softDust: 0n,
  arguments: ['-minrelaytxfee=0.00001', '-mempoolreplacement=0', '-walletrbf=0', '-fallbackfee=0.0001'],
};

/** Of both: no segwit, legacy addresses, and a mempool that a restart empties (the wallet does not fill it again). */
export const SHARED_ARGUMENTS: readonly string[] = [
  '-natpmp=0',
  '-addresstype=legacy',
  '-changetype=legacy',
  '-testactivationheight=segwit@100000000',
  '-persistmempool=0',
  '-walletbroadcast=0',
];

/** Dogecoin Core 1.14 has these methods and no others. */
export const DOGE_METHODS: ReadonlySet<string> = new Set(
  `getbestblockhash getblock getblockchaininfo getblockcount getblockhash getblockheader getchaintips getdifficulty getmempoolancestors
   getmempooldescendants getmempoolentry getmempoolinfo getrawmempool gettxout gettxoutproof gettxoutsetinfo preciousblock verifychain
   verifytxoutproof getinfo getmemoryinfo help generate generatetoaddress getmininginfo getnetworkhashps prioritisetransaction
   getconnectioncount getnettotals getnetworkinfo getpeerinfo ping createrawtransaction decoderawtransaction decodescript
   fundrawtransaction getrawtransaction sendrawtransaction signrawtransaction createmultisig estimatefee estimatesmartfee validateaddress
   verifymessage abandontransaction getbalance getnewaddress getrawchangeaddress getreceivedbyaddress gettransaction
   getunconfirmedbalance getwalletinfo listlockunspent listreceivedbyaddress listsinceblock listtransactions listunspent lockunspent
   sendmany sendtoaddress settxfee invalidateblock reconsiderblock`.split(/\s+/),
);

/** Methods of bitcoind that Dash Core does not have. */
export const NOT_IN_DASH: ReadonlySet<string> = new Set(
  'bumpfee psbtbumpfee generateblock submitpackage getblockfrompeer getdeploymentinfo scanblocks submitblock'.split(' '),
);
