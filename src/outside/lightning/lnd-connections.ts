// Connections to LND that serve one call after the other, over TLS with a pinned certificate.
import type { Agent as HttpAgent } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';

// not by an import: see http/server.ts
const http = process.getBuiltinModule('node:http');
const https = process.getBuiltinModule('node:https');

const CONNECTIONS = 32;

type Agents = { readonly http: HttpAgent; readonly https: HttpsAgent };
export type KeptConnections = {
  readonly certificate: string | null;
  readonly calls: Agents;
  /** A stream that stays open takes no connection from the calls. */
  readonly streams: Agents;
  close(): void;
};

/**
 * Connections that serve one call after the other: a handshake costs more than a short call. What the node is compared with belongs to the agent,
 * since Node closes a connection after one call when the call says it.
 * @param certificate null = the system's authorities decide
 */
export function keptConnections(certificate: string | null): KeptConnections {
  const pinned =
    certificate === null
      ? {}
      : {
          ca: certificate,
          checkServerIdentity: (host: string, peer: PeerCertificate) => identityProblem(certificate, host, peer),
        };
  const agents = (most: { readonly maxSockets?: number }): Agents => ({
    http: new http.Agent({ keepAlive: true, ...most }),
    https: new https.Agent({ keepAlive: true, ...most, ...pinned }),
  });
  const [calls, streams] = [agents({ maxSockets: CONNECTIONS }), agents({})];
  return {
    certificate,
    calls,
    streams,
    close() {
      for (const agent of [calls.http, calls.https, streams.http, streams.https]) agent.destroy();
    },
  };
}

/**
 * A node's own certificate is pinned: it needs no name of its own. One that an authority signed must have the host's.
 * @returns why it is not accepted
 */
function identityProblem(pem: string, host: string, peer: PeerCertificate): Error | undefined {
  const own = peer.raw.toString('base64');
  const isPinned = pem.split('-----BEGIN CERTIFICATE-----').some((one) => one.replace(/-----END[\s\S]*$|\s/g, '') === own);
  return isPinned ? undefined : checkServerIdentity(host, peer);
}
