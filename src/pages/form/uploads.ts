import { type Client, createClient, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { HostedService } from '../../../gen/forms/v1/hosted_pb.js';
import { UploadsService } from '../../../gen/forms/v1/uploads_pb.js';
import { MAX_FILE_BYTES, readBytes } from '../body.ts';
import { callOptions, sendJson } from '../reply.ts';
import { openSession, refuseForeign, sessionIdOf } from './open-session.ts';

/**
 * Takes one file from the page's script, which shows its progress: the raw body, with `field` and
 * `filename` in the query. Answers 201 with what the answer is to name.
 */
export function createUploadRoute(transport: Transport) {
  const hosted: Client<typeof HostedService> = createClient(HostedService, transport);
  const uploads = createClient(UploadsService, transport);
  return async (request: Request, response: Response): Promise<void> => {
    refuseForeign(request, await openSession(hosted, request, response));
    const { upload } = await uploads.createUpload(
      {
        target: { case: 'sessionId', value: sessionIdOf(request) },
        fieldId: textOf(request.query.field),
        filename: textOf(request.query.filename),
        content: await readBytes(request, MAX_FILE_BYTES),
      },
      callOptions(request, response),
    );
    sendJson(response, 201, {
      upload: {
        upload_id: upload?.id,
        filename: upload?.filename,
        content_type: upload?.contentType,
        size: upload?.size,
      },
    });
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
