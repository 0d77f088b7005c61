// Answers for the LNURL-pay services of the outside world (LUD-06, LUD-16).
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { bech32 } from '@scure/base';
import type { Lnurl } from './lnurl.ts';
import type { LightningNode } from './node.ts';
import type { OutsideInvoice } from './outgoing.ts';

const WELL_KNOWN = '/.well-known/lnurlp/';
const CALLBACK = '/lnurl-pay/';

/** The LNURL and the Lightning address of a service. @param base of the sandbox's server */
export function namesOf({ name }: Lnurl, base: string): { readonly lnurl: string; readonly address: string } {
  const url = new URL(`${WELL_KNOWN}${name}`, base);
  const words = bech32.toWords(new TextEncoder().encode(url.href));
  return { lnurl: bech32.encode('lnurl', words, false).toUpperCase(), address: `${name}@${url.host}` };
}

/** The service that an LNURL or a Lightning address names; null when it is none of these. */
export function lnurlNamed(node: LightningNode, text: string): Lnurl | null {
  const at = text.indexOf('@');
  if (at > 0) return node.lnurls.find(text.slice(0, at).toLowerCase());
  const decoded = bech32.decodeUnsafe(text, false);
  const bytes = decoded?.prefix === 'lnurl' ? bech32.fromWordsUnsafe(decoded.words) : undefined;
  const url = bytes === undefined || bytes === null ? null : URL.parse(new TextDecoder().decode(bytes));
  return url?.pathname.startsWith(WELL_KNOWN) ? node.lnurls.find(url.pathname.slice(WELL_KNOWN.length)) : null;
}

/** Answers a request to such a service; false when the path is none of theirs. */
export function answerLnurl(node: LightningNode, url: URL, host: string, response: ServerResponse): boolean {
  const path = [WELL_KNOWN, CALLBACK].find((one) => url.pathname.startsWith(one));
  if (path === undefined) return false;
  const found = node.lnurls.find(url.pathname.slice(path.length));
  if (found === null) json(response, 404, { status: 'ERROR', reason: 'there is nobody of this name' });
  else if (path === WELL_KNOWN) describe(found, host, response);
  else pay(node, found, url.searchParams.get('amount') ?? '', host, response);
  return true;
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

const metadataOf = ({ name }: Lnurl, host: string): string =>
  JSON.stringify([
    ['text/plain', `${name} in the outside world`],
    ['text/identifier', `${name}@${host}`],
  ]);

function describe(lnurl: Lnurl, host: string, response: ServerResponse): void {
  const { name, minMsat, maxMsat, behaviour } = lnurl;
  if (behaviour === 'html')
    return void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>Hello</title>');
  if (behaviour === 'redirect') return void response.writeHead(302, { Location: `http://${host}${CALLBACK}${name}` }).end();
  json(response, 200, {
    tag: 'payRequest',
    callback: `http://${host}${CALLBACK}${name}`,
    minSendable: Number(minMsat),
    maxSendable: Number(maxMsat),
    metadata: metadataOf(lnurl, host),
  });
}

function pay(node: LightningNode, lnurl: Lnurl, amount: string, host: string, response: ServerResponse): void {
  const { behaviour, minMsat, maxMsat } = lnurl;
  const asked = /^\d{1,18}$/.test(amount) ? BigInt(amount) : 0n;
  if (asked < minMsat || asked > maxMsat) {
    json(response, 200, { status: 'ERROR', reason: 'the amount is out of the range' });
    return;
  }
  const described = behaviour === 'other_hash' ? 'something else' : metadataOf(lnurl, host);
  const made: OutsideInvoice = node.outgoing.invoice({
    amountMsat: behaviour === 'other_amount' ? asked + 1_000n : asked,
    expirySeconds: null,
    behaviour: 'pay',
    descriptionHash: createHash('sha256').update(described).digest('hex'),
  });
  node.lnurls.gave(lnurl.name, made.hash);
  json(response, 200, { pr: made.request, routes: [] });
}
