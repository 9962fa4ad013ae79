import { html } from '../domain/text/html.ts';
import { sendPage } from '../http/reply.ts';
import type { PageExchange } from './handler.ts';
import { assets, rootOf, securityHeaders } from './layout.ts';

/**
 * Answers GET on `/docs`: the reference of the REST interface, which Swagger UI makes of `/openapi.json` in the
 * browser. It loads nothing from elsewhere. Its policy allows the styles that Swagger UI sets, and no script but files
 * of this service.
 */
export async function showDocs({ request, response }: PageExchange): Promise<void> {
  const root = rootOf(request);
  const page = html`<!doctype html>
<html lang="en" data-mode="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference – Headless form service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${assets.path('libraries/swagger-ui.css')}">
<link rel="stylesheet" href="${root}${assets.path('docs.css')}">
<script src="${root}${assets.path('libraries/swagger-ui-bundle.js')}" defer></script>
<script type="module" src="${root}${assets.path('pages/browser/docs.js')}"></script>
</head>
<body>
<header><a href="${root}">Headless form service</a> <a href="${root}openapi.json">openapi.json</a></header>
<div id="reference" data-root="${root}">
<noscript><p>This page needs script. <a href="${root}openapi.json">openapi.json</a> says the same.</p></noscript>
</div>
</body>
</html>
`;
  await sendPage(request, response, 200, { html: page.text, headers: securityHeaders(policy, []) });
}

const policy = [
  "default-src 'none'",
  "style-src 'self' 'unsafe-inline'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'none'",
  "base-uri 'none'",
];
