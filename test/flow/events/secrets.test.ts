// Which secrets sign: the present one, and each former one until a day after it was replaced, to the millisecond.
import { expect, test } from 'vitest';
import { openText, sealText } from '../../../src/core/sealed-text.ts';
import { secretsOf } from '../../../src/flow/events/webhooks.ts';
import { createSealing } from '../../../src/outside/sealing.ts';
import type { Webhook } from '../../../src/store/deliveries/webhooks.ts';
import { portsFor } from '../../support/ports.ts';

const NOW = Date.UTC(2026, 5, 1);

test('a former secret signs until its time has come, and not at it', () => {
  const webhookSealing = createSealing(new Uint8Array(32).fill(7));
  const ctx = { ports: { ...portsFor('mainnet', { now: () => NOW }), webhookSealing } };
  const seal = (secret: string): string => sealText(webhookSealing, secret, 'wh_1');
  const webhook: Webhook = {
    number: 1n,
    id: 'wh_1',
    merchantId: 1n,
    url: 'https://shop.example/',
    events: null,
    enabled: true,
    createdAtMs: NOW,
    secret: seal('whsec_present'),
    formerSecrets: [
      { secret: seal('whsec_former'), until: NOW + 1 },
      { secret: seal('whsec_over'), until: NOW },
    ],
  };
  expect(openText(webhookSealing, webhook.secret, 'wh_1')).toBe('whsec_present');
  expect(secretsOf(ctx, webhook)).toEqual(['whsec_present', 'whsec_former']);
  // the row of another endpoint does not open
  expect(() => secretsOf(ctx, { ...webhook, id: 'wh_2' })).toThrow();
});
