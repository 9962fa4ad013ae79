import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ConnectRouter, createRouterTransport } from '@connectrpc/connect';
import express, { type RequestHandler } from 'express';
import { createGateway, type GatewayOptions } from '../../src/gateway/router.ts';
import { checkReply } from '../support/openapi.ts';

/**
 * Starts the gateway alone, on a free port, before services that answer as the test says. Every
 * reply is checked against the API description. `admit` stands for the question whether a caller may
 * call (everybody may).
 */
export async function startGateway(
  services: (router: ConnectRouter) => void = () => {},
  { admit = async () => new Headers() }: Partial<Pick<GatewayOptions, 'admit'>> = {},
) {
  const logged: object[] = [];
  const gateway = createGateway({
    transport: createRouterTransport(services),
    admit,
    baseUrl: 'https://forms.example',
    allowPrivateUrls: false,
    allowedOrigins: [],
    pages,
    version: '1.0.0',
    log: { error: (facts) => logged.push(facts) },
  });
  // What the whole service sets on every reply.
  const named: RequestHandler = (_request, response, next) => {
    response.setHeader('x-request-id', 'request-1');
    response.setHeader('x-content-type-options', 'nosniff');
    next();
  };
  const server = createServer(express().use(named, gateway));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;

  async function call(method: string, path: string, { json, body, headers = {} }: CallInit = {}) {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: { ...(json === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(json !== undefined && { body: JSON.stringify(json) }),
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    checkReply({ method, path, status: response.status, headers: response.headers, text });
    const isJson =
      response.headers.get('content-type')?.startsWith('application/json') === true && text !== '';
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  }

  return {
    url,
    port,
    logged,
    call,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Pages that say what they were asked to show. */
const pages: GatewayOptions['pages'] = {
  renderCompletion: (ending) => ({ html: `completion ${ending.formName}`, headers: {} }),
  renderError: ({ status, reason }) => ({ html: `error ${status} ${reason}`, headers: {} }),
  renderActivated: ({ form }, email) => ({ html: `activated ${form?.id} ${email}`, headers: {} }),
  browserOf: () => '',
  renderRefusedPost: ({ formName }, { site }) => ({ html: `refused ${formName} ${site}`, headers: {} }),
};

type CallInit = { json?: unknown; body?: NonNullable<RequestInit['body']>; headers?: Record<string, string> };
