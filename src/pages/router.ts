import { type NextFunction, type Request, type RequestHandler, type Response, Router } from 'express';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { QR_PATH } from '../domain/definition/share.ts';
import { failed } from '../domain/errors/failure.ts';
import { showActivation } from './activation.ts';
import { EMBED_PATH, sendAsset } from './assets.ts';
import { postForm } from './form/post.ts';
import { postUpload } from './form/read-post.ts';
import { showForm, showQr } from './form/show.ts';
import { createGuides, type Guide } from './guides.ts';
import { type HandlePage, type PageExchange, type PageOptions, servePage, serveScript } from './handler.ts';
import { type HomeOptions, showHome } from './home.ts';
import { assets } from './layout.ts';
import { followMailLink, sendLinkedFile, showMailLink } from './mailed-links.ts';
import { type NewPageOptions, postNew, showNew } from './new.ts';
import type { OwnerPageOptions } from './owner/handler.ts';
import { createOwnerPages } from './owner/router.ts';

/**
 * The pages people see: the service's own and its guides, a session's form, activation, the links in emails; and
 * the files they need.
 *
 * It goes before the REST routes and passes on what it does not serve. Of the activation link it serves GET only.
 */
export function createHostedPages(options: HostedPagesOptions): Router {
  const router = Router();
  const page = (handle: HandlePage) => servePage(options, handle);

  for (const path of ['/f/:sessionId', '/s/:sessionId']) {
    router.route(path).get(page(showForm)).post(page(postForm)).all(page(refuseMethod));
    router.post(`${path}/uploads`, serveScript(options, postUpload));
  }
  router.route(`/f/:sessionId${QR_PATH}`).get(page(showQr)).all(page(refuseMethod));
  router.get('/', page(showHome(options)));
  router
    .route('/new')
    .get(page(showNew(options)))
    .post(serveScript(options, postNew(options)))
    .all(page(refuseMethod));
  if (options.docs) router.use(createGuides(options.guides, page));
  router.get('/api/forms/:id/activate', page(showActivation));
  router
    .route('/mail/:token')
    .get(page(showMailLink))
    .post(page(followMailLink(options)))
    .all(page(refuseMethod));
  router.route('/files/:token').get(page(sendLinkedFile)).all(page(refuseMethod));
  router.use(createOwnerPages(options));
  router.get(['/assets/*file', EMBED_PATH], sendFile);
  // A path that can't be decoded fails before any page: Express would show a trace, and log the path with its token.
  // What is posted to an activation link is left to its route, which can't decode it either and says so in JSON.
  router.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (request.method === 'POST' && request.path.startsWith('/api/')) return next();
    return page(() => Promise.reject(error))(request, response, next);
  });
  return router;
}

const sendFile: RequestHandler = async (request, response, next) => {
  const asset = await assets.find(request.path);
  if (asset === undefined) next();
  else sendAsset(request, response, asset);
};

function refuseMethod({ request, response }: PageExchange): void {
  response.setHeader('allow', 'GET, HEAD, POST');
  if (request.method === 'OPTIONS') return void response.status(204).end();
  throw failed(Reason.METHOD, 'The path does not know this method');
}

export type HostedPagesOptions = PageOptions &
  HomeOptions &
  NewPageOptions &
  OwnerPageOptions & { guides: readonly Guide[] };
