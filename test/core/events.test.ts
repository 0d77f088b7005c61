// The events that merchants are told of: their types follow from the tables of statuses, and an identifier from the event's key.
import { expect, test } from 'vitest';
import { EVENT_TYPES, eventId, eventKey, kindOf, typesOfKind } from '../../src/core/events.ts';

const OBJECT = '0351dYxk0d1Jt8vTgkN1AM';

test('every type is of one kind, and what is no type has none', () => {
  expect([...typesOfKind('transaction'), ...typesOfKind('payout')]).toEqual(EVENT_TYPES);
  expect([kindOf('transaction.succeeded'), kindOf('payout.returned')]).toEqual(['transaction', 'payout']);
  for (const type of ['invoice.paid', 'transaction', '']) expect(() => kindOf(type)).toThrow('is no type of an event');
});

test('an identifier is its key, both ways', () => {
  for (const [objectId, mark] of [
    [`txn_${OBJECT}`, 't'],
    [`payout_${OBJECT}`, 'p'],
  ] as const) {
    for (const sequence of [1, 12, 999_999_999]) {
      expect(eventId({ objectId, sequence })).toBe(`evt_${mark}${OBJECT}${sequence}`);
      expect(eventKey(`evt_${mark}${OBJECT}${sequence}`)).toEqual({ objectId, sequence });
    }
  }
  for (const id of [
    `evt_x${OBJECT}1`,
    `evt_t${OBJECT}0`,
    `evt_t${OBJECT}`,
    `evt_t${OBJECT}1234567890`,
    `evt_t${OBJECT}1 `,
    'evt_',
  ])
    expect(eventKey(id)).toBeNull();
  expect(() => eventId({ objectId: `wh_${OBJECT}`, sequence: 1 })).toThrow('has no events');
});
