import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import { MAX_METRICS_CONNECTIONS } from '../admission/bounds.ts';
import { hasCode } from '../domain/errors/system-errors.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/**
 * Serves the metrics of this process at `/metrics`, on a port of their own that the public ones lead nowhere near.
 *
 * If it can't listen there, that is logged and the service goes on without: then returns undefined.
 */
export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer | undefined> {
  const { host, port, metrics, log } = options;
  const server = createServer((request, response) => {
    answer(metrics, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'The metrics could not be read.');
      response.destroy();
    });
  });
  server.maxConnections = MAX_METRICS_CONNECTIONS;
  // Processes of one service have ports of their own here, rather than sharing one.
  server.listen({ host, port, exclusive: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    const why = hasCode(error, 'EADDRINUSE') ? 'it is in use' : String(error);
    log.warn(`METRICS_PORT can't be used at ${host}:${port}: ${why}. The service goes on without metrics.`);
    return undefined;
  }
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${(server.address() as AddressInfo).port}/metrics`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function answer(metrics: Metrics, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead || request.url?.split('?', 1).join() !== '/metrics') {
    response.writeHead(404).end();
    return;
  }
  const text = await metrics.text();
  response.writeHead(200, { 'content-type': metrics.contentType, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export type MetricsServerOptions = {
  host: string;
  /** 0 takes a free one. */
  port: number;
  metrics: Metrics;
  log: Log;
};

export type MetricsServer = { url: string; close(): Promise<void> };
