// The steps of a verdict: each change of status and each announcement is one step with one number, and the times that go with a status.
import { describe, expect, test } from 'vitest';
import { announce, applyEvent } from '../../../src/core/judge/steps.ts';
import { newCase } from '../../support/one-case.ts';

const NOW = 1_700_000_000_000;
const caseIn = (status: 'started' | 'pending' | 'confirmed' | 'review') => newCase([], { nowMs: NOW, transaction: { status } });

describe('an event', () => {
  test('raises the sequence by one and says what the table says', () => {
    const it = caseIn('started');
    expect(applyEvent(it, 'window_passed')).toBe(true);
    expect(it.transaction).toMatchObject({ status: 'timedout', sequence: 2, succeededAtMs: null, confirmedAtMs: null });
    expect(it.steps).toEqual([{ kind: 'status', from: 'started', to: 'timedout', rule: 7, reason: expect.stringMatching(/./) }]);
  });

  test('says another reason where one is given', () => {
    const it = caseIn('review');
    applyEvent(it, 'resolved_accept', 'accepted by the operator');
    expect(it.steps).toMatchObject([{ reason: 'accepted by the operator' }]);
  });

  test('that has no row in this status changes nothing', () => {
    const it = caseIn('started');
    expect(applyEvent(it, 'booked')).toBe(false);
    expect([it.transaction.status, it.transaction.sequence, it.steps]).toEqual(['started', 1, []]);
  });

  test('that confirms or books is dated', () => {
    const it = caseIn('pending');
    applyEvent(it, 'enough_confirmed');
    expect(it.transaction).toMatchObject({ status: 'confirmed', confirmedAtMs: NOW, succeededAtMs: null, sequence: 2 });
    applyEvent(it, 'booked');
    expect(it.transaction).toMatchObject({ status: 'succeeded', confirmedAtMs: NOW, succeededAtMs: NOW, sequence: 3 });
  });
});

test('an announcement raises the sequence by one too', () => {
  const it = caseIn('pending');
  announce(it, 'transaction.reorged', { txid: 'a' });
  expect(it.transaction.sequence).toBe(2);
  expect(it.steps).toEqual([{ kind: 'announce', type: 'transaction.reorged', data: { txid: 'a' } }]);
});
