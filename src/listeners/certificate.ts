import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { errorMessage, StartError } from '../domain/errors/system-errors.ts';
import type { Log } from '../telemetry/log.ts';

/** Reads a certificate and its key. Throws a `StartError` that names the setting whose file can't be used. */
export function readCertificate({ certFile, keyFile }: TlsFiles): Certificate {
  const certificate = { cert: readNamed('TLS_CERT', certFile), key: readNamed('TLS_KEY', keyFile) };
  check('TLS_CERT', certFile, { cert: certificate.cert });
  check('TLS_KEY', keyFile, { key: certificate.key });
  check('TLS_KEY', keyFile, certificate);
  return certificate;
}

/**
 * Calls `changed` with what the files hold from now on, once certificate and key belong together; they are seldom
 * replaced at the same instant. What can't be used is left, and logged once.
 */
export function watchCertificate(
  files: TlsFiles,
  current: Certificate,
  { changed, log }: CertificateWatchOptions,
): Disposable {
  let seen = textOf(current);
  let problem: string | undefined;
  async function read(): Promise<void> {
    try {
      // One after the other: if both are missing, it is always the same one that is named.
      const cert = await readFile(files.certFile);
      const key = await readFile(files.keyFile);
      if (textOf({ cert, key }) === seen) return;
      createSecureContext({ cert, key });
      seen = textOf({ cert, key });
      problem = undefined;
      changed({ cert, key });
      log.info('TLS_CERT and TLS_KEY have changed; new connections use them.');
    } catch (error) {
      if (errorMessage(error) === problem) return;
      problem = errorMessage(error);
      log.warn({ err: error }, "TLS_CERT and TLS_KEY can't be used now; the former ones stay in use.");
    }
  }
  const timer = setInterval(() => void read(), CHECK_EVERY_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function readNamed(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new StartError(`${setting}: can't read ${file}: ${errorMessage(error)}`);
  }
}

function check(setting: string, file: string, certificate: Partial<Certificate>): void {
  try {
    createSecureContext(certificate);
  } catch (error) {
    throw new StartError(`${setting}: ${file} can't be used: ${errorMessage(error)}`);
  }
}

function textOf({ cert, key }: Certificate): string {
  return `${cert.toString('latin1')}\n${key.toString('latin1')}`;
}

const CHECK_EVERY_MS = 1_000;

export type TlsFiles = { certFile: string; keyFile: string };

/** In PEM; the certificate with those that lead to its issuer. */
export type Certificate = { cert: Buffer; key: Buffer };

export type CertificateWatchOptions = { changed: (certificate: Certificate) => void; log: Log };
