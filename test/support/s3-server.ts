import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/**
 * Starts an S3 store on a free port of 127.0.0.1 that holds `bucket` and knows one key. It checks each
 * request's signature (AWS Signature Version 4) by itself and refuses wrong ones with 403, as S3 does.
 * The first `resets` requests find their connection cut off, the `failures` after them are answered 503.
 */
export async function startS3Server({
  key = 'KEY',
  secret = 'S/3+cret',
  region = 'eu-test-1',
  resets = 0,
  failures = 0,
} = {}) {
  const objects = new Map<string, Buffer>();
  let resetsLeft = resets;
  let failuresLeft = failures;
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const path = request.url ?? '';
    const answer = (status: number, content?: Buffer | string) => response.writeHead(status).end(content);
    if (resetsLeft > 0) {
      resetsLeft -= 1;
      request.socket.resetAndDestroy();
    } else if (failuresLeft > 0) {
      failuresLeft -= 1;
      answer(503, '<Error><Code>SlowDown</Code></Error>');
    } else if (!isSigned(request, body, { key, secret, region })) {
      answer(403, '<Error><Code>SignatureDoesNotMatch</Code></Error>');
    } else if (!path.startsWith('/bucket/')) answer(404, '<Error><Code>NoSuchBucket</Code></Error>');
    else if (request.method === 'PUT') {
      objects.set(path, body);
      answer(200);
    } else if (request.method === 'DELETE') {
      objects.delete(path);
      answer(204);
    } else answer(objects.has(path) ? 200 : 404, objects.get(path));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `s3://${key}:${encodeURIComponent(secret)}@127.0.0.1:${port}/bucket/files?region=${region}&tls=false`,
    objects,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As "Authenticating Requests: Using the Authorization Header" in the S3 reference describes it. */
function isSigned(request: IncomingMessage, body: Buffer, { key, secret, region }: Credentials): boolean {
  const header = request.headers.authorization ?? '';
  const [, credential = '', signedHeaders = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(header) ??
    [];
  const time = String(request.headers['x-amz-date']);
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const late = Math.abs(
    Date.now() - Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5')),
  );
  if (credential !== `${key}/${scope}` || !(late < 15 * 60_000)) return false;
  if (request.headers['x-amz-content-sha256'] !== sha256(body)) return false;
  const names = signedHeaders.split(';');
  if (!['host', 'x-amz-content-sha256', 'x-amz-date'].every((name) => names.includes(name))) return false;

  const headers = names.map((name) => `${name}:${String(request.headers[name]).trim()}\n`).join('');
  const canonical = [request.method, request.url, '', headers, signedHeaders, sha256(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const signingKey = scope
    .split('/')
    .reduce<string | Buffer>((secretKey, part) => hmac(secretKey, part), `AWS4${secret}`);
  return hmac(signingKey, toSign).toString('hex') === signature;
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

type Credentials = { key: string; secret: string; region: string };
