// What was signed is named page by page, and a signer that is killed between its journal and its answer gives the same bytes afterwards.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import { openSignatureJournal } from '../../src/signer/signature-journal.ts';
import { signatureOf as content, openTestSigner, requestFor, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('what was signed, page by page', () => {
  it('is all there, oldest first, of all batches or of one', async () => {
    const at = await openTestSigner();
    try {
      const signing = await at.start();
      const made: SignedTransaction[] = [];
      for (let n = 0; n < 3; n++) {
        const batchId = await at.batch();
        const payout = await at.payout({ batchId });
        const input = at.input(WHOLE);
        for (const number of [1, 2])
          made.push(await signing.sign(requestFor([payout], [input], { number, fee: BigInt(number) * 500n })));
      }
      expect(await signing.signed(0, null)).toEqual({ transactions: made, more: false });
      expect(await signing.signed(4, null)).toEqual({ transactions: made.slice(4), more: false });
      expect(await signing.signed(6, null)).toEqual({ transactions: [], more: false });
      expect(await signing.signed(600, null)).toEqual({ transactions: [], more: false });
      const { batchId } = made[2]!.request;
      expect(await signing.signed(0, batchId)).toEqual({ transactions: made.slice(2, 4), more: false });
      expect(await signing.signed(3, batchId)).toEqual({ transactions: made.slice(3, 4), more: false });
      expect(await signing.signed(0, 'batch_none')).toEqual({ transactions: [], more: false });
    } finally {
      await at.close();
    }
  });

  it('comes in pages that a frame holds, and says that there is more', async () => {
    const at = await openTestSigner();
    try {
      const signing = await at.start();
      const journal = await openSignatureJournal(at.signerFolder, 'regtest', { now: Date.now });
      for (let n = 1; n <= 450; n++) await journal.append({ ...content(n), raw: 'ab'.repeat(5_000) });
      await journal.close();
      const again = await at.start();
      const sequences: number[] = [];
      for (let more = true; more; ) {
        const page = await again.signed(sequences.at(-1) ?? 0, null);
        expect(JSON.stringify(page).length).toBeLessThan(4_000_000);
        sequences.push(...page.transactions.map((one) => one.sequence));
        more = page.more;
      }
      expect(sequences).toEqual(Array.from({ length: 450 }, (_, at) => at + 1));
      expect(signing).toBeDefined();
    } finally {
      await at.close();
    }
  });

  it('waits for the signatures that were asked for before: whoever sees none may give a reservation up', async () => {
    const at = await openTestSigner();
    try {
      const signing = await at.start();
      const batchId = await at.batch();
      const request = requestFor([await at.payout({ batchId })], [at.input(WHOLE)]);
      const signed = signing.sign(request);
      expect((await signing.signed(0, batchId)).transactions).toEqual([await signed]);
    } finally {
      await at.close();
    }
  });
});

describe('a signer that is killed', () => {
  it('between its journal and its answer gives the same bytes afterwards, and not others', async () => {
    const at = await openTestSigner();
    try {
      await (await at.start()).signed(0, null);
      const batchId = await at.batch();
      const payout = await at.payout({ batchId });
      const request = requestFor([payout], [at.input(WHOLE)]);
      const child = spawn(process.execPath, [
        fileURLToPath(new URL('support/killed-signer.ts', import.meta.url)),
        at.folder,
        at.url,
        JSON.stringify(request),
      ]);
      let output = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
      const signal = await new Promise((resolve) => child.on('exit', (_, by) => resolve(by)));
      expect([signal, output]).toEqual(['SIGKILL', '']);

      const signing = await at.start();
      const { transactions } = await signing.signed(0, batchId);
      expect(transactions).toHaveLength(1);
      await expect(signing.sign({ ...requestFor([payout], [at.input(WHOLE)]) })).rejects.toMatchObject({ rule: 'number' });
      expect(await signing.sign(request)).toEqual(transactions[0]);
    } finally {
      await at.close();
    }
  });
});
