// Which of our outputs a transaction spends: what is asked for and no more, no change that is dust, and small ones along while fees are low.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { completed, type SelectionWanted, selections, selectOutputs } from '../../src/core/payouts/coin-selection.ts';
import { feeOf, virtualBytes } from '../../src/core/payouts/outgoing-fees.ts';

describe('which outputs are spent', () => {
  const wanted: SelectionWanted = {
    kind: 'p2wpkh',
    amount: 100_000n,
    scriptLengths: [22],
    changeLength: 22,
    dust: 546n,
    ratePerKvb: 10_000n,
    isFeeInside: false,
    gatherUpTo: 5_000n,
    mostInputs: 200,
  };
  const output = (amount: bigint, n: number) => ({ txid: n.toString(16).padStart(64, '0'), vout: 0, amount });

  test('inputs are exactly payees, change and fee; change is never dust; the fee pays the rate', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt(1n, 10n ** 6n), { maxLength: 300 }),
        fc.bigInt(546n, 10n ** 7n),
        fc.bigInt(1_000n, 200_000n),
        (values, amount, ratePerKvb) => {
          const asked = { ...wanted, amount, ratePerKvb };
          const chosen = selectOutputs(values.map(output), asked);
          if (chosen === null) return;
          const total = chosen.inputs.reduce((sum, one) => sum + one.amount, 0n);
          expect(total).toBe(amount + chosen.change + chosen.fee);
          expect(chosen.change === 0n || chosen.change >= 546n).toBe(true);
          expect(chosen.fee).toBeGreaterThanOrEqual(feeOf(chosen.vbytes, ratePerKvb));
          expect(new Set(chosen.inputs).size).toBe(chosen.inputs.length);
          expect(chosen.inputs.length).toBeLessThanOrEqual(200);
          // the same inputs are priced the same again: a repeated request asks for the same transaction
          expect(completed(chosen.inputs, asked)).toMatchObject({ fee: chosen.fee, change: chosen.change });
        },
      ),
    );
  });

  test('with the fee inside, change is what the payees leave at every rate, and is never dust', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt(1n, 10n ** 6n), { maxLength: 50 }),
        fc.bigInt(546n, 10n ** 7n),
        fc.bigInt(1_000n, 200_000n),
        (values, amount, ratePerKvb) => {
          const asked = { ...wanted, amount, ratePerKvb, isFeeInside: true, gatherUpTo: null };
          const chosen = selectOutputs(values.map(output), asked);
          if (chosen === null) return;
          expect(chosen.inputs.reduce((sum, one) => sum + one.amount, 0n)).toBe(amount + chosen.change);
          expect(chosen.change === 0n || chosen.change >= 546n).toBe(true);
          expect(chosen.fee).toBe(feeOf(chosen.vbytes, ratePerKvb));
          expect(completed(chosen.inputs, { ...asked, ratePerKvb: ratePerKvb * 2n })?.change).toBe(chosen.change);
        },
      ),
    );
    // one unit is no output: another output is taken along
    const inside = { ...wanted, amount: 999n, isFeeInside: true };
    expect(selectOutputs([output(1_000n, 1), output(2_000n, 2)], { ...inside, ratePerKvb: 1_000n })).toMatchObject({
      change: 2_001n,
    });
    expect(selectOutputs([output(1_000n, 1)], { ...inside, ratePerKvb: 1_000n })).toBeNull();
  });

  test('what is not enough by one unit is refused, and what is just enough is spent without change', () => {
    const fee = feeOf(virtualBytes(['p2wpkh'], [22]), 10_000n);
    expect(selectOutputs([output(100_000n + fee - 1n, 1)], wanted)).toBeNull();
    expect(selectOutputs([output(100_000n + fee, 1)], wanted)).toMatchObject({ fee, change: 0n });
    // change is kept from the smallest that is relayed
    const kept = feeOf(virtualBytes(['p2wpkh'], [22, 22]), 10_000n);
    const asked = { ...wanted, dust: 5_000n };
    expect(selectOutputs([output(100_000n + kept + 5_000n, 1)], asked)).toMatchObject({ fee: kept, change: 5_000n });
    expect(selectOutputs([output(100_000n + kept + 4_999n, 1)], asked)).toMatchObject({ fee: kept + 4_999n, change: 0n });
  });

  test('change that is worth exactly what spending it costs goes to the fee', () => {
    const kept = feeOf(virtualBytes(['p2wpkh'], [22, 22]), 10_000n);
    const worth = feeOf(68, 10_000n);
    expect(selectOutputs([output(100_000n + kept + worth, 1)], wanted)).toMatchObject({ fee: kept + worth, change: 0n });
    expect(selectOutputs([output(100_000n + kept + worth + 1n, 1)], wanted)).toMatchObject({ fee: kept, change: worth + 1n });
  });

  test('with the fee inside, one output is enough, exactly or with change from the smallest that is relayed', () => {
    const inside = { ...wanted, isFeeInside: true, gatherUpTo: null };
    const without = virtualBytes(['p2wpkh'], [22]);
    const vbytes = virtualBytes(['p2wpkh'], [22, 22]);
    expect(selectOutputs([output(100_000n, 1)], inside)).toMatchObject({
      change: 0n,
      vbytes: without,
      fee: feeOf(without, 10_000n),
    });
    expect(selectOutputs([output(100_546n, 1)], inside)).toMatchObject({ change: 546n, vbytes, fee: feeOf(vbytes, 10_000n) });
    expect(selectOutputs([output(100_545n, 1)], inside)).toBeNull();
    expect(completed([], { ...inside, amount: 0n })).toBeNull();
  });

  test('outputs that cost more than they are worth are not spent, and small ones are gathered while fees are low and many are left', () => {
    const dust = Array.from({ length: 50 }, (_, n) => output(600n, n + 10));
    expect(selectOutputs([...dust, output(10n ** 6n, 1)], wanted)?.inputs).toHaveLength(1);
    expect(selectOutputs([output(10n ** 6n, 1), ...dust], { ...wanted, ratePerKvb: 1_000n })?.inputs).toHaveLength(1);
    const more = Array.from({ length: 57 }, (_, n) => output(600n, n + 10));
    expect(selectOutputs([output(10n ** 6n, 1), ...more], { ...wanted, ratePerKvb: 1_000n })?.inputs).toHaveLength(8);
  });

  describe('small ones along', () => {
    const large = output(10n ** 6n, 1);
    const small = Array.from({ length: 70 }, (_, n) => output(600n + BigInt(n), n + 10));
    const cheap = { ...wanted, ratePerKvb: 1_000n };
    const along = (asked: SelectionWanted, outputs = [large, ...small]) =>
      (selectOutputs(outputs, asked)?.inputs.length ?? 0) - 1;

    test('are ten at most, the smallest first, and leave fifty', () => {
      const chosen = selectOutputs([large, ...small.slice(35), ...small.slice(0, 35)], cheap);
      expect(chosen?.inputs.map(({ amount }) => amount)).toEqual([large, ...small.slice(0, 10)].map(({ amount }) => amount));
      expect(along(cheap, [large, ...small.slice(0, 51)])).toBe(1);
      expect(along(cheap, [large, ...small.slice(0, 50)])).toBe(0);
    });

    test('are taken up to the rate that says so, and never where none does', () => {
      expect(along({ ...cheap, gatherUpTo: 1_000n })).toBe(10);
      expect(along({ ...cheap, gatherUpTo: 999n })).toBe(0);
      expect(along({ ...cheap, gatherUpTo: null })).toBe(0);
    });

    test('never make more inputs than a transaction may have', () => {
      expect(along({ ...cheap, mostInputs: 5 })).toBe(4);
      expect(along({ ...cheap, mostInputs: 1 })).toBe(0);
    });

    test('are none where nothing can be paid', () => {
      expect(selections([], cheap)).toEqual([]);
      expect(selections(small, { ...cheap, amount: 10n ** 6n })).toEqual([]);
    });
  });

  test('an output that is worth exactly what spending it costs is not spent', () => {
    const worth = feeOf(68, wanted.ratePerKvb);
    const outputs = (least: bigint) => [output(least, 1), output(10n ** 6n, 2)];
    expect(selectOutputs(outputs(worth), { ...wanted, gatherUpTo: null })?.inputs).toHaveLength(1);
    expect(selectOutputs(outputs(worth + 1n), { ...wanted, gatherUpTo: null })?.inputs).toHaveLength(2);
  });

  test('the largest are spent where the order of preference needs more inputs than there may be', () => {
    const outputs = [output(5_000n, 1), output(10n ** 6n, 2), output(7_000n, 3)];
    expect(selectOutputs(outputs, { ...wanted, mostInputs: 1 })?.inputs).toEqual([outputs[1]]);
  });
});
