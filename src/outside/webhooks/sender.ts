// Sends webhooks: signed as Standard Webhooks 1.0.0 says, by calls that are guarded (outside/outbound).
import { createHmac } from 'node:crypto';
import type { Outbound } from '../../core/outbound.ts';
import { SAYS_ALL, type WebhookSender } from '../../core/webhooks.ts';

const WITHIN_MS = 15_000;
const MOST_BYTES = 64 * 1024;
const PREFIX = 'whsec_';

/** @param now milliseconds since 1970 by the world's clock: receivers compare it with their own, also where the sandbox's was moved */
export function createWebhookSender(outbound: Outbound, now: () => number = Date.now): WebhookSender {
  return ({ webhook, merchantId, url, id, body, secrets, signal }) => {
    const timestamp = String(Math.floor(now() / 1000));
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'Bursar',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': secrets.map((secret) => signature(secret, `${id}.${timestamp}.${body}`)).join(' '),
    };
    const bounds = { withinMs: WITHIN_MS, mostBytes: MOST_BYTES, signal };
    return outbound.call({
      url,
      method: 'POST',
      headers,
      body,
      connectionsOf: webhook,
      merchantId,
      saysAll: SAYS_ALL,
      ...bounds,
    });
  };
}

/** HMAC-SHA256, version 1. */
function signature(secret: string, content: string): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
