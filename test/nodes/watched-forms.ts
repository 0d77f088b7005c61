// One watched script, and what the tests of forms that consensus accepts read with it.
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { rawCoinbase, someScript } from '../support/raw-blocks.ts';

export const CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];
export const ours = someScript('ours');
export const watch = {
  hasScript: (bytes: Uint8Array, start: number, end: number) => ours.equals(bytes.subarray(start, end)),
  hasOutpoint: () => false,
  fresh: async () => undefined,
};
export const features = (code: UtxoCode) => utxoRow(code).utxo.blockFeatures;
export const coinbase = () => rawCoinbase([{ minor: 50_0000_0000n, script: someScript('miner') }]);
