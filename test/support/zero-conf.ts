// Channels that are used before they are in a block, on real LND: whose other side must say over a stream that it takes them so, which REST has as a WebSocket.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { type LndNode, openChannel } from './lnd-node.ts';

/** A text as a client sends it (RFC 6455), of less than 64 KiB. */
function frameOf(text: string): Buffer {
  const data = Buffer.from(text);
  const mask = randomBytes(4);
  const length = data.length < 126 ? [0x80 | data.length] : [0xfe, data.length >> 8, data.length & 0xff];
  return Buffer.concat([Buffer.from([0x81, ...length]), mask, data.map((byte, at) => byte ^ (mask[at % 4] as number))]);
}

/** Opens a channel from one node to another, whose peer it is, which both use at once. Of satoshis; a part of them is the other's. */
export async function openZeroConf(
  from: LndNode,
  to: LndNode,
  of: { readonly sat: number; readonly push: number },
): Promise<void> {
  const { target } = to;
  const request = https.request(`${target.url}/v1/channels/acceptor?method=POST`, {
    ca: target.certificate ?? '',
    agent: false,
    headers: {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'grpc-metadata-macaroon': target.macaroon },
      ...{ 'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64') },
    },
  });
  request.end();
  const [, socket] = (await once(request, 'upgrade')) as [unknown, Duplex];
  let heard = '';
  socket.on('data', (piece: Buffer) => {
    // what it asks is one short text, whose frame is of no interest
    heard += piece.toString('latin1');
    const asked = /"pending_chan_id":\s*"([^"]+)"/.exec(heard);
    if (asked === null) return;
    heard = '';
    socket.write(frameOf(JSON.stringify({ accept: true, pending_chan_id: asked[1], zero_conf: true, min_accept_depth: 0 })));
  });
  try {
    await openChannel(from, to, {
      ...{ local_funding_amount: String(of.sat), push_sat: String(of.push), sat_per_vbyte: '5' },
      ...{ zero_conf: true, commitment_type: 'ANCHORS' },
    });
  } finally {
    socket.destroy();
  }
}
